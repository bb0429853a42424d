"""A part of the samples and its interval, held against runs whose truth is known."""

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest

from gpuwatch.tui.session.stack_phases.classify import MomentBits
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.statistics import independent, of_moments

SPACING_NS = 100_000_000


def bits_of(held: Iterable[bool]) -> int:
    return sum(1 << index for index, one in enumerate(held) if one)


def row(count: int) -> int:
    """So many samples without a gap."""
    return (1 << count) - 1


def test_of_nothing_anything_may_be_true() -> None:
    share = of_moments(0, 0)
    assert (share.low, share.high) == (0.0, 1.0)


def test_none_of_few_is_not_never() -> None:
    share = of_moments(0, row(20))
    assert share.mean == share.low == 0.0
    assert 0.05 < share.high < 0.2


def test_more_samples_show_more() -> None:
    mixed = [True, False, False, True, False]
    few, many = (of_moments(bits_of(mixed * n), row(5 * n)) for n in (4, 40))
    assert few.mean == many.mean == pytest.approx(0.4)
    assert many.high - many.low < (few.high - few.low) / 2


def test_samples_of_one_long_wait_repeat_each_other() -> None:
    mixed = bits_of(index % 2 == 0 for index in range(100))
    blocks = bits_of(index % 50 < 25 for index in range(100))
    assert independent(mixed, row(100)) == pytest.approx(100)
    assert independent(blocks, row(100)) < 15
    share = of_moments(blocks, row(100))
    assert share.high - share.low > 0.3


def test_a_stretch_of_samples_that_are_all_alike_is_worth_one() -> None:
    """Three chunks of 19, a gap between them: an evaluation fills one of them, and misses two."""
    bits = MomentBits(SPACING_NS)
    chunks = [[at * SPACING_NS for at in range(first, first + 19)] for first in (0, 190, 380)]
    placed = [row(19) << bits.place(chunk) for chunk in chunks]
    assert independent(placed[1], sum(placed)) == pytest.approx(3.0, rel=0.1)


def test_samples_that_follow_one_another_are_one_stretch() -> None:
    bits = MomentBits(SPACING_NS)
    assert bits.place([0, SPACING_NS]) == 0
    assert bits.place([2 * SPACING_NS]) == 2
    assert bits.place([9 * SPACING_NS]) == 4  # bit 3 is the gap


def test_places_of_one_pause_are_one() -> None:
    """Half of its samples are at one line and half at another, in turns."""
    pause = row(20)
    lines = (bits_of(at % 2 == 0 for at in range(20)), bits_of(at % 2 == 1 for at in range(20)))
    places = tuple(FrameShare(0.25, f"line {n}", None, at=at) for n, at in enumerate(lines))
    stacks = Stacks(40, places, 0, (), None, taken=row(40))
    both = stacks.seen(places)
    assert both.mean == pytest.approx(0.5)
    assert (both.low, both.high) == pytest.approx(
        (of_moments(pause, row(40)).low, of_moments(pause, row(40)).high)
    )
    assert stacks.seen(places[:1]).high - stacks.seen(places[:1]).low < both.high - both.low


def test_without_moments_each_sample_counts() -> None:
    place = FrameShare(0.5, "line", None)
    share = Stacks(40, (place,), 0, (), None).seen([place])
    assert share.high - share.low < 0.3


@pytest.mark.parametrize("wait_s", [0.05, 0.4, 1.5])
def test_nine_intervals_in_ten_hold_the_truth(wait_s: float) -> None:
    """Waits and work of random length, sampled every 0.1 s for 30 s: the truth is 40 %."""
    times = [index * 0.1 for index in range(300)]
    assert _holding([times], wait_s, wait_s * 1.5) >= 0.84


@pytest.mark.parametrize("pause_s", [0.05, 0.5, 2.0])
def test_chunks_of_a_watch_hold_the_truth(pause_s: float) -> None:
    """The chunks of a probed run's minute, whose pauses fill them or miss them: with each sample
    counted as independent one interval in four or five held 30 % of pauses of 2 s."""
    starts_s = (0.0, 2.0, 4.0, 14.0, 24.0, 34.0, 44.0, 54.0)
    chunks = [[start + index * 0.1 for index in range(19)] for start in starts_s]
    assert _holding(chunks, pause_s, pause_s * 1.5) >= 0.8


def _holding(chunks: Sequence[Sequence[float]], wait_s: float, work_s: float) -> float:
    """The part of 300 runs in whose interval the truth lies."""
    held = 0
    for seed in range(300):
        share = _sampled(random.Random(seed), wait_s, work_s, chunks)
        held += share[0] <= 0.4 <= share[1]
    return held / 300


def _sampled(
    chance: random.Random, wait_s: float, work_s: float, chunks: Sequence[Sequence[float]]
) -> tuple[float, float]:
    edges, at_s, waits = [0.0], 0.0, True
    while at_s < chunks[-1][-1] + 1:
        at_s += chance.expovariate(1 / (wait_s if waits else work_s))
        edges.append(at_s)
        waits = not waits
    spans = list(pairwise(edges))
    bits = MomentBits(SPACING_NS)
    found = taken = span = 0
    for chunk in chunks:
        times = [start + chance.random() * 0.1 for start in chunk]
        at = bits.place([round(t_s * 1e9) for t_s in chunk])
        for offset, t_s in enumerate(times):
            while spans[span][1] <= t_s:
                span += 1
            taken |= 1 << at + offset
            found |= (span % 2 == 0) << at + offset
    share = of_moments(found, taken)
    return share.low, share.high
