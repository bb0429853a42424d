"""The rules that people use today, on steps and readings made by hand."""

import pytest

from evaluation.baselines import host_wait_share, nvidia_smi
from gpuwatch.tui.steps import Step
from tests.unit.verdict.windows import MS, S, step


def steps(count: int, data_ms: float, forward_ms: float) -> list[Step]:
    each_ns = round((data_ms + forward_ms) * MS)
    return [
        step(number + 1, number * each_ns, data_ms=data_ms, forward_ms=forward_ms)
        for number in range(count)
    ]


def test_the_host_wait_share_is_reported_every_ten_steps() -> None:
    looks = list(host_wait_share(steps(25, 30, 70), began_ns=0))
    assert [look.step for look in looks] == [10, 20]
    assert [look.kind for look in looks] == ["input", "input"]
    assert looks[0].at_s == pytest.approx(1.0)
    assert looks[0].share == pytest.approx(0.3)
    assert looks[0].speedup == pytest.approx(1 / 0.7)


def test_below_a_tenth_it_shows_compute_and_promises_nothing() -> None:
    (look,) = host_wait_share(steps(10, 9, 91), began_ns=0)
    assert look.kind == "compute"
    assert look.speedup is None


def test_merged_steps_count_as_many() -> None:
    rows = [step(5, 0, count=5, data_ms=1, forward_ms=1), step(10, 2 * MS, count=5, data_ms=1)]
    (look,) = host_wait_share(rows, began_ns=0)
    assert look.step == 10
    assert look.share == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("readings", "kind"),
    [
        ([20.0] * 10, "input"),
        ([95.0] * 10, "compute"),
        ([10.0, 100.0] * 5, "input"),
        ([60.0] * 10, "compute"),
    ],
)
def test_utilisation_is_taken_for_the_answer(readings: list[float], kind: str) -> None:
    reported = [(second * S, percent) for second, percent in enumerate(readings, start=1)]
    looks = list(nvidia_smi(reported, steps(50, 0, 100), began_ns=0))
    assert looks[-1].kind == kind
    assert looks[-1].at_s == 10
    assert looks[0].step == 10


def test_only_the_last_ten_seconds_are_looked_at() -> None:
    reported = [(second * S, 5.0 if second < 11 else 99.0) for second in range(1, 31)]
    assert [look.kind for look in nvidia_smi(reported, [], began_ns=0)][-1] == "compute"
