"""Samples of the stacks, sorted by what the GPU did at their moments."""

from collections.abc import Sequence

from msgspec import structs

from gpuwatch.tui.model.observations import Activity, ActivitySeen, StackCount, StacksSeen
from gpuwatch.tui.model.stack_trees import StackTrees, worth_showing
from gpuwatch.tui.session.gpu import GpuStore
from gpuwatch.tui.session.gpu_steps import GpuStepStore
from gpuwatch.tui.session.stacks import StackStore
from gpuwatch.tui.session.stacks_by_gpu_state import (
    GpuInterval,
    Idleness,
    SortedStacks,
    WarmUp,
    WarmUpStore,
    sort_chunk,
    state_of,
    threads_of,
    waits_on_gpu,
    waits_on_host,
)
from gpuwatch.tui.session.step_profile import ProfileSample
from gpuwatch.tui.session.steps import StepStore
from tests.unit.session.making import MS, S, step, steps
from tests.unit.verdict.on_gpu import gpu_step

WAIT = ("train (train.py:3)", "wait (queue.py:180)")
SPIN = ("train (train.py:4)", "forward (model.py:9)")
EVERY_MS = 50


def readings(*busy: float, from_ms: int = 0) -> list[ProfileSample]:
    """One after the other, 100 ms each."""
    return [
        ProfileSample((from_ms + 100 * i) * MS, (from_ms + 100 * (i + 1)) * MS, value)
        for i, value in enumerate(busy)
    ]


def chunk(bits: dict[tuple[str, ...], int], started_ms: int = 0, seen: int = -1) -> StacksSeen:
    """A main thread, sampled every 50 ms for a second from 25 ms on."""
    moments = tuple(range(25, 1_025, EVERY_MS))
    stacks = tuple(
        StackCount(
            role="main",
            pid=1,
            thread="MainThread",
            frames=frames,
            count=held.bit_count(),
            moments=held,
        )
        for frames, held in bits.items()
    )
    return StacksSeen(
        t_ns=(started_ms + 1_100) * MS,
        started_ns=started_ms * MS,
        samples=len(moments),
        stacks=stacks,
        moments_ms=moments,
        seen=seen & (1 << len(moments)) - 1,
    )


def bits_of(moments: Sequence[int]) -> int:
    return sum(1 << i for i in moments)


def test_a_reading_covers_all_its_moments_or_none() -> None:
    assert [state_of(value) for value in (0.0, 4.9, 5.0, 74.9, 75.0, 100.0)] == [
        *("idle", "idle", None, None, "busy", "busy")
    ]


def test_a_moment_near_a_change_is_not_sorted() -> None:
    known = Idleness((), readings(0.0, 0.0, 98.0, 40.0))
    assert known.during(100 * MS, 100 * MS) == "idle"
    assert known.during(191 * MS, 191 * MS) == "idle"
    assert known.during(195 * MS, 195 * MS) is None
    assert known.during(250 * MS, 250 * MS) == "busy"
    assert known.during(350 * MS, 350 * MS) is None
    assert known.during(50 * MS, 150 * MS) == "idle"
    assert known.during(150 * MS, 250 * MS) is None


def test_where_there_is_no_reading_nothing_is_known() -> None:
    known = Idleness((), [*readings(0.0), *readings(0.0, from_ms=300)])
    assert known.during(50 * MS, 50 * MS) == "idle"
    assert known.during(200 * MS, 200 * MS) is None
    assert known.during(50 * MS, 350 * MS) is None
    assert known.during(500 * MS, 500 * MS) is None
    assert Idleness((), ()).during(0, 0) is None


def test_a_stretch_shows_more_than_the_reading_around_it() -> None:
    known = Idleness([GpuInterval(20 * MS, 60 * MS, "idle")], readings(40.0))
    assert known.during(40 * MS, 40 * MS) == "idle"
    assert known.during(55 * MS, 55 * MS) is None
    assert known.during(80 * MS, 80 * MS) is None


def test_the_gpus_clock_shows_the_exposed_wait_of_steps_with_one_fetch() -> None:
    reported = [step(1, 0, data_ms=80, forward_ms=20), step(2, 100, data_ms=80, forward_ms=20)]
    several = [reported[0], step(2, 100, data_ms=80, forward_ms=20, fetches=4)]
    rows = [gpu_step(one, data_ms=60, forward_ms=40, lag_ms=0.5) for one in reported]
    first, second = waits_on_gpu(rows, reported)
    assert (first.end_ns - first.start_ns, first.state) == (60 * MS, "idle")
    assert waits_on_gpu(rows, several) == [first]
    assert second.start_ns == rows[1].gpu_start_ns


def test_without_a_gpu_the_steps_show_when_the_host_waits() -> None:
    assert waits_on_host([step(1, 0, data_ms=80, forward_ms=20)]) == [
        GpuInterval(0, 80 * MS, "idle"),
        GpuInterval(80 * MS, 100 * MS, "busy"),
    ]
    assert waits_on_host([step(1, 0, data_ms=80, forward_ms=20, count=3)]) == []


def test_samples_are_sorted_by_the_known_idle_stretches() -> None:
    known = Idleness((), readings(*[0.0] * 5, *[98.0] * 5))
    seen = chunk({WAIT: bits_of(range(10)), SPIN: bits_of(range(10, 20))})
    sorting = sort_chunk(known, seen, settled=True)
    assert sorting.idle == bits_of(range(10))
    assert sorting.busy == bits_of(range(10, 20))


def test_an_estimated_time_counts_only_if_the_gpu_had_not_changed_since() -> None:
    known = Idleness((), readings(*[0.0] * 3, *[98.0] * 2, *[0.0] * 5))
    seen = chunk({WAIT: bits_of(range(20))}, seen=bits_of([0, 8]))
    sorting = sort_chunk(known, seen, settled=True)
    # Seen at 25 ms: idle until 300. Seen at 425 ms: busy until 500, and what comes later is open.
    assert sorting.idle == bits_of(range(6))
    assert sorting.busy == bits_of([8, 9])


class Stores:
    """All that the sorting looks at."""

    def __init__(self) -> None:
        self.stacks, self.gpus = StackStore(), GpuStore()
        self.on_gpu, self.steps = GpuStepStore(), StepStore()
        self.sorted = SortedStacks(self.stacks, self.gpus, self.on_gpu, self.steps)

    def counted(self, *busy: float, from_ms: int = 0) -> None:
        """Readings by NVML's samples, which come without delay."""
        for one in readings(*busy, from_ms=from_ms):
            row = Activity(index=0, source="samples", interval_ns=100 * MS, busy=one.value)
            self.gpus.seen(ActivitySeen(t_ns=one.end_ns, gpus=(row,)))

    def merged(self, now_ns: int) -> StackTrees:
        trees = self.sorted.merged(now_ns, ())
        assert trees is not None
        return trees


def test_the_trees_of_idle_and_busy_moments() -> None:
    stores = Stores()
    assert stores.sorted.merged(0, ()) is None
    stores.counted(*[0.0] * 5, *[98.0] * 5, 98.0)
    stores.stacks.seen(chunk({WAIT: bits_of(range(10)), SPIN: bits_of(range(10, 20))}))
    trees = stores.merged(2 * S)
    assert (trees.sorted_by, trees.timed) == ("gpu", True)
    assert trees.all.summary.main_samples == 20
    assert [(one.frames, one.samples) for one in trees.idle.merged] == [(WAIT, 10)]
    assert [(one.frames, one.samples) for one in trees.busy.merged] == [(SPIN, 10)]
    assert worth_showing(trees) == "all", "ten samples do not stand for it"


def test_readings_that_come_late_still_sort() -> None:
    stores = Stores()
    stores.counted(0.0)
    stores.stacks.seen(chunk({WAIT: bits_of(range(20))}))
    assert stores.merged(1_200 * MS).idle.samples == 2
    stores.counted(*[0.0] * 10, from_ms=100)
    before = stores.merged(2 * S)
    assert before.idle.samples == 20
    assert stores.merged(9 * S) is stores.merged(10 * S), "nothing has changed"
    assert worth_showing(before) == "idle"


def test_where_no_gpu_shows_the_steps_do() -> None:
    stores = Stores()
    stores.steps.add(steps(3, data_ms=300, forward_ms=100))
    stores.stacks.seen(chunk({WAIT: bits_of(range(20))}))
    trees = stores.merged(2 * S)
    assert trees.sorted_by == "host"
    assert (trees.idle.samples, trees.busy.samples) == (16, 4)


def test_samples_without_times_are_in_all_alone() -> None:
    stores = Stores()
    stores.counted(0.0, 0.0)
    stack = StackCount(role="main", pid=1, thread="t", frames=WAIT, count=19)
    stores.stacks.seen(StacksSeen(t_ns=S, started_ns=0, samples=19, stacks=(stack,)))
    trees = stores.merged(2 * S)
    assert (trees.timed, trees.all.samples) == (False, 19)
    assert (trees.idle.trees, trees.busy.trees) == ((), ())


def test_an_evaluation_before_the_first_step_is_no_part_of_the_steps() -> None:
    """nanoGPT evaluates before it trains: "evaluation takes 68 % of the time", for ten seconds."""
    stores = Stores()
    frames = ("<module> (train.py:264)", "estimate_loss (train.py:224)")
    evaluates = StackCount(role="main", pid=1, thread="t", frames=frames, count=19)
    stores.stacks.seen(StacksSeen(t_ns=S, started_ns=0, samples=19, stacks=(evaluates,)))
    loop = StackCount(role="main", pid=1, thread="t", frames=WAIT, count=10)
    stores.stacks.seen(StacksSeen(t_ns=2 * S, started_ns=S, samples=10, stacks=(loop,)))
    assert stores.merged(3 * S).all.summary.main_samples == 29
    since = stores.sorted.merged(3 * S, (), WarmUp(S, S))
    assert since is not None
    assert since.all.summary.main_samples == 10
    later = stores.sorted.merged(3 * S, ())
    assert later is not None
    assert later.all.summary.main_samples == 29, "a first step that began earlier"


def test_what_the_thread_did_before_the_first_step_is_no_part_of_the_steps() -> None:
    """PyTorch's tutorial reads its data with pickle for two seconds before it trains: "15% of each
    step is Python", in the line that reads, 92 % sure."""
    stores = Stores()
    stores.stacks.seen(chunk({WAIT: (1 << 20) - 1}))
    stores.stacks.seen(chunk({WAIT: 0b11111, SPIN: (1 << 20) - 1 & ~0b11111}, started_ms=1_100))
    assert stores.merged(3 * S).all.summary.main_samples == 40
    since = stores.sorted.merged(3 * S, (), WarmUp(1_325 * MS, 1_325 * MS))
    assert since is not None
    assert since.all.summary.main_samples == 16
    assert [one.samples for one in since.all.merged] == [1, 15]
    worker = StackCount(role="worker", pid=7, thread="t", frames=WAIT, count=19)
    stores.stacks.seen(StacksSeen(t_ns=4 * S, started_ns=3 * S, samples=19, stacks=(worker,)))
    since = stores.sorted.merged(5 * S, (), WarmUp(9 * S, 9 * S))
    assert since is not None
    assert since.all.summary.worker_samples == 19, "workers make the first batches before it"


def test_samples_of_the_warm_up_are_no_part_of_the_steps() -> None:
    """pytorch-cifar chooses kernels for eight seconds in its first step, while its workers wait:
    "busy 11% of the time", and "workers wait for what they fetch" of a loader that computes."""
    stores = Stores()
    stores.stacks.seen(chunk({WAIT: (1 << 20) - 1}))
    since = stores.sorted.merged(3 * S, (), WarmUp(-S, 525 * MS))
    assert since is not None
    assert since.all.summary.main_samples == 10
    worker = StackCount(
        role="worker", pid=7, thread="t", frames=WAIT, count=20, moments=(1 << 20) - 1
    )
    mixed = structs.replace(chunk({WAIT: (1 << 20) - 1}), stacks=(worker,))
    workers = Stores()
    workers.stacks.seen(mixed)
    since = workers.sorted.merged(3 * S, (), WarmUp(225 * MS, 525 * MS))
    assert since is not None
    assert since.all.summary.worker_samples == 14
    assert workers.sorted.merged(3 * S, (), WarmUp(-S, S)) is None


def test_a_warm_up_ends_once_and_not_with_each_step() -> None:
    """Of 500 steps that are held the first moves on: all samples before it were left out again."""
    store, seen = StepStore(), WarmUpStore()
    assert seen.update(store) == WarmUp(0, 0)
    early = steps(6)
    store.add(early)
    assert seen.update(store) == WarmUp(early[0].start_ns, early[-1].end_ns)
    store.add(steps(2_000, first=7, start_ms=early[-1].end_ns / MS))
    whole = seen.update(store)
    assert whole.start_ns == early[0].start_ns
    assert whole.end_ns >= early[-1].end_ns
    store.add(steps(2_000, first=2_007, start_ms=store.last(1)[0].end_ns / MS))
    assert seen.update(store) == whole


def test_a_run_that_was_warm_before_has_no_warm_up() -> None:
    store, seen = StepStore(), WarmUpStore()
    rows = steps(50, first=300)
    store.add(rows)
    known = seen.update(store)
    assert known == WarmUp(rows[0].start_ns, rows[0].start_ns)
    store.add(steps(2_000, first=350, start_ms=rows[-1].end_ns / MS))
    assert seen.update(store) == known


def test_workers_of_an_evaluation_are_left_out() -> None:
    stores = Stores()
    worker = StackCount(role="worker", pid=7, thread="t", frames=WAIT, count=19)
    stores.stacks.seen(StacksSeen(t_ns=S, started_ns=0, samples=0, stacks=(worker,)))
    assert stores.merged(2 * S).all.summary.worker_samples == 19
    assert stores.sorted.merged(3 * S, {7}) is None


def test_workers_of_epochs_that_are_over_are_not_counted_with_those_that_run() -> None:
    def epoch(pids: Sequence[int]) -> StacksSeen:
        workers = [
            StackCount(role="worker", pid=pid, thread="MainThread", frames=WAIT, count=1)
            for pid in pids
        ]
        return StacksSeen(t_ns=0, started_ns=0, samples=1, stacks=tuple(workers))

    chunks = [epoch([first, first + 1]) for first in (10, 10, 20, 30, 30)]
    chunks.insert(2, epoch([10, 11, 20, 21]))
    assert threads_of(chunks, ()) == {"workers": 2}
    assert threads_of(chunks, [11, 21, 31]) == {"workers": 1}
    assert threads_of([chunk({WAIT: 1, SPIN: 2})], ()) == {"main": 1}


def test_one_worker_in_its_turn_counts_as_all_that_there_are() -> None:
    worker = StackCount(role="worker", pid=10, thread="MainThread", frames=WAIT, count=19)
    turn = StacksSeen(t_ns=0, started_ns=0, samples=0, stacks=(worker,), among=(10, 11, 12, 20))
    assert threads_of([turn], ()) == {"workers": 4}
    assert threads_of([turn], [20]) == {"workers": 3}, "that one evaluates"
    assert threads_of([turn], turn.among) == {}
