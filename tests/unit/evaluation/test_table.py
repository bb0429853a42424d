"""The tables say what passes, what fails and what was not measured."""

from dataclasses import replace

from evaluation.bars import BARS, OURS_ALONE
from evaluation.data_wait import DataWait
from evaluation.figures import scored, steps_to_right
from evaluation.result import OURS, Result
from evaluation.table import markdown, tables
from evaluation.truth import Truth
from tests.unit.evaluation.examples import NEGATIVE, result_with, score_with


def row_of(results: list[Result], what: str) -> list[str]:
    """The cells of a row, without its name."""
    lines = [line.strip("|").split(" | ") for line in tables(results).splitlines()]
    return next([cell.strip() for cell in line[1:]] for line in lines if line[0].strip() == what)


def test_a_bar_is_passed_or_failed_and_the_others_stand_beside_it() -> None:
    right, wrong = score_with(), score_with(kind="host", right=False)
    results = [
        result_with(right, tools={OURS: right, "host-wait share": wrong}),
        result_with(right, tools={OURS: right, "host-wait share": right}),
    ]
    what = "top verdict right, over the positives"
    assert row_of(results, what) == ["≥ 95 %", "2 of 2 (100 %)", "PASS", "1 of 2 (50 %)"]
    results.append(result_with(wrong))
    assert row_of(results, what)[1:3] == ["2 of 3 (67 %)", "FAIL"]


def test_one_false_alarm_is_allowed() -> None:
    alarm = result_with(score_with(false_alarm=True, right=False), **NEGATIVE)
    what = 'false "bound" over the negatives'
    assert row_of([alarm], what) == ["≤ 1", "1 of 1", "PASS"]
    assert row_of([alarm, alarm], what) == ["≤ 1", "2 of 2", "FAIL"]


def test_what_was_not_measured_neither_passes_nor_fails() -> None:
    nothing = [result_with(score_with(forecast=None), **NEGATIVE)]
    for bar in (*BARS, *OURS_ALONE):
        asks, measured, passes = row_of(nothing, bar.what)
        assert asks == bar.asks
        if measured == "n/a":
            assert passes == "", bar.what
    assert row_of(nothing, "leaks found by step 1,250") == ["all", "n/a", ""]


def test_the_worst_data_wait_decides() -> None:
    near = result_with(score_with(), data_wait=DataWait(0.300, 0.305))
    far = result_with(score_with(), data_wait=DataWait(0.30, 0.34))
    what = "data-wait share against the truth, points"
    assert row_of([near], what)[1:] == ["median 0.50, most 0.50 (1)", "PASS"]
    assert row_of([near, near, near, far], what)[2] == "FAIL"


def test_machines_with_and_without_a_gpu_are_examined_apart() -> None:
    results = [result_with(score_with()), result_with(score_with(), gpu="NVIDIA H200")]
    text = tables(results)
    assert text.index("### NVIDIA H200: 1 runs in 1 min, 1 positives") < text.index("### No GPU")
    assert tables([]) == "no results"


def test_runs_without_the_probe_are_examined_apart_and_on_what_they_can_show() -> None:
    def seen(kind: str, right: bool) -> Result:
        return result_with(score_with(kind=kind, right=right), kinds=[kind], probe=False)

    quiet = result_with(score_with(right=False, kind="incomplete"), probe=False, **NEGATIVE)
    results = [seen("input", True), seen("host", True), seen("launch", False), quiet]
    results += [seen("checkpoint", True), seen("evaluation", False)]
    what = "input, host and stall verdicts right"
    assert row_of(results, what) == ["≥ 80 %", "3 of 4 (75 %)", "FAIL"]
    assert row_of([*results, seen("input", True)], what)[1:] == ["4 of 5 (80 %)", "PASS"]
    assert row_of(results, "… stall: checkpoint, evaluation")[1] == "1 of 2 (50 %)"
    assert row_of(results, "all other causes right")[1] == "0 of 1 (0 %)"
    assert row_of(results, 'false "bound" over the negatives') == ["0", "0 of 1", "PASS"]
    alarm = replace(quiet, tools={OURS: score_with(false_alarm=True, right=False)})
    assert row_of([alarm], 'false "bound" over the negatives')[1:] == ["1 of 1", "FAIL"]
    text = tables([*results, result_with(score_with())])
    assert "### No GPU: 1 runs" in text
    assert "### No GPU, without the probe: 6 runs" in text


def test_without_the_probe_no_steps_are_reported_and_without_bare_runs_no_cost() -> None:
    rows = tables([result_with(score_with(), probe=False, cost=None)]).splitlines()
    cells = next(line for line in rows if line.startswith("| loader_workers.0")).split(" | ")
    assert cells[5:7] == ["", "3.0"]
    assert cells[-1] == " |"
    assert steps_to_right(scored([result_with(score_with(), probe=False)], OURS)) == []


def test_who_shared_the_machine_is_reported() -> None:
    results = [result_with(score_with(), others_cores=cores) for cores in (0.02, 1.41, None)]
    assert "other processes used up to 1.4 of its cores" in tables(results)
    assert "other processes" not in tables([result_with(score_with())])


def test_doubtful_scenarios_are_named() -> None:
    doubtful = Truth(1.04, 1.0, 1.2, "ambiguous", agrees=False, by_construction=False)
    text = tables([result_with(score_with(), truth=doubtful)])
    assert "Not counted" in text
    assert "loader_workers.0 (ambiguous, 1.04 (1.00 to 1.20))" in text


def test_a_table_is_markdown() -> None:
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
