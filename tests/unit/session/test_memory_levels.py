"""What the memory charts are drawn from."""

from msgspec import structs

from gpuwatch.tui.model.observations import GpusSeen, OtherProcess
from gpuwatch.tui.session.memory import MemoryLevels
from tests.unit.session.test_memory_stores import GIB, GPU, READING, S


def seen(t_s: int, *others: int) -> GpusSeen:
    held = tuple(
        OtherProcess(pid=i, name="", memory_bytes=gib * GIB, sm_percent=None)
        for i, gib in enumerate(others)
    )
    return GpusSeen(t_ns=t_s * S, gpus=(structs.replace(GPU, others=held),))


def test_what_nobody_reported_has_no_series() -> None:
    levels = MemoryLevels()
    levels.gpus(seen(1))
    assert levels.series() == ()


def test_long_steps_leave_no_holes_and_show_how_far_apart_they_were_read() -> None:
    levels = MemoryLevels()
    for second in (1, 6, 11, 11):
        levels.allocator(structs.replace(READING, t_ns=second * S, allocated=second * GIB))
    allocated = levels.series()[0]
    assert allocated.interval_ns == 5 * S
    reported = allocated.over(2 * S, 3 * S, allocated.levels[0])
    assert reported is not None
    assert reported.mean == 6 * GIB


def test_each_memory_has_its_own() -> None:
    levels = MemoryLevels()
    for second in range(1, 4):
        levels.allocator(structs.replace(READING, t_ns=second * S, allocated=second * GIB))
        levels.process(second * S, 5 * GIB)
        levels.gpus(seen(second, *([2, 1] if second > 1 else [])))
    levels.workers(3 * S, GIB)
    named = {one.name: one for one in levels.series()}
    assert set(named) == {"allocated", "reserved", "others", "host", "workers"}
    assert [point.mean for point in named["allocated"].levels[0]] == [GIB, 2 * GIB, 3 * GIB]
    assert [point.mean for point in named["others"].levels[0]] == [3 * GIB, 3 * GIB]
    assert named["host"].device is None
    assert named["workers"].interval_ns == 10 * S
