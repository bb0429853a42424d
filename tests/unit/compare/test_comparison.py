"""What is found between two sides: nothing where nothing changed, five percent where they did."""

import dataclasses
import random
from collections.abc import Sequence
from math import inf

import msgspec
import pytest

from gpuwatch.tui.compare.comparison import Comparison, compare, condition_of, row_of, side
from gpuwatch.tui.compare.faces import as_json, text_lines
from gpuwatch.tui.compare.figures import STEP, settled
from gpuwatch.tui.compare.intervals import Estimate
from gpuwatch.tui.compare.page import page
from gpuwatch.tui.errors import UsageError
from gpuwatch.tui.recording.whole_run import WholeRun
from tests.unit.compare.runs import (
    LAST,
    correlated,
    halves,
    lasting,
    of_times,
    recorded,
    saving,
    slower,
)

GPU_BOUND = ("gpt_bf16", "precision_fp32", "pointwise_unfused")
STEADY = (*GPU_BOUND, "loader_workers", "launch_lstmcell")
"""Loops that the GPU, the loader or the host bounds, all of them the same throughout."""


def between(a: WholeRun, b: WholeRun) -> Comparison:
    return compare(side("a", [a], LAST), side("b", [b], LAST))


def found(a: WholeRun, b: WholeRun) -> str:
    row = between(a, b).step
    assert row is not None
    return row.found


def test_twenty_pairs_of_equal_runs_raise_no_alarm() -> None:
    """Real step series from an H200, each dealt out to two runs."""
    rng = random.Random(20)
    pairs = [halves(recorded(STEADY[at % len(STEADY)]), rng) for at in range(20)]
    assert [found(a, b) for a, b in pairs] == ["no change found"] * 20


def test_twenty_pairs_of_which_one_is_five_percent_slower_are_found() -> None:
    rng = random.Random(20)
    pairs = [halves(recorded(GPU_BOUND[at % len(GPU_BOUND)]), rng) for at in range(20)]
    worse = [found(a, slower(b, 1.05)) == "worse" for a, b in pairs]
    assert sum(worse) >= 18


@pytest.mark.parametrize("name", ["loader_workers", "launch_lstmcell"])
def test_of_loops_whose_own_pace_sways_twice_as_long_is_found(name: str) -> None:
    """Ten seconds a side: the pace of one falls by a tenth in them, and 5 % more cannot be told."""
    rng = random.Random(20)
    pairs = [halves(recorded(name), rng) for _ in range(10)]
    assert [found(a, slower(b, 2.0)) for a, b in pairs] == ["worse"] * 10


def test_made_up_runs_whose_load_comes_and_goes_raise_no_more_alarms_than_they_may() -> None:
    """Of 100 equal pairs 5 may at 95 %; with the spread from run to run in it, fewer do."""
    alarms = sum(
        found(of_times(correlated(600, 50.0, seed)), of_times(correlated(600, 50.0, 1000 + seed)))
        != "no change found"
        for seed in range(100)
    )
    assert alarms <= 5


@pytest.mark.parametrize(("seconds", "lasts_s"), [(15, 0), (15, 30), (60, 10), (120, 30)])
def test_noise_that_outlasts_a_batch_is_called_a_change_no_more_often_than_stated(
    seconds: int, lasts_s: int
) -> None:
    """Of equal runs more than half were, as batches were taken for independent. The whole table is
    of `tests.bench.compare_noise`."""
    pairs = 60
    alarms = sum(
        found(
            of_times(lasting(seconds, lasts_s, 2 * seed)),
            of_times(lasting(seconds, lasts_s, 2 * seed + 1)),
        )
        != "no change found"
        for seed in range(pairs)
    )
    assert alarms <= 6, "3 of 60; by chance twice that"


@pytest.mark.parametrize("lasts_s", [0, 3, 30])
def test_a_step_that_takes_twice_as_long_is_found_in_two_runs_of_15_s(lasts_s: int) -> None:
    for seed in range(20):
        a = of_times(lasting(15, lasts_s, 2 * seed))
        b = of_times(lasting(15, lasts_s, 2 * seed + 1, mean_ms=200.0))
        assert found(a, b) == "worse"


def test_only_what_makes_the_mean_surer_is_left_out_as_warming_up() -> None:
    """The calmest part of a run that has long settled is no more of the run than the rest."""
    warm = [200.0 - 5 * at for at in range(20)]
    left_out = [settled(of_times(warm + lasting(30, 0, seed))).left_out for seed in range(20)]
    assert min(left_out) >= 10
    of_noise = [settled(of_times(lasting(30, 10, seed))).left_out > 0 for seed in range(100)]
    assert sum(of_noise) <= 3


def test_a_faster_run_is_better_and_its_samples_more() -> None:
    comparison = between(of_times(correlated(300, 50, 1)), of_times(correlated(300, 40, 2)))
    by_key = {row.figure.key: row for row in comparison.rows}
    assert by_key["step_ms"].found == "better"
    assert by_key["samples_s"].found == "better"
    assert by_key["forward_ms"].found == "better"
    assert "data_ms" not in by_key, "no time was spent in it"


@pytest.mark.parametrize(
    ("saves", "found", "conditions"),
    [
        ("a", "better", {"checkpoint_ms<-50%": True, "checkpoint_ms>+10%": False}),
        ("b", "worse", {"checkpoint_ms>+10%": True, "checkpoint_ms<-50%": False}),
        ("neither", None, {"checkpoint_ms>+10%": False, "checkpoint_ms>-5%": False}),
    ],
)
def test_a_phase_that_a_side_does_not_have_takes_no_time_there(
    saves: str, found: str | None, conditions: dict[str, bool]
) -> None:
    """What explains that B is slower was left out, and `--fail-if` on it "not measured"."""
    runs = {one: of_times(correlated(300, 50, seed)) for seed, one in enumerate("ab")}
    if saves in runs:
        runs[saves] = saving(runs[saves], 20)
    comparison = between(runs["a"], runs["b"])
    shown = {row.figure.key: row.found for row in comparison.rows}
    assert shown.get("checkpoint_ms") == found
    assert {
        text: condition_of(text).holds(comparison.measured) for text in conditions
    } == conditions


def test_several_runs_a_side_measure_what_differs_between_them() -> None:
    """Equal within, 10 % apart from run to run: no change can be found in one of 5 %."""
    a = [of_times(correlated(1200, mean, 1, 0.01)) for mean in (95.0, 105.0, 100.0)]
    b = [of_times(correlated(1200, mean, 2, 0.01)) for mean in (100.0, 110.0, 105.0)]
    comparison = compare(side("a", a, LAST), side("b", b, LAST))
    assert comparison.step is not None
    assert comparison.step.found == "no change found"
    assert not comparison.is_one_pair
    assert found(a[0], b[0]) == "worse", "which one pair of them cannot know"


def test_runs_of_too_few_steps_are_not_compared() -> None:
    comparison = between(of_times([50.0] * 3), of_times([50.0] * 300))
    assert comparison.step is None
    assert "Too few steps" in "\n".join(text_lines(comparison, {}, 80))


@pytest.mark.parametrize(
    ("text", "after", "error", "holds"),
    [
        ("step_ms>+5%", 110.0, 1.0, True),
        ("step_ms>+5%", 104.0, 1.0, False),
        ("step_ms>+5%", 110.0, 9.0, False),
        ("step_ms<-5%", 90.0, 1.0, True),
        ("step_ms > 105", 110.0, 9.0, True),
        ("step_ms>120", 110.0, 1.0, False),
        ("peak_bytes>+5%", 110.0, 1.0, None),
    ],
)
def test_a_condition_holds_beyond_its_limit_and_beyond_chance(
    text: str, after: float, error: float, holds: bool | None
) -> None:
    row = row_of(STEP, Estimate(100.0, error, inf), Estimate(after, error, inf), 0.95)
    assert condition_of(text).holds({"step_ms": row}) is holds


@pytest.mark.parametrize("text", ["", "step_ms", "step_ms>>5", "nonsense>+5%", "step_ms>+5%;x"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        condition_of(text)


def recorded_behind(run: WholeRun, steps: int) -> WholeRun:
    """The same, of which the first steps were before the recording began."""
    header = msgspec.structs.replace(run.header, begins_ns=run.steps[steps].start_ns)
    return dataclasses.replace(run, header=header)


def test_steps_before_the_recording_are_of_neither_side() -> None:
    """Two recordings of one process share them: its pace changed between the two."""
    before, after = [50.0, 51.0] * 1000, [80.0, 81.0] * 60
    a = recorded_behind(of_times(before), 1900)
    b = recorded_behind(of_times(before + after), 2000)
    row = between(a, b).step
    assert row is not None
    assert (row.change.before, row.change.after) == pytest.approx((50.5, 80.5))
    assert between(a, b).a.steps == 100


def test_steps_before_the_recording_count_where_it_has_too_few() -> None:
    row = between(recorded_behind(of_times([50.0] * 40), 38), of_times([50.0] * 40)).step
    assert row is not None


def test_an_interval_wider_than_the_figure_is_not_resolved() -> None:
    wild = [1.0, 400.0, 1.0, 1.0, 900.0, 3.0] * 6
    comparison = between(of_times(wild), of_times(wild[1:]))
    text = "\n".join(text_lines(comparison, {}, 100))
    assert "(not resolved)" in text
    assert "-1" not in text.split("forward", 1)[1].split("\n", 1)[0]


def test_runs_whose_own_pace_jumps_are_said_to_be_unsteady() -> None:
    """ "A change of more than 240% would have shown" told nobody what to do."""
    jumps = [40.0] * 60 + [90.0] * 40 + [40.0] * 50 + [70.0] * 50
    comparison = between(of_times(jumps), of_times(jumps[::-1]))
    text = " ".join(" ".join(text_lines(comparison, {}, 100)).split())
    assert "too unsteady to tell the step time apart" in text
    assert "would have shown" not in text


def test_every_face_shows_the_same() -> None:
    comparison = between(of_times(correlated(300, 40, 1)), of_times(correlated(300, 50, 2)))
    condition = condition_of("step_ms>+5%")
    failed = {condition: condition.holds(comparison.measured)}
    text = "\n".join(text_lines(comparison, failed, 100))
    record = as_json(comparison, failed)
    assert "B is slower" in text
    assert "--fail-if step_ms>+5%: holds" in text
    assert record["figures"]["step_ms"]["found"] == "worse"
    assert record["fail_if"] == [{"condition": "step_ms>+5%", "holds": True}]
    written = page(comparison, failed)
    assert "B is slower" in written
    assert "&gt;+5%: holds" in written


def test_a_larger_batch_is_judged_by_its_samples() -> None:
    """A step takes twice as long and holds four times as many: it trains twice as fast."""
    comparison = between(of_times([50.0, 51.0] * 100, 16), of_times([100.0, 102.0] * 100, 64))
    condition = condition_of("step_ms>+5%")
    failed = {condition: condition.holds(comparison.measured)}
    text = " ".join(" ".join(text_lines(comparison, failed, 100)).split())
    record = as_json(comparison, failed)
    assert "B is faster: 634 samples/s instead of 317 samples/s" in text
    assert "A step holds 64 samples instead of 16." in text
    assert "step_ms>+5%: holds. A step holds 64 samples instead of 16: samples_s tells" in text
    assert (record["judged_by"], record["figures"]["step_ms"]["found"]) == ("samples_s", "changed")
    assert (record["a"]["samples_step"], record["b"]["samples_step"]) == (16, 64)
    assert "B is faster" in page(comparison, failed)
    assert "verdict critical" not in page(comparison, failed)


def test_a_smaller_last_batch_makes_no_other_size() -> None:
    """Epochs of ten steps; the last of B holds one sample."""
    a, b = of_times([50.0, 51.0] * 100), of_times([60.0, 61.0] * 100)
    b.steps[9::10] = [msgspec.structs.replace(step, samples=1) for step in b.steps[9::10]]
    comparison = between(a, b)
    assert comparison.head is comparison.step
    assert "B is slower: a step takes" in " ".join(text_lines(comparison, {}, 200))


def test_batches_of_many_sizes_are_of_no_other_size_than_their_like() -> None:
    """16 to 64 samples at random: their middles differ by a few of a hundred from run to run."""
    a, b = of_times([50.0, 51.0] * 100), of_times([60.0, 61.0] * 100)
    for seed, run in enumerate((a, b)):
        chance = random.Random(seed)
        run.steps[:] = [
            msgspec.structs.replace(step, samples=chance.randint(16, 64)) for step in run.steps
        ]
    comparison = between(a, b)
    assert comparison.head is comparison.step


def holding(run: WholeRun, host: Sequence[int], torch: Sequence[int]) -> WholeRun:
    """The same, with what was read of its memory each second."""
    spread = range(0, run.steps[-1].end_ns, run.steps[-1].end_ns // len(host))
    run.host_held = list(zip(spread, host, strict=False))
    run.backward_held = list(zip(spread, torch, strict=False))
    run.peak_bytes = max(torch)
    return run


def test_memory_that_differs_from_batch_to_batch_is_no_change_and_a_steady_peak_is() -> None:
    """Batches of texts of many lengths: their most was "+35.0% (+32.3 to +37.8%) worse"."""
    mib = 2**20
    host = [283, 230, 241, 265, 228, 270, 233, 255, 262, 226, 249, 238]
    long = [size if size != 270 else 382 for size in host]
    a = holding(of_times([50.0] * 300), [one * mib for one in host], [900 * mib] * 12)
    b = holding(of_times([50.0] * 300), [one * mib for one in long], [1000 * mib] * 12)
    found = {row.figure.key: row for row in between(a, b).rows}
    assert found["host_bytes"].change.after == 382 * mib
    assert found["host_bytes"].found == "no change found"
    assert found["peak_bytes"].found == "worse"
    assert condition_of("peak_bytes>+10%").holds(found)


def test_what_a_recording_shows_of_memory_is_read_with_its_time() -> None:
    run = recorded("gpt_bf16")
    assert len(run.backward_held) >= 5
    assert len(run.host_held) >= 5
    assert {"peak_bytes", "host_bytes"} <= {row.figure.key for row in between(run, run).rows}


def test_names_in_a_page_are_escaped() -> None:
    a = side("<script>alert(1)</script>", [of_times([50.0] * 40)], LAST)
    written = page(compare(a, a), {})
    assert "<script" not in written
    assert "&lt;script&gt;" in written
