"""Memory in words: slopes with their interval, and when it is full."""

import math

import pytest

from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.verdict.memory.trends import Exhaustion, MemoryTrend
from gpuwatch.tui.verdict.statistics import Slope
from gpuwatch.tui.verdict.window import MemoryPoint
from gpuwatch.tui.wording.processes import full_note, full_words, interval_words, memory_state_words
from tests.unit.faces.pictures import picture
from tests.unit.session.making import finding, verdict

MIB = 1024**2
S = 1_000_000_000


def trend(
    left: Exhaustion | None = None, sub: str | None = "leak", slope: Slope | None = None
) -> MemoryTrend:
    """Seen over 500 steps."""
    shown = None if sub is None else finding("memory-growth", sub=sub, severity="warning")
    given = slope or Slope(0.38 * MIB, 0.36 * MIB, 0.41 * MIB)
    ends = MemoryPoint(100, 10 * S, MIB), MemoryPoint(600, 510 * S, 200 * MIB)
    return MemoryTrend("tensors", given, *ends, left, shown)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (Exhaustion(11_400, 13_200, 1 / 3600), "3 to 4 h"),
        (Exhaustion(11_400, 11_402, 1 / 3600), "3 h"),
        (Exhaustion(11_400, math.inf, 1 / 3600), "3 h at the earliest"),
        # Beyond a day: only within 20 times the 500 steps that it was seen over.
        (Exhaustion(9_000, 10_000, 10 / 3600), "25 to 28 h"),
        (Exhaustion(10_001, 20_000, 10 / 3600), "> 24 h"),
        (Exhaustion(4_000, 5_000, 0.0), "4,000 to 5,000 steps"),
        (Exhaustion(4_000, math.inf, 0.0), "≥ 4,000 steps"),
        (None, ""),
    ],
)
def test_when_it_is_full_is_a_range(left: Exhaustion | None, words: str) -> None:
    assert full_words(trend(left)) == words


def test_what_may_be_a_cache_that_fills_is_only_about() -> None:
    left = Exhaustion(11_400, 13_200, 1 / 3600)
    assert full_words(trend(left, sub="growth")) == "~3 to 4 h"
    assert full_note(trend(left, sub="growth")) == "full in ~3 to 4 h"
    assert full_note(trend(Exhaustion(10_001, 20_000, 10 / 3600))) == "> 24 h to full"


def test_nothing_is_forecast_before_the_verdict_shows_that_it_grows() -> None:
    assert full_words(trend(Exhaustion(100, 200, 1 / 3600), sub=None)) == ""


@pytest.mark.parametrize(
    ("slope", "words"),
    [
        (Slope(0.38 * MIB, 0.36 * MIB, 0.41 * MIB), "+38 MiB (36 to 41)"),
        (Slope(0.021 * MIB, 0.011 * MIB, 0.03 * MIB), "+2.1 MiB (1.1 to 3.0)"),
        (Slope(0.38 * MIB, 0.38 * MIB, 0.38 * MIB), "+38 MiB"),
        (Slope(20.0 * MIB, 19.0 * MIB, 21.5 * MIB), "+2,000 MiB (1,900 to 2,150)"),
    ],
)
def test_the_slope_has_its_interval(slope: Slope, words: str) -> None:
    assert interval_words(trend(slope=slope)) == words


WARMING = picture(verdict=verdict("warming-up"))


@pytest.mark.parametrize(
    ("seen", "given", "known_s", "shown"),
    [
        (picture(), trend(), 500, ("▲", "leak", "warning")),
        (picture(), trend(sub="growth"), 500, ("◆", "grows", "warning")),
        (picture(), trend(sub=None), 500, ("●", "rises", "info")),
        (picture(), None, 500, ("●", "steady", "good")),
        (picture(), None, 29, ("○", "needs more steps", "dim")),
        (WARMING, None, 500, ("○", "needs more steps", "dim")),
        (picture(steps=None), None, 500, ("○", "no steps", "dim")),
    ],
)
def test_what_a_memory_does(
    seen: Snapshot, given: MemoryTrend | None, known_s: int, shown: tuple[str, str, str]
) -> None:
    assert memory_state_words(seen, given, known_s * S) == shown
