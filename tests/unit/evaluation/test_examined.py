"""Runs with a measured truth: gains from turns, what they make of a verdict, and the tables."""

from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.examined import (
    Examined,
    Reported,
    expected_of,
    judged_as,
    label_of,
)
from evaluation.examined_table import bars, forecast_truth, reliability, row_of, tables
from evaluation.kept_runs import keep_all, kept_in
from evaluation.seeds import reported_on
from evaluation.verdict_track import Judgement
from generated.switches import NET_GRAPH, STEADY, STEP_GRAPH, UNREAD
from generated.turns import Gain, gains_of, next_turns

KEPT = Path(__file__).parents[2] / "recordings" / "generated" / "cuda"
KINDS = {"data": ("input",), "fused": ("optimizer",), NET_GRAPH: ("launch",)}
ADVICE = {"data": "num_workers", "fused": "fused", NET_GRAPH: "graph", STEP_GRAPH: "whole step"}


def gain(name: str, value: float, noise: float = 1.01) -> Gain:
    return Gain(name, KINDS[name], value, value / noise, value * noise)


def look(kind: str, sub: str | None = None, **more: object) -> Judgement:
    values = {"confidence": 0.95, "asks": True, **more}
    return Judgement(8.0, 200, kind, sub, **values)  # type: ignore[arg-type]


def examined(
    *looks: Judgement,
    gains: list[Gain],
    others_cores: float = 0.0,
    cut: bool = False,
    before_s: float = 0.0,
    begun_step: int | None = None,
) -> Examined:
    return judged_as(
        "4",
        gains,
        Reported(looks, 10, looks[-1].speedup, interval=(1.5, 2.5), ledger={}),
        ADVICE,
        others_cores,
        cut,
        before_s,
        begun_step,
        half="development",
        device="cpu",
        gpu=None,
        mode="run",
        causes=(),
        failed={},
    )


def test_a_turn_that_is_cut_off_is_no_truth() -> None:
    """An evaluation of 1.7 s every five: a turn of three seconds has one, or none."""
    gains = [gain("data", 2.2)]
    assert examined(look("input"), gains=gains).label == "positive"
    assert examined(look("input"), gains=gains, cut=True).label == "unclear"


def test_a_turn_is_held_against_those_beside_it() -> None:
    # The machine becomes half as fast on the way: no gain of either switch.
    turns = [("", 100.0), ("data", 90.0), ("", 81.0), ("fused", 73.0), ("", 65.8)]
    gains = [each.gain for each in gains_of(turns, KINDS)]
    assert gains == pytest.approx([1.0, 1.0], abs=0.01)


def test_a_gain_is_as_uncertain_as_the_run_as_it_is() -> None:
    steady = gains_of([("", 100.0), ("data", 200.0), ("", 100.0)], KINDS)
    shaky = gains_of([("", 80.0), ("data", 200.0), ("", 120.0)], KINDS)
    assert steady[0].low == steady[0].high == pytest.approx(2.0)
    assert shaky[0].low < 1.5 < shaky[0].gain < shaky[0].high


def test_changes_near_the_best_take_turns_until_their_gains_are_known() -> None:
    """A graph of 2.5x was held against 2.1x from two turns each, known to a fifth."""
    names = ("data", "fused", "graphs")
    turns = [("", 100.0)]
    assert next_turns(turns, names, each=2) == ["data", "fused", "graphs"]
    turns += [("data", 200.0), ("", 100.0), ("fused", 60.0), ("", 100.0)]
    turns += [("graphs", 210.0), ("", 100.0)]
    assert next_turns(turns, names, each=1) == []
    assert next_turns(turns, names, each=2) == ["data", "graphs"], "the third is not near"
    shaky = [(name, rate * (1.2 if at % 4 else 1.0)) for at, (name, rate) in enumerate(turns)]
    for number in range(2, 7):
        assert next_turns(shaky, names, each=2) == ["data", "graphs"], number
        shaky += [("data", 200.0), ("", 120.0), ("graphs", 210.0), ("", 100.0)]
    assert next_turns(shaky, names, each=2) == [], "three times as many are the most"
    assert next_turns([("", 100.0)], (), each=2) == []
    assert next_turns(turns, names, each=2, late=True) == ["data", "graphs"]
    assert next_turns(shaky[: len(turns) + 4], names, each=2, late=True) == []


@pytest.mark.parametrize(
    ("gains", "label"),
    [
        ([], "negative"),
        ([gain("data", 1.3)], "positive"),
        ([gain("data", 1.3, noise=1.5)], "unclear"),
        ([gain("data", 1.1)], "between"),
        ([gain("data", 1.02), gain("fused", 0.97)], "negative"),
        ([gain("data", 1.02, noise=1.2)], "unclear"),
    ],
)
def test_the_label_of_a_run_is_that_of_its_best_gain(gains: list[Gain], label: str) -> None:
    assert label_of(gains) == label


def test_any_change_within_ten_percent_of_the_best_is_right() -> None:
    gains = [gain("data", 1.95), gain("fused", 2.0)]
    assert expected_of(gains, "positive").kinds == ("optimizer", "input")
    assert expected_of([gain("data", 1.5), gain("fused", 2.0)], "positive").kinds == ("optimizer",)


def test_a_change_that_takes_another_first_makes_no_verdict_wrong() -> None:
    """A net that reads numbers of its layers is in no CUDA graph: without them it gains more by one
    than by being without them."""
    unread = Gain(UNREAD, ("launch",), 3.0, 2.9, 3.1)
    both = [gain("data", 1.5), unread]
    assert expected_of(both, "positive").kinds == ("launch", "input")
    assert expected_of([gain("data", 1.02), unread], "positive").kinds == ("launch",)
    little = Gain(STEADY, ("launch",), 1.20, 1.18, 1.22)
    assert expected_of([gain("data", 1.14), little], "positive").kinds == ("launch", "input")


def test_a_graph_of_the_whole_step_makes_no_verdict_wrong() -> None:
    whole = Gain(STEP_GRAPH, ("launch",), 7.0, 6.9, 7.1)
    assert expected_of([gain("data", 1.5), whole], "positive").kinds == ("launch", "input")
    advice = 'torch.compile(model, mode="reduce-overhead"), or a CUDA graph of the whole step'
    named = examined(
        look("launch", advice=advice, speedup=2.9), gains=[whole, gain(NET_GRAPH, 3.0)]
    )
    assert named.advised_gain == 7.0
    assert forecast_truth(named) == 3.0, "the forecast is that of the first of the two"


def test_a_verdict_is_right_by_what_its_change_gives() -> None:
    right = examined(look("input", advice="num_workers=4"), gains=[gain("data", 2.0)])
    assert right.right
    assert right.advised == "data"
    assert right.advised_gain == 2.0
    assert right.first_right_steps == 190
    wrong = examined(look("optimizer", advice="fused=True"), gains=[gain("data", 2.0)])
    assert not wrong.right
    assert wrong.advised is None
    assert wrong.first_right_steps is None


def test_steps_and_seconds_of_a_second_look_count_from_the_first() -> None:
    """Of a run that is recorded again, for it had no verdict."""
    again = examined(look("input"), gains=[gain("data", 2.0)], before_s=8.0, begun_step=1)
    assert (again.first_right_steps, again.first_right_s) == (199, 16.0)


def test_a_negative_has_a_false_bound_where_a_change_is_asked_for() -> None:
    nothing = [gain("data", 1.01)]
    assert examined(look("input"), gains=nothing).false_bound
    assert examined(look("checkpoint"), gains=nothing).false_bound, "there is none"
    assert not examined(look("healthy", asks=False), gains=nothing).false_bound
    assert not examined(look("compute", "saturated", asks=True), gains=nothing).false_bound
    assert not examined(look("warming-up"), gains=nothing).false_bound


def test_what_no_switch_measured_is_not_called_false() -> None:
    measured = [Gain("bf16", ("compute",), 1.01, 1.0, 1.02)]
    ADVICE["bf16"] = "bf16"
    assert examined(look("compute", "precision"), gains=measured).false_bound
    assert not examined(look("compute", "underfilled"), gains=measured).false_bound


def test_that_the_gpu_is_the_limit_is_right_only_with_a_change_to_its_work() -> None:
    """Three runs in tf32 counted as right whose verdict was "well used", and bf16 gave 2.3x."""
    measured = [Gain("bf16", ("compute",), 2.3, 2.2, 2.4)]
    ADVICE["bf16"] = "bf16"
    assert not examined(look("compute", "saturated", asks=False), gains=measured).right
    assert examined(look("compute", "precision"), gains=measured).right


def test_a_crowded_machine_is_no_truth_about_the_run() -> None:
    contended = look("contention", "cores")
    assert examined(contended, gains=[gain("data", 2.0)], others_cores=1.2).label == "unclear"
    assert examined(contended, gains=[gain("data", 2.0)], others_cores=0.1).label == "positive"


def test_results_are_kept(tmp_path: Path) -> None:
    result = examined(look("input"), gains=[gain("data", 2.0)])
    keep_all(tmp_path / "results.json", [result])
    assert kept_in(tmp_path / "results.json") == [result]
    assert kept_in(tmp_path / "none.json") == []


def test_the_forecast_is_held_against_what_the_advice_gives() -> None:
    looked = look("input", advice="num_workers=4", speedup=1.8)
    result = examined(looked, gains=[gain("data", 2.0)])
    assert forecast_truth(result) == 2.0
    shown = {bar.what: bar for bar in bars([result])}
    assert shown["truth within the forecast's interval"].shows == "1 of 1 (100%)"
    errors = 'error of forecasts other than "at least" (median, 90th percentile)'
    assert shown[errors].shows == "10%, 10% of 1"
    least = 'forecasts of "at least" that hold, and their median part of the truth'
    assert shown[least].shows == "none"
    open_ended = {bar.what: bar for bar in bars([replace(result, forecast_high=None)])}
    assert open_ended[errors].shows == "n/a"
    assert open_ended[least].shows == "1 of 1, 90%"
    assert shown["first advice gives 80 % of the best gain"].passes


def test_bars_without_anything_measured_neither_pass_nor_fail() -> None:
    assert all(bar.passes is None for bar in bars([]))


def test_a_run_without_a_verdict_misses_a_bar() -> None:
    waiting = examined(look("warming-up", confidence=0.0), gains=[gain("data", 2.0)])
    shown = {bar.what: bar for bar in bars([waiting])}
    assert shown["no verdict at the end, of all"].passes is False
    assert shown["headlines below 0.5"].passes is not False
    assert shown["steps to the first right verdict (median, most)"].shows == "never, for 1"


def test_the_reliability_table_counts_what_was_right_at_each_confidence() -> None:
    right = examined(look("input"), gains=[gain("data", 2.0)])
    wrong = examined(look("optimizer"), gains=[gain("data", 2.0)])
    unsure = examined(look("input", confidence=0.55), gains=[gain("data", 2.0)])
    between = examined(look("input"), gains=[gain("data", 1.1)])
    assert reliability([right, right, wrong, unsure, between]) == [
        ("0.5 to 0.6", "1", "1 (100%)"),
        ("0.9 to 1.0", "3", "2 (67%)"),
    ]


def test_of_a_run_for_the_report_only_sums_are_printed() -> None:
    shown = replace(examined(look("input"), gains=[gain("data", 2.0)]), seconds=14.0)
    kept = replace(shown, half="report", name="5")
    assert "said input" in row_of(shown)
    assert row_of(kept).endswith("examined in 14 s")
    text = tables([shown, kept])
    assert "### no GPU, run, development: 1 runs (1 positive" in text
    assert "### no GPU, run, report: 1 runs (1 positive" in text
    assert text.count("said input") == 1


def test_the_time_that_nothing_explains_is_in_the_table() -> None:
    """It was "n/a" for every run: the parts of the ledger lie one level deeper in a record."""
    seed = min(KEPT.glob("cuda-*.gpuwatch"))
    reported = reported_on(seed)
    assert sum(reported.ledger.values()) == pytest.approx(1.0, abs=1e-4)
    assert "unexplained" in reported.ledger


def test_a_kept_run_is_looked_at_when_a_monitor_of_today_would() -> None:
    """The one that recorded it looked a second after attaching, and had the steps long before."""
    kept = KEPT.parent / "cpu" / "cpu-1456.gpuwatch"
    looks = reported_on(kept).looks
    assert looks[0].kind == "warming-up"
    assert looks[1].kind == "optimizer"
    assert looks[1].at_s < 0.6
