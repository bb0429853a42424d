"""The arithmetic of the cost: intervals, bars, and what is not resolved."""

import math
import random
import statistics
from array import array

import pytest

from gpuwatch.probe.wire.marks import BATCH, word_of
from gpuwatch.tui.messages import Marks
from tests.bench.cost.intervals import (
    FEWEST,
    IN,
    NOT_RESOLVED,
    OUT,
    OUT_AGAIN,
    Bar,
    Interval,
    differences,
    interval,
    is_resolved,
    judged,
    keeps,
)
from tests.bench.cost.machine import HOST
from tests.bench.cost.marks import Tally
from tests.bench.cost.marks import row as marks_row
from tests.bench.cost.monitor import rows as monitor_rows
from tests.bench.cost.peers import (
    BARE,
    BARE_AGAIN,
    FEWEST_STEPS,
    OURS,
    TARGETS_MS,
    TRACEML,
    added,
    tenth,
    turn_s,
)
from tests.bench.cost.peers import rows as peer_rows
from tests.bench.cost.steps import ROWS, rows
from tests.bench.cost.table import table
from tests.measuring.spread import spread

ALONE = "watched, left alone"
SAME: dict[str, float] = {
    "thread_ns": 500_000,
    "process_ns": 500_000,
    "wall_ns": 520_000,
    "queue_ns": 15_000,
    "publisher_ns": 0,
    "hooked_ns": 100_000,
    "objects": 0,
}


def found(low: float, value: float, high: float) -> Interval:
    """Of many values."""
    return Interval(value, low, high, 100)


def test_the_interval_holds_the_true_median_in_nineteen_of_twenty_samples() -> None:
    order = random.Random(1)
    held = 0
    for _ in range(200):
        low, high = spread([order.gauss(5, 2) for _ in range(30)], statistics.median, 0.95)
        held += low <= 5 <= high
    assert 0.9 <= held / 200 <= 0.99


def test_a_wider_part_has_a_wider_interval() -> None:
    order = random.Random(2)
    values = [order.gauss(0, 1) for _ in range(50)]
    (low, high), (lower, higher) = (spread(values, statistics.median, part) for part in (0.5, 0.95))
    assert lower < low < high < higher


def test_one_disturbed_pair_does_not_move_the_median() -> None:
    seen = interval([10.0, 11.0, 9.0, 10.0, 12.0, 8.0, 10.0, 9_000.0])
    assert seen.value == 10.0
    assert 8.0 <= seen.low <= 10.0 <= seen.high <= 12.0


def test_too_few_values_have_no_bounds() -> None:
    seen = interval([5.0] * (FEWEST - 1))
    assert (seen.low, seen.high) == (-math.inf, math.inf)
    assert judged(seen, Bar(100), "us") == (NOT_RESOLVED, None)
    assert judged(seen, None, "us") == (NOT_RESOLVED, None)
    assert interval([5.0] * FEWEST).low == 5.0


@pytest.mark.parametrize(
    ("seen", "resolved"),
    [
        (found(-1, 4, 7), False),
        (found(0, 4, 7), False),
        (found(1, 4, 7), True),
        (found(-1, 2, 6), True),
        (found(-7, -4, -1), True),
    ],
)
def test_both_nothing_and_more_than_the_bar_is_not_resolved(seen: Interval, resolved: bool) -> None:
    assert is_resolved(seen, Bar(6)) is resolved
    words, met = judged(seen, Bar(6), "us")
    assert (words == NOT_RESOLVED) is not resolved
    assert resolved or met is None


@pytest.mark.parametrize(
    ("seen", "bar", "kept"),
    [
        (found(4, 5, 6), Bar(6), True),
        (found(4, 5, 6.1), Bar(6), None),
        (found(5, 7, 9), Bar(6), None),
        (found(6.1, 7, 8), Bar(6), False),
        (found(5, 7, 15), Bar(8, within=15), True),
        (found(5, 7, 16), Bar(8, within=15), None),
        (found(5, 8.1, 12), Bar(8, within=15), None),
        (found(8.1, 9, 12), Bar(8, within=15), False),
        (found(-3, -2, -1), Bar(6), True),
    ],
)
def test_a_bar_is_kept_or_missed_with_the_whole_interval(
    seen: Interval, bar: Bar, kept: bool | None
) -> None:
    assert keeps(seen, bar) is kept


def test_the_words_of_a_figure() -> None:
    assert found(4.81, 5.12, 5.43).text("us", signed=True) == "+5.1 us (+4.8 to +5.4)"
    assert found(-0.01, 0.35, 0.4).text("%", 1) == "0.3 % (0.0 to 0.4)"


def test_a_difference_is_of_the_same_pair() -> None:
    pairs = [
        {OUT: {"ns": 500.0}, OUT_AGAIN: {"ns": 501.0}, IN: {"ns": 510.0}},
        {OUT: {"ns": 900.0}, OUT_AGAIN: {"ns": 899.0}, IN: {"ns": 912.0}},
    ]
    assert differences(pairs, IN, "ns") == [10.0, 12.0]
    assert differences(pairs, OUT_AGAIN, "ns") == [1.0, -1.0]
    assert differences(pairs, IN, "instructions") == []


def test_the_rows_of_a_length_and_their_bars() -> None:
    hooked = {**SAME, "process_ns": 505_000, "wall_ns": 560_000, "queue_ns": 45_000}
    hooked |= {"publisher_ns": 2_575, "hooked_ns": 102_500, "thread_ns": 502_200}
    pairs = [{"in": hooked, "out": SAME, "out again": SAME}] * FEWEST
    line = {"target_ms": 0.5, "layers": 1, "unwatched": pairs, "watched": pairs, ALONE: pairs}
    seen = {
        (claim.item, claim.loop.removeprefix("host, 0.5 ms, ")): claim
        for claim in rows(HOST, {**line, "no_instructions": "no counter"})
    }
    assert len(seen) == len(ROWS)
    assert [(key, claim.bar, claim.met) for key, claim in seen.items() if claim.bar] == [
        (("the hooks alone", "unwatched"), "3 us", True),
        (("CPU, whole process", "unwatched"), "4 us", False),
        (("CPU, whole process", "watched"), "6 us", True),
        (("time", "watched"), "8 us, within 15", False),
        (("lock held, at most", ALONE), "1 %", True),
    ]
    assert seen["time", "watched"].measured == "+10.0 us (+10.0 to +10.0)"  # waits are left out
    assert seen["lock held, at most", ALONE].measured == "0.50 % (0.50 to 0.50)"
    assert seen["instructions", "watched"].measured == "not measured: no counter"
    assert seen["the same code twice, CPU", "watched"].figures["value"] == 0


def test_instructions_where_they_are_counted() -> None:
    pair = {arm: {**SAME, "instructions": count} for arm, count in _INSTRUCTIONS.items()}
    line = {
        "target_ms": 0.5,
        "layers": 1,
        "unwatched": [pair] * 6,
        "watched": [pair] * 6,
        ALONE: [pair] * 6,
    }
    claims = {claim.item: claim for claim in rows(HOST, {**line, "no_instructions": ""})}
    assert claims["instructions"].measured == "+12.5 thousand (+12.5 to +12.5)"


_INSTRUCTIONS = {"in": 912_500.0, "out": 900_000.0, "out again": 900_000.0}


def a_round(drift_us: float, traceml_us: float = 5900.0) -> dict[str, float]:
    """Mean steps of a machine whose speed changes from round to round."""
    steps_us = {BARE: 5000.0, BARE_AGAIN: 5003.0, OURS: 5040.0, TRACEML: traceml_us}
    return {tool: us + drift_us for tool, us in steps_us.items()}


def test_a_tenth_of_traceml() -> None:
    rounds = [a_round(drift) for drift in (0.0, 300.0, -200.0, 50.0, 10.0, -30.0)]
    assert tenth(added(TRACEML, rounds)) == Bar(90.0)
    by_item = {claim.item: claim for claim in peer_rows(HOST, 5.0, rounds)}
    assert by_item["beside others, gpuwatch"].met is True
    assert by_item["beside others, gpuwatch"].bar == "90 us, a tenth of TraceML's"
    assert by_item["beside others, the same twice"].measured.startswith("+3.0 us")


def test_a_traceml_that_cannot_be_distinguished_from_nothing_is_no_bar() -> None:
    rounds = [a_round(0.0, 5000.0 + more) for more in (-30.0, 40.0) * 4]
    assert tenth(added(TRACEML, rounds)) is None
    by_item = {claim.item: claim for claim in peer_rows(HOST, 5.0, rounds)}
    assert by_item["beside others, gpuwatch"].met is None


def test_every_length_has_a_turn_that_holds_some_steps() -> None:
    assert all(turn_s(ms) >= FEWEST_STEPS * ms / 1e3 for ms in TARGETS_MS)
    assert (turn_s(0.5), turn_s(100.0)) == (0.3, 0.5)


def message(*kinds: int) -> Marks:
    """Some marks as they come; 0 is one that was lost."""
    words = array("q", (word_of(kind) if kind else 0 for kind in kinds))
    body = bytes(len(words) * words.itemsize) + words.tobytes()
    return Marks(
        1, 0, len(kinds), 0, [], [], [], None, None, None, None, None, 0, [], [], [], [], None, 0,
        body,
    )  # fmt: skip


def test_marks_that_are_lost_are_reported_or_missing() -> None:
    tally = Tally()
    tally.take(message(2, 3, BATCH, 6))
    tally.take(message(0, 0, 2))
    made = {"marks": 6, "steps_s": 10_000.0}
    reported = marks_row(tally, made, 5)
    assert (reported.met, reported.measured) == (True, "6 made, 2 reported as lost, 0 missing")
    missed = marks_row(tally, {**made, "marks": 10}, 5)
    assert (missed.met, missed.measured) == (False, "10 made, 2 reported as lost, 4 missing")
    twice = Tally()
    twice.take(message(*[2] * 7))
    assert marks_row(twice, made, 5).met is False


@pytest.mark.parametrize(
    ("screen", "pyspy", "pss_mb", "met"),
    [
        (4.9, 0.9, 120.0, (True, True, True)),
        (5.1, 0.9, 47.0, (False, True, True)),
        (4.9, 1.1, 121.0, (True, False, False)),
    ],
)
def test_the_screen_and_its_py_spy_have_a_bar_each(
    screen: float, pyspy: float, pss_mb: float, met: tuple[bool, ...]
) -> None:
    claims = monitor_rows("", [screen] * FEWEST, [pyspy] * FEWEST, pss_mb)
    assert tuple(claim.met for claim in claims) == met


def test_the_table_has_a_column_a_machine() -> None:
    row = {"item": "time", "loop": "2 ms", "bar": "8 us", "measured": "+9.0 us", "met": False}
    other = {**row, "measured": "+3.0 us", "met": True}
    alone = {**other, "item": "the hooks alone", "bar": ""}
    assert list(table({"2 cores": [row], "one H200": [other, alone]})) == [
        "| | | bar | 2 cores | one H200 |",
        "|---|---|---|---|---|",
        "| time | 2 ms | 8 us | **+9.0 us** | +3.0 us |",
        "| the hooks alone | 2 ms |  |  | +3.0 us |",
    ]


def test_without_a_bar_a_coarse_interval_is_not_resolved_and_the_noise_is_shown() -> None:
    noisy = (-60_000, -30_000, -10_000, 10_000, 30_000, 60_000)
    pairs = [
        {"in": {**SAME, "thread_ns": 500_000 + more}, "out": SAME,
         "out again": {**SAME, "process_ns": 500_000 + more}}
        for more in noisy
    ]  # fmt: skip
    line = {"target_ms": 0.5, "layers": 1, "unwatched": pairs, "watched": pairs, ALONE: pairs}
    seen = {claim.item: claim for claim in rows(HOST, {**line, "no_instructions": "none"})}
    assert seen["CPU, training thread"].measured == NOT_RESOLVED
    assert seen["the same code twice, CPU"].measured.startswith("+0.0 us (-")


def test_long_steps_have_the_rows_that_they_may_change() -> None:
    pairs = [{"in": SAME, "out": SAME, "out again": SAME}] * FEWEST
    line = {"layers": 1, "unwatched": pairs, "watched": pairs, ALONE: pairs, "no_instructions": ""}
    short, long = (
        [claim.item for claim in rows(HOST, {**line, "target_ms": ms})] for ms in (0.5, 2.0)
    )
    assert "the hooks alone" in short
    assert "the hooks alone" not in long
    assert "time" in long
