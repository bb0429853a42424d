"""What a session keeps of memory, and of what may hold it."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from gpuwatch.tui.model.observations import GpuUse
from gpuwatch.tui.session.events import RunEventStore
from gpuwatch.tui.session.memory import MemorySeries
from gpuwatch.tui.session.window_builder import room_of
from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.verdict.window import MemoryPoint, RunEvent
from tests.unit.session.making import delivered, judged, loader, process, processes, session, step

S = 1_000_000_000
MIB = 1024**2
GIB = 1024 * MIB


def test_a_series_reaches_back_to_the_beginning_in_bounded_room() -> None:
    series = MemorySeries(most=100, spacing_ns=S)
    for second in range(5_000):
        series.add(MemoryPoint(second, second * S, 1_000 + second % 7))
        series.add(MemoryPoint(second, second * S + 1, 0))  # too soon
    points = series.all()
    assert len(points) <= 100
    assert [point.step for point in points[-50:]] == list(range(4_950, 5_000))
    older = points[:-50]
    assert older[0].step < 256
    assert {point.bytes for point in older[:-1]} == {1_000}, "of each stretch the lowest"
    apart = [after.step - before.step for before, after in pairwise(older[:-1])]
    assert min(apart) >= 100
    assert max(apart) <= 300


def test_moments_of_steps() -> None:
    store = RunEventStore()
    store.step_ended(step(3, 0, forward_ms=5))
    store.step_ended(step(4, 5, forward_ms=5, evaluation_ms=9, checkpoint_ms=1))
    assert store.all() == (RunEvent(4, "evaluation"), RunEvent(4, "checkpoint"))


def test_epochs_are_when_a_training_loader_begins_again() -> None:
    store = RunEventStore()
    store.loader_reported(0, loader())
    store.loader_reported(50, loader(batch_bytes=1_000))
    store.loader_reported(100, loader(iterations=2))
    store.loader_reported(100, loader(key=2))
    store.loader_reported(101, loader(key=2, evaluation=True))
    store.loader_reported(200, loader(iterations=3, worker_pids=(21, 22)))
    assert store.all() == (RunEvent(100, "epoch"), RunEvent(200, "epoch"), RunEvent(200, "workers"))


def test_a_loader_made_anew_each_epoch_begins_one() -> None:
    store = RunEventStore()
    for epoch in range(3):
        store.loader_reported(100 * epoch, loader(key=epoch + 1))
    assert [moment.step for moment in store.all()] == [100, 200]


def test_pages_of_files_are_no_growth() -> None:
    store, engine = session()
    for second in range(1, 121):
        mapped = 10 * second * MIB
        made = step(second, 1_000.0 * (second - 1), forward_ms=1_000)
        reported = delivered([made], rss_bytes=500 * MIB + mapped, file_bytes=mapped)
        store.ingest(reported)
        main = process(1, rss_bytes=500 * MIB + mapped, file_bytes=mapped)
        worker = process(11, "worker", pss_bytes=90 * MIB + mapped, file_bytes=mapped)
        store.ingest(processes(1_000.0 * second + 500, main, worker))
        seen = judged(store, second * S + S // 2, 0.0).memory
    assert seen.slope_bytes_per_100_steps is None
    assert seen.host_rss_bytes == 1_700 * MIB, "what is resident is shown as it is"
    assert {point.bytes for point in engine.windows[-1].memory} == {500 * MIB}
    assert {point.bytes for point in engine.windows[-1].worker_memory} == {90 * MIB}


GPU = GpuUse(
    uuid="GPU-1",
    index=0,
    name="H200",
    utilization_percent=None,
    memory_used_bytes=50 * GIB,
    memory_total_bytes=140 * GIB,
    target_memory_bytes=None,
    power_w=None,
    sm_clock_mhz=None,
    temperature_c=None,
)
READING = GpuMemory(S, 10, 0, 20 * GIB, 30 * GIB, 20 * GIB, 25 * GIB, 30 * GIB, None, 0, 0)


@pytest.mark.parametrize(
    ("gpus", "memory", "gib"),
    [
        ((), (READING,), None),
        ((GPU,), (), 90),  # what is free, as long as nobody reports what is held
        ((GPU,), (READING,), 120),  # 20 GiB are other processes' and the context's
        ((GPU,), (replace(READING, fraction=0.5),), 70),
        ((GPU,), (replace(READING, fraction=1.0),), 120),
    ],
)
def test_what_the_allocator_could_grow_to(
    gpus: tuple[GpuUse, ...], memory: tuple[GpuMemory, ...], gib: int | None
) -> None:
    assert room_of(gpus, memory) == (None if gib is None else gib * GIB)


def test_a_window_holds_the_moments_the_warm_up_and_what_each_worker_has_grown_by() -> None:
    store, engine = session()
    start_ms = 0.0
    for number in range(1, 701):
        parts = {"forward_ms": 100.0, "evaluation_ms": 50.0 if number == 300 else 0.0}
        made = step(number, start_ms, **parts)
        start_ms = made.end_ns / 1e6
        store.ingest(delivered([made]))
        if number % 50 == 0:
            judged(store, made.end_ns, 0.0)
    for at_ms, grown in ((80_000, 0), (90_000, 40)):
        pids = (11, 12)
        workers = [
            process(pid, "worker", pss_bytes=(100 + grown * (pid - 10)) * MIB) for pid in pids
        ]
        store.ingest(processes(at_ms, process(1), *workers))
    judged(store, 91 * S, 0.0)
    newest = engine.windows[-1]
    assert newest.moments == (RunEvent(300, "evaluation"),)
    assert 5 <= newest.warm_step <= 10, "though the first steps are not held any more"
    assert newest.workers_grown == (40 * MIB, 80 * MIB)
