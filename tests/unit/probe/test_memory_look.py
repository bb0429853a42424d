"""What the training thread reads of the allocator, and how often."""

from typing import Any

import pytest

from gpuwatch.probe.device.memory_look import MemoryLook, allocator_figures
from gpuwatch.tui.messages import Allocated
from tests.unit.probe.fake_device import FakeDevice
from tests.unit.probe.held_clock import HeldClock

MIB = 2**20


def stats(mib: int = 100, **more: Any) -> dict[str, Any]:
    """Torch's counters, nested as `_cuda_memoryStats` gives them."""
    return {
        "allocated_bytes": {"all": {"current": mib * MIB, "peak": 900 * MIB}},
        "reserved_bytes": {"all": {"current": 1_000 * MIB, "peak": 1_100 * MIB}},
        "active_bytes": {"all": {"current": mib * MIB}},
        "num_alloc_retries": 1,
        "num_ooms": 0,
        **more,
    }


def test_a_row_holds_what_this_torch_counts() -> None:
    reported = stats(
        inactive_split_bytes={"all": {"current": 70 * MIB}},
        num_device_alloc=41,
        num_device_free=12,
        allocation={"all": {"current": 512}},
    )
    sizes = (100 * MIB, 1_000 * MIB, 100 * MIB, 900 * MIB, 1_100 * MIB)
    assert allocator_figures(reported) == ((*sizes, 1, 0, 70 * MIB, 41, 512), 12)
    assert allocator_figures(stats()) == ((*sizes, 1, 0, None, None, None), None)


def test_another_allocator_counts_other_things() -> None:
    assert allocator_figures({"allocated_bytes": {"all": {"current": 1, "peak": 1}}}) is None
    assert allocator_figures(None) is None


class Looked:
    """A look at a device that holds so many MiB at the end of each step."""

    def __init__(self) -> None:
        self.clock = HeldClock()
        self.device = FakeDevice(self.clock)
        self.look = MemoryLook(self.device)
        self.looks = 0
        self.reported: list[Allocated] = []

    def steps(self, step_ms: float, *held_mib: int | None) -> None:
        """Steps end; None: the device has no counters."""
        for mib in held_mib:
            self.clock.work(step_ms)
            self.device.stats = None if mib is None else stats(mib)
            if self.look.due(self.clock.now_ns):
                self.looks += 1
                if (seen := self.look.at_end(self.clock.now_ns)) is not None:
                    self.reported.append(Allocated(*seen))


@pytest.fixture
def looked() -> Looked:
    return Looked()


@pytest.mark.parametrize(("step_ms", "a_second"), [(2, 4), (20, 3.85), (240, 2.5), (1_000, 1)])
def test_few_looks_a_second_and_one_report(looked: Looked, step_ms: float, a_second: float) -> None:
    looked.steps(step_ms, *[100] * round(60_000 / step_ms))
    assert looked.looks == pytest.approx(60 * a_second, rel=0.05)
    assert 60_000 / max(1_240, step_ms) <= len(looked.reported) <= 61


def test_steps_longer_than_a_second_are_all_reported(looked: Looked) -> None:
    looked.steps(3_000, *range(100, 120))
    assert [seen.allocated // MIB for seen in looked.reported] == list(range(100, 120))


def test_the_lowest_since_the_last_report_is_reported_beside_the_newest(looked: Looked) -> None:
    looked.steps(250, 500)
    looked.reported.clear()
    looked.steps(250, 140, 120, 180, 160, 300, 310, 320, 330)
    assert [(seen.allocated // MIB, seen.lowest // MIB) for seen in looked.reported] == [
        (160, 120),
        (330, 300),
    ]


def test_another_device_is_reported_for_itself(looked: Looked) -> None:
    looked.steps(250, 500, 100, 100)
    looked.device.index = 1
    looked.steps(250, 400, 400)
    assert [(seen.device, seen.lowest // MIB) for seen in looked.reported] == [(0, 500), (1, 400)]


def test_the_height_at_a_backward_and_the_part_that_may_be_taken(looked: Looked) -> None:
    looked.steps(1_000, 100)
    assert bool(looked.look.wants_backward)
    looked.device.stats = stats(700)
    looked.look.at_backward()
    assert not looked.look.wants_backward
    looked.device.part = 0.5
    looked.steps(1_000, 100)
    assert looked.reported[-1].at_backward == 700 * MIB
    assert looked.reported[-1].fraction == 0.5


def test_a_device_without_counters_is_asked_now_and_then_and_shows_nothing(looked: Looked) -> None:
    looked.steps(50, *[None] * 200)
    assert looked.reported == []
    assert looked.looks == pytest.approx(40, abs=4)
