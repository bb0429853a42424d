"""Series that only look like a leak, and leaks, as a session would see them.

`python -m tests.bench.memory_growth` prints the table of all families with 100 seeds each. Here are
a few seeds of each.
"""

import random

import pytest

from gpuwatch.tui.verdict.memory.growth import growth
from gpuwatch.tui.verdict.window import MemoryPoint
from tests.unit.verdict.memory_families import (
    EPOCHS,
    LEAKS,
    NULLS,
    constant,
    leaking,
    sawtooth,
    warmed_up,
)
from tests.unit.verdict.memory_runs import GrowthRun, in_a_session, watched
from tests.unit.verdict.windows import MIB, S

STEP_MS = (20.0, 200.0)
"""And steps of a second, which take as many looks as they are: marked as slow."""

FOUND_BY = 1_250
"""Steps in which a leak of 0.1 MB a step must be confirmed."""

MAY_GROW = ("sawtooth", "sawtooth, long epochs", "saturating", "AR(1)")


def looks(name: str, seed: int, step_ms: float) -> GrowthRun:
    """At one run of a family."""
    family = {**NULLS, **LEAKS}[name]
    return watched(warmed_up(family(random.Random(seed))), step_ms, EPOCHS.get(name))


@pytest.mark.parametrize("step_ms", STEP_MS)
@pytest.mark.parametrize("name", NULLS)
def test_what_only_looks_like_a_leak(name: str, step_ms: float) -> None:
    for seed in range(3):
        no_leak(name, looks(name, seed, step_ms))


@pytest.mark.parametrize("step_ms", STEP_MS)
@pytest.mark.parametrize("name", LEAKS)
def test_leaks(name: str, step_ms: float) -> None:
    for seed in range(3):
        found_in_time(looks(name, seed, step_ms))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NULLS, *LEAKS])
def test_steps_of_a_second(name: str) -> None:
    run = looks(name, 0, 1000.0)
    if name in NULLS:
        no_leak(name, run)
    else:
        found_in_time(run)


def no_leak(name: str, run: GrowthRun) -> None:
    """Growth may be reported of some, never as critical; a leak of a sawtooth until its second
    epoch begins."""
    assert run.growth_step is None or name in MAY_GROW
    assert not run.critical_growth
    if name in EPOCHS:
        assert (run.last_leak_step or 0) < 2 * EPOCHS[name]
    else:
        assert run.leak_step is None


def found_in_time(run: GrowthRun) -> None:
    """And before that as growth, and to the end."""
    assert run.leak_step is not None
    assert run.leak_step <= FOUND_BY
    assert run.growth_step is not None
    assert run.growth_step < run.leak_step
    assert run.last_leak_step is not None
    assert run.last_leak_step > 3_900


@pytest.mark.parametrize(
    ("family", "epoch"), [(constant, None), (leaking(0.1), None), (sawtooth, EPOCHS["sawtooth"])]
)
def test_a_session_hands_over_what_is_watched_here(family: object, epoch: int | None) -> None:
    """What the tests above leave out of a session changes nothing but when it looks."""
    series = warmed_up(family(random.Random(1)))  # type: ignore[operator]
    alone, whole = watched(series, 20.0, epoch), in_a_session(series, 20.0, epoch)
    for one, other in (
        (alone.growth_step, whole.growth_step),
        (alone.leak_step, whole.leak_step),
        (alone.last_leak_step, whole.last_leak_step),
    ):
        assert (one is None) == (other is None)
        assert one is None or other is None or abs(one - other) <= 52


def points(mib_of: list[float], steps_apart: int = 5) -> list[MemoryPoint]:
    return [
        MemoryPoint(20 + steps_apart * at, at * S, round(mib * MIB))
        for at, mib in enumerate(mib_of)
    ]


@pytest.mark.parametrize("steps_apart", [1, 5, 25, 60, 500])
def test_blocks_are_of_steps_however_far_apart_points_lie(steps_apart: int) -> None:
    rising = points([1_000 + 0.5 * steps_apart * at for at in range(1_300)], steps_apart)
    found = growth(rising)
    assert found is not None
    assert found.leak
    assert found.slope.middle == pytest.approx(0.5 * MIB, rel=0.01)
    assert len(found.blocks.lows) >= 8
    assert found.blocks.size == max(25, steps_apart)


def test_a_word_early_on_long_steps_is_no_leak() -> None:
    found = growth(points([1_000 + 8 * at for at in range(12)]))
    assert found is not None
    assert not found.leak
    assert growth(points([1_000 + 3 * at for at in range(12)])) is None, "64 MiB are asked for"


def test_steps_that_are_counted_anew_begin_a_new_series() -> None:
    old = points([1_000 + 10 * at for at in range(100)])
    new = points([2_000.0] * 3)
    assert growth(old) is not None
    assert growth([*old, *new]) is None


def test_a_single_jump_is_no_growth() -> None:
    assert growth(points([1_000.0] * 40 + [1_400.0] * 40)) is None


def test_floors_behind_epochs_distinguish_a_leak_from_lists_that_are_cleared() -> None:
    leak = points([1_000 + 0.5 * at for at in range(400)])
    begins = [520, 1_020, 1_520]
    assert (found := growth(leak, begins)) is not None
    assert found.leak
    cleared = points([1_000 + 0.5 * (at % 300) for at in range(599)])
    found = growth(cleared, [20 + 5 * 300])
    assert found is not None
    assert found.gives_back
    assert not found.leak


@pytest.mark.parametrize("seed", range(5))
def test_points_that_jitter_lose_no_growth(seed: int) -> None:
    """A look a second at steps of 20 ms, give or take a fifth: some blocks have no point."""
    chance, step, reported = random.Random(seed), 20, []
    for second in range(60):
        step += chance.randint(40, 60)
        reported.append(MemoryPoint(step, second * S, round((1_000 + 0.5 * step) * MIB)))
    found = [growth(reported[:seen]) for seen in range(14, 60)]
    assert all(found)
    assert found[-1] is not None
    assert found[-1].leak
