"""A part of the samples and its interval, held against runs whose truth is known."""

import random
from itertools import pairwise

import pytest

from gpuwatch.tui.session.stack_phases.classify import effective, fraction_of


def test_of_nothing_anything_may_be_true() -> None:
    share = fraction_of([])
    assert (share.low, share.high) == (0.0, 1.0)


def test_none_of_few_is_not_never() -> None:
    share = fraction_of([False] * 20)
    assert share.mean == share.low == 0.0
    assert 0.05 < share.high < 0.2


def test_more_samples_show_more() -> None:
    few, many = (fraction_of([True, False, False, True, False] * n) for n in (4, 40))
    assert few.mean == many.mean == pytest.approx(0.4)
    assert many.high - many.low < (few.high - few.low) / 2


def test_samples_of_one_long_wait_repeat_each_other() -> None:
    mixed = [index % 2 == 0 for index in range(100)]
    blocks = [index % 50 < 25 for index in range(100)]
    assert effective(mixed) == pytest.approx(100)
    assert effective(blocks) < 15
    assert fraction_of(blocks).high - fraction_of(blocks).low > 0.3


@pytest.mark.parametrize("wait_s", [0.05, 0.4, 1.5])
def test_nine_intervals_in_ten_hold_the_truth(wait_s: float) -> None:
    """Waits and work of random length, sampled every 0.1 s for 30 s: the truth is 40 %."""
    held = 0
    for seed in range(300):
        share = fraction_of(_sampled(random.Random(seed), wait_s, wait_s * 1.5, 300))
        held += share.low <= 0.4 <= share.high
    assert held >= 0.84 * 300


def _sampled(chance: random.Random, wait_s: float, work_s: float, count: int) -> list[bool]:
    edges, at_s, waits = [0.0], 0.0, True
    while at_s < count * 0.1 + 1:
        at_s += chance.expovariate(1 / (wait_s if waits else work_s))
        edges.append(at_s)
        waits = not waits
    times = [(index + chance.random()) * 0.1 for index in range(count)]
    spans = list(pairwise(edges))
    found, span = [], 0
    for t_s in times:
        while spans[span][1] <= t_s:
            span += 1
        found.append(span % 2 == 0)
    return found
