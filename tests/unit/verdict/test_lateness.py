"""Since when a rank is late, and how often: runs of steps whose truth is known."""

from collections.abc import Callable
from random import Random

import pytest

from gpuwatch.tui.verdict.job.lateness import (
    Lateness,
    LateStep,
    lateness_of,
    rhythm_words,
    since_words,
)

STEP_NS = 100_000_000


def found(share: Callable[[int], float], steps: int = 200, first: int = 1) -> Lateness | None:
    """By the part of each step that the others wait for rank 1."""
    history = [
        LateStep(number, number * STEP_NS, {1: late} if (late := share(number)) else {})
        for number in range(first, first + steps)
    ]
    return lateness_of(history, 1)


def jittering(seed: int) -> Callable[[], float]:
    """Of a step, what ranks that are alike wait for each other: nothing in one step of two."""
    random = Random(seed)
    return lambda: random.choice((0.0, random.uniform(0.02, 0.06)))


@pytest.mark.parametrize("seed", range(20))
def test_a_rank_that_becomes_slow_is_dated_at_that_step(seed: int) -> None:
    jitter = jittering(seed)
    late = found(lambda step: 0.4 + jitter() if step >= 140 else jitter())
    assert late is not None
    assert late.since_step is not None
    assert abs(late.since_step - 140) <= 2
    assert late.known_before == late.since_step - 1
    assert (late.present_from, late.first_step) == (late.since_step, 1)
    assert late.since_ns == late.since_step * STEP_NS
    assert late.of_steps == 1.0


def test_three_steps_are_no_change() -> None:
    late = found(lambda step: 0.4 if step >= 198 else 0.0)
    assert late is not None
    assert late.since_step is None
    ten = found(lambda step: 0.4 if step >= 191 else 0.0)
    assert ten is not None
    assert ten.since_step == 191


def test_a_rank_that_is_always_late_has_no_date() -> None:
    late = found(lambda step: 0.4, first=310)
    assert late is not None
    assert (late.since_step, late.first_step, late.every) == (None, 310, None)


def test_a_rank_that_is_never_late_has_no_lateness() -> None:
    assert found(lambda step: 0.0) is None


def test_a_later_time_counts_and_not_an_earlier_one() -> None:
    """It was late, was not, and is again."""
    late = found(lambda step: 0.4 if 40 <= step < 80 or step >= 150 else 0.0)
    assert late is not None
    assert late.since_step == 150


def test_a_rank_that_is_late_no_more_has_a_present_without_it() -> None:
    late = found(lambda step: 0.4 if step < 150 else 0.0)
    assert late is not None
    assert (late.present_from, late.of_steps) == (150, 0.0)


def test_lateness_that_grows_is_dated_where_it_became_what_it_is() -> None:
    late = found(lambda step: 0.03 if step < 120 else 0.5)
    assert late is not None
    assert late.since_step == 120


def test_a_pause_every_twelve_steps_has_that_rhythm_and_its_date() -> None:
    late = found(lambda step: 0.9 if step >= 96 and step % 12 == 0 else 0.0, steps=300)
    assert late is not None
    assert (late.every, late.since_step) == (12, 96)
    assert late.of_steps == pytest.approx(1 / 12, rel=0.1)
    always = found(lambda step: 0.9 if step % 12 == 0 else 0.0, steps=300)
    assert always is not None
    assert (always.every, always.since_step) == (12, None)


def test_jitter_between_pauses_hides_no_rhythm() -> None:
    """A checkpoint every 12 steps on two H200s: 45 to 166 steps long, and in every second step
    between the same rank is the last by a little."""
    jitter = jittering(3)
    late = found(lambda step: 120.0 if step % 12 == 2 else 2 * jitter(), steps=110)
    assert late is not None
    assert late.every == 12


@pytest.mark.parametrize("seed", range(20))
def test_steps_that_are_late_at_random_have_no_rhythm_and_no_date(seed: int) -> None:
    random = Random(seed)
    late = found(lambda step: 0.5 if random.random() < 0.2 else 0.0, steps=400)
    assert late is not None
    assert (late.every, late.since_step) == (None, None)


@pytest.mark.parametrize("seed", range(20))
def test_late_steps_that_come_in_flocks_are_no_change(seed: int) -> None:
    """Something else takes a core now and then for twenty steps."""
    random, state = Random(seed), [False]

    def share(_: int) -> float:
        if random.random() < 0.05:
            state[0] = not state[0]
        return 0.3 if state[0] else 0.0

    history = [share(step) for step in range(1_000)]
    late = found(lambda step: history[step - 1], steps=1_000)
    assert late is not None
    assert late.since_step is None or late.since_step > 800, "the present flock, not an old one"


def test_steps_that_nobody_read_are_between_both_ends_of_the_date() -> None:
    read = [*range(1, 61), *range(200, 260)]
    history = [LateStep(one, one * STEP_NS, {1: 0.4} if one >= 150 else {}) for one in read]
    late = lateness_of(history, 1)
    assert late is not None
    assert (late.known_before, late.since_step) == (60, 200)


def lateness(since: int | None, before: int | None, every: int | None, age_s: float) -> Lateness:
    return Lateness(1, since, before, 0, 1.0, every, since or 1, 0, age_s)


@pytest.mark.parametrize(
    ("late", "rhythm", "since"),
    [
        (None, "", ""),
        (lateness(None, None, None, 0.0), "", ""),
        (lateness(1240, 1239, None, 240.0), "", "since step 1,240 (4 min ago)"),
        (lateness(1240, 900, None, 30.0), "", "since between steps 900 and 1,240 (30 s ago)"),
        (lateness(1240, 1238, 12, 240.0), " every 12 steps", "since step 1,240 (4 min ago)"),
        (lateness(None, None, 12, 0.0), " every 12 steps", ""),
    ],
)
def test_when_a_rank_is_late_in_words(late: Lateness | None, rhythm: str, since: str) -> None:
    assert (rhythm_words(late), since_words(late)) == (rhythm, since)
