"""What the device marks may cost, and that they stay within it."""

import pytest

from gpuwatch.probe.device.rate_limit import (
    KEPT_STEPS,
    MOST_PPM,
    STAMPED_S,
    TokenBucket,
    near_ns,
)
from gpuwatch.probe.peers import PPM

MS = 1_000_000


@pytest.mark.parametrize("step_ms", [1, 2, 5, 20, 100, 3000])
@pytest.mark.parametrize("cost_us", [10, 40, 60, 200])
@pytest.mark.parametrize("ppm", [300, 1_000, PPM, 10 * MOST_PPM])
def test_the_average_stays_within_all_limits(step_ms: int, cost_us: int, ppm: int) -> None:
    bucket, spent_ns, stamped, owed = TokenBucket(), 0, 0, 0.0
    turns = 2_000
    for _ in range(turns):
        owed += 100 / step_ms
        steps, owed = int(owed), owed - int(owed)
        done = min(steps, bucket.affordable())
        stamped += done
        spent_ns += done * cost_us * 1000
        bucket.spend(done * cost_us * 1000, done)
        bucket.earn(100 * MS, ppm, behind_ns=0)
    total = turns * 100 // step_ms
    most_ns = STAMPED_S * turns / 10 * cost_us * 1000
    allowed_ns = min(min(ppm, MOST_PPM) * turns * MS / 10_000, most_ns)
    assert spent_ns <= 1.05 * allowed_ns + KEPT_STEPS * 200_000
    wanted = total * cost_us * 1000
    assert spent_ns >= 0.85 * min(wanted, allowed_ns)


def test_the_first_steps_are_stamped_at_once() -> None:
    assert TokenBucket().affordable() >= 3


def test_a_long_pause_earns_no_long_burst() -> None:
    bucket = TokenBucket()
    bucket.earn(3600 * 1000 * MS, PPM, behind_ns=0)
    bucket.earn(100 * MS, PPM, behind_ns=0)
    assert bucket.affordable() <= 2 * KEPT_STEPS


def test_a_device_that_is_behind_waits_for_nobody() -> None:
    bucket, stamped = TokenBucket(), 0
    for _ in range(100):
        done = min(5, bucket.affordable())
        stamped += done
        bucket.spend(done * 160_000, done)
        bucket.earn(100 * MS, PPM, behind_ns=150 * MS)
    assert stamped > 450


def test_a_device_that_is_no_longer_behind_is_soon_measured_again() -> None:
    """240 steps that were stamped while it was behind are read when it has passed them: 5 ms, for
    which an H200's clock was silent for 5 s."""
    bucket = TokenBucket()
    bucket.spend(6 * 80_000, 6)
    bucket.spend(5 * MS, 0)
    turns = 0
    while not bucket.affordable():
        bucket.earn(250 * MS, 1_000, behind_ns=0)
        turns += 1
    assert turns * 0.25 <= 2


def test_marks_are_near_by_the_length_of_the_step() -> None:
    assert near_ns(1 * MS) == 2_000
    assert near_ns(100 * MS) == 30_000
