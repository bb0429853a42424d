"""One step as the samples of many show it: known profiles, sampled as a device does."""

import random
from collections.abc import Callable
from itertools import accumulate, pairwise
from math import sqrt

import msgspec
import pytest

from gpuwatch.tui.model.observations import Activity, ActivitySeen
from gpuwatch.tui.model.snapshot import Scope
from gpuwatch.tui.session.step_profile import PARTS, ProfileSample, folded
from gpuwatch.tui.steps import Step
from tests.unit.session.making import delivered, judged, session, step
from tests.unit.verdict.on_gpu import gpu_step

MS = 1_000_000
Profile = Callable[[float], float]


def ms_of(row: Step) -> float:
    """Its length."""
    return (row.end_ns - row.start_ns) / MS


def waits_then_works(phase: float) -> float:
    """60 % of a step idle, then busy."""
    return 0.0 if phase < 0.6 else 95.0


def busy(phase: float) -> float:
    """A GPU that is never idle."""
    return 97.0


def sampled(
    step_ms: float,
    profile: Profile,
    *,
    jitter: float = 0.02,
    late_ms: float = 0.0,
    unlike: float = 0.0,
    samples: int = 240,
    seed: int = 1,
) -> tuple[list[ProfileSample], list[int]]:
    """Readings of 100 ms with a noise of 1.5 points, and the edges of the steps.

    `jitter`: of the steps' lengths, relative. `unlike`: part of the steps that take three times as
    long. `late_ms`: the readings' times are up to so much later than what the device counted.
    """
    chance = random.Random(seed)
    fine = 200
    within = [profile((i + 0.5) / fine) / fine for i in range(fine)]
    until = [0.0, *accumulate(within)]
    edges, sums = [0.0], [0.0]
    while edges[-1] < 100.0 * samples + 2_000:
        length = step_ms * (1 + chance.gauss(0, jitter)) * (3 if chance.random() < unlike else 1)
        edges.append(edges[-1] + length)
        sums.append(sums[-1] + length * until[-1])

    def total(t_ms: float, at: int) -> tuple[float, int]:
        """What the device has counted until then."""
        while edges[at + 1] <= t_ms:
            at += 1
        length = edges[at + 1] - edges[at]
        phase = (t_ms - edges[at]) / length * fine
        whole = min(fine - 1, int(phase))
        part = until[whole] + (until[whole + 1] - until[whole]) * (phase - whole)
        return sums[at] + length * part, at

    readings: list[ProfileSample] = []
    before, at = total(500.0, 0)
    reported_ms = 500.0
    for i in range(1, samples + 1):
        end_ms = 500.0 + 100.0 * i
        counted, at = total(end_ms, at)
        value = min(100.0, max(0.0, (counted - before) / 100.0 + chance.gauss(0, 1.5)))
        start_ms, reported_ms = reported_ms, end_ms + chance.random() * late_ms
        readings.append(ProfileSample(round(start_ms * MS), round(reported_ms * MS), value))
        before = counted
    return readings, [round(edge * MS) for edge in edges]


def off_by(scope: Scope, profile: Profile) -> float:
    """Root mean square over the parts, points."""
    fine = 20
    truth = [
        sum(profile((part + (i + 0.5) / fine) / PARTS) for i in range(fine)) / fine
        for part in range(PARTS)
    ]
    known = [mean for mean in scope.mean if mean is not None]
    return sqrt(sum((a - b) ** 2 for a, b in zip(known, truth, strict=True)) / PARTS)


@pytest.mark.parametrize("step_ms", [45, 61, 83, 130, 170, 253, 310, 470, 700])
def test_a_profile_comes_back(step_ms: float) -> None:
    scope = folded(*sampled(step_ms, waits_then_works), "gpm 100 ms")
    assert scope is not None
    assert off_by(scope, waits_then_works) < (9 if step_ms > 50 else 20)
    assert scope.step_ns == pytest.approx(step_ms * MS, rel=0.02)
    assert scope.steps == pytest.approx(24_000 / step_ms, rel=0.05)


@pytest.mark.parametrize("step_ms", [130, 253, 700])
def test_a_gpu_that_is_never_idle_is_flat(step_ms: float) -> None:
    scope = folded(*sampled(step_ms, busy), "gpm 100 ms")
    assert scope is not None
    assert off_by(scope, busy) < 3


@pytest.mark.parametrize("step_ms", [83, 130, 170, 253, 310, 470, 700, 1240])
def test_times_that_are_a_little_late_blur_it(step_ms: float) -> None:
    scope = folded(*sampled(step_ms, waits_then_works, late_ms=10), "gpm 100 ms")
    assert scope is not None
    assert off_by(scope, waits_then_works) < 3 + 2_400 / step_ms


def test_it_shows_how_sure_it_is() -> None:
    scope = folded(*sampled(130, waits_then_works), "gpm 100 ms")
    assert scope is not None
    for low, mean, high in zip(scope.low, scope.mean, scope.high, strict=True):
        assert low is not None
        assert mean is not None
        assert high is not None
        assert 0 <= low <= mean <= high <= 100


@pytest.mark.parametrize("step_ms", [20, 100, 200])
def test_samples_that_cannot_show_do_not(step_ms: float) -> None:
    assert folded(*sampled(step_ms, waits_then_works), "gpm 100 ms") is None


@pytest.mark.parametrize("step_ms", [100.0, 200.0, 300.0, 400.0])
def test_steps_that_keep_time_with_the_samples_are_not_folded(step_ms: float) -> None:
    assert folded(*sampled(step_ms, waits_then_works, jitter=0.0), "gpm 100 ms") is None


def test_steps_that_are_not_alike_are_not_folded() -> None:
    assert folded(*sampled(170, waits_then_works, jitter=0.3), "gpm 100 ms") is None


def test_a_few_long_steps_are_left_out() -> None:
    scope = folded(*sampled(170, waits_then_works, unlike=0.02), "gpm 100 ms")
    assert scope is not None
    assert off_by(scope, waits_then_works) < 6


def test_times_that_are_wrong_are_found_out() -> None:
    readings, edges = sampled(130, waits_then_works)
    chance = random.Random(3)
    wrong = [
        ProfileSample(one.start_ns + moved, one.end_ns + moved, one.value)
        for one in readings
        for moved in [round(chance.random() * 90 * MS)]
    ]
    assert folded(wrong, edges, "gpm 100 ms") is None


def test_too_little_is_nothing() -> None:
    readings, edges = sampled(130, waits_then_works)
    assert folded(readings[:60], edges, "gpm 100 ms") is None
    assert folded(readings, edges[:8], "gpm 100 ms") is None
    assert folded([], [], "gpm 100 ms") is None


def test_a_session_folds_what_it_was_given() -> None:
    readings, edges = sampled(170, waits_then_works)
    held, _ = session()
    for start_ns, end_ns, value in readings:
        row = Activity(index=0, source="gpm", interval_ns=end_ns - start_ns, busy=value, sm=value)
        held.ingest(ActivitySeen(t_ns=end_ns, gpus=(row,)))
    made = [
        step(number, begin_ns / MS, data_ms=(end_ns - begin_ns) / MS)
        for number, (begin_ns, end_ns) in enumerate(pairwise(edges), 1)
    ]
    on_gpu = [gpu_step(one, data_ms=0.6 * ms_of(one), forward_ms=0.4 * ms_of(one)) for one in made]
    reported = delivered(made)
    held.ingest(
        msgspec.structs.replace(
            reported, batch=msgspec.structs.replace(reported.batch, gpu_steps=on_gpu)
        )
    )
    scope = judged(held, edges[-1], 0.0).scope
    assert scope is not None
    assert off_by(scope, waits_then_works) < 16  # its place is right to one of the 12 parts
    assert judged(held, edges[-1] + MS, 0.0).scope is scope
