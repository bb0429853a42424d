"""What the loader can deliver: the cost of a batch to a worker, what more of them give."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor
from typing import Final

from ..messages import Loader
from ..steps import Step
from .on_device import on_device
from .statistics import Share, of_samples
from .step_time import Spent, paused_of, spent
from .thresholds import causes as limits
from .thresholds.hysteresis import ENTER_SHARE, READY_ENOUGH
from .thresholds.samples import LEAST_STACKS
from .window import RunFacts, StepWindow

MOST_IN_TURN: Final = 20_000
"""Fetches of a window in which they are followed one by one: more is what no training has, and what
one message can say."""
FOLLOWED: Final = 2_500
"""Of these the newest that are followed, and the rest of their step. Their mean is known to a
fiftieth of their spread: to less than the 5 % within which numbers of workers count as equal, but
for spreads of more than 2.5 times the mean. Each number costs 0.5 ms then."""
SAME_UPDATE: Final = (
    "the same update, where the loss is a mean over samples which do not see each other"
)
"""Of one batch for several that are accumulated: not of BatchNorm's statistics, negatives within a
batch, a state that is carried on, or a mean over what varies from batch to batch."""
PREFETCH: Final = 2
"""Batches that a worker of a DataLoader makes ahead: `prefetch_factor`'s default."""
RECEIVING_NS: Final = 1_300_000.0
RECEIVING_LEAST_NS: Final = 700_000.0
"""What the training thread takes to receive a batch from a worker, whatever its size, where the net
computes on the same cores: the median and the least of 66 generated runs on two. On more cores
nobody measured it."""
LEAST_TO_MERGE: Final = 2
"""Samples of a batch: those of one at a time may be of any size."""
SAME_MICRO_BATCHES: Final = 0.8
"""Of the steps: the last of an epoch has fewer."""
HANDED_NS: Final = 200_000.0
"""What it waits where a thread of the loader's has received the batch and pinned it: the median of
82 generated runs on an H100 and H200s."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """A number of workers that pays here."""

    workers: int
    batch_ns: float
    """Time of one batch with them, at best."""
    wanted: int
    """Workers that would hide the loading, were there cores enough."""


@dataclass(frozen=True, slots=True)
class Feeding:
    """The loader over the window. Times are ns a batch (one fetch)."""

    workers: int | None
    """0 loads in the training thread; None where unknown."""
    batch_ns: float
    """P: wall time of a batch, of the training alone."""
    wait_ns: float
    busy: float | None
    """Part of the time in which a worker makes a batch."""
    make_ns: float | None
    """S: what a batch costs one worker, in wall time: S = W * busy / rate."""
    make_cpu_ns: float | None
    """The same in CPU time."""
    main_cpu_ns: float
    """CPU time of the training process for a batch, without loading: all its threads."""
    cores: float | None
    on_gpu_ns: float = 0.0
    """What is left of a batch's time on the GPU's clock without the wait that left the GPU idle; 0
    where that clock is not read."""
    on_cpu: bool = False
    """No GPU computes beside the host."""
    made_ns: tuple[float, ...] = ()
    """What each batch costs the training thread that makes it, in their order."""
    beside_ns: float = 0.0
    """What evaluations, checkpoints, compilations and the starts of epochs take for each batch,
    where they came more than once: no worker takes that away."""

    @property
    def other_ns(self) -> float:
        """P_other: what is left of a batch's time without the wait. The host's, or the GPU's where
        that is longer: a wait that hid behind the GPU's work gives nothing back."""
        return max(0.0, self.batch_ns - self.wait_ns, self.on_gpu_ns)

    @property
    def receiving_ns(self) -> float:
        """What receiving a batch from a worker takes of the training thread, however many there
        are. Beside a GPU it hides behind the GPU's work, or was measured as a wait."""
        if not self.on_cpu:
            return 0.0
        usual_ns = RECEIVING_NS if (self.cores or 1.0) <= 2 else RECEIVING_LEAST_NS
        return min(self.wait_ns, usual_ns) if self.workers else usual_ns

    def without_workers(self, taken: float, queued: float) -> float | None:
        """Time of a batch, ns, where the training thread makes each batch itself: it receives none,
        and has back what workers `taken` of its time. A batch costs it what it costs a worker that
        has a core: `queued` of the time one had none. None where that is not known."""
        if not self.workers or self.make_ns is None or self.make_cpu_ns is None:
            return None
        waited_ns = queued * self.workers * self.batch_ns
        make_ns = max(self.make_cpu_ns, self.make_ns - waited_ns)
        return max(0.0, self.other_ns - taken * self.batch_ns) + make_ns

    @property
    def sleeps(self) -> bool:
        """Most of what the training thread spends on a batch is no work but waiting: for a server,
        an object store, a disk. Workers that wait need no core."""
        if self.workers != 0 or self.make_cpu_ns is None:
            return False
        return self.make_cpu_ns < limits.WORKER_CPU_WAITS / 100 * self.wait_ns

    @property
    def fills_cores(self) -> bool:
        """Making a batch and training on it leave the cores no time that workers could use."""
        if not self.cores or self.make_cpu_ns is None:
            return False
        needed = (self.make_cpu_ns + self.main_cpu_ns) / self.cores
        return needed > self.batch_ns * (1 - limits.NEAR_BEST)

    def with_workers(self, workers: int) -> float:
        """Time of a batch, ns, with so many workers: `at_best`, and no less than batches leave that
        do not all take as long (`_in_turn`)."""
        best_ns = self.at_best(workers)
        return max(best_ns, self._in_turn(workers)) if self.made_ns else best_ns

    def at_best(self, workers: int) -> float:
        """P' = max(P - wait + r, S/W, (S_cpu + main_cpu + r) / cores), r for receiving it: with so
        many workers, were all batches alike.

        The first two are the training's own and the loader's. The third is the machine's: workers
        and the training share the cores, and a CPU-only training wants them all for itself.
        """
        assert self.make_ns is not None
        taken_ns = self.receiving_ns
        least = max(self.other_ns + taken_ns, self.make_ns / max(1, workers))
        if self.cores and self.make_cpu_ns is not None:
            least = max(least, (self.make_cpu_ns + self.main_cpu_ns + taken_ns) / self.cores)
        return least

    def _in_turn(self, workers: int) -> float:
        """Time of a batch, ns, where these batches are made by workers: each asked for when the
        one `PREFETCH` a worker before it is taken, by the workers in turn, and taken in order. One
        slow batch in ten hides behind no more steps than there are batches ahead. (Thousands are
        followed for each number of workers: the loop has no call in it.)"""
        ready, taken = [0.0] * workers, [0.0] * len(self.made_ns)
        other_ns, receiving_ns = self.other_ns, self.receiving_ns
        ahead, now = PREFETCH * workers, 0.0
        for at, made_ns in enumerate(self.made_ns):
            begun = ready[at % workers]
            if at >= ahead and taken[at - ahead] > begun:
                begun = taken[at - ahead]
            ready[at % workers] = done = begun + made_ns
            taken[at] = now = done if done > now else now
            now = now + other_ns + receiving_ns
        return (now - taken[0]) / len(self.made_ns)

    def plan(self, per_core: int = 1) -> WorkerPlan | None:
        """The fewest workers within 5 % of the best, at most `per_core` for each core."""
        if not self.make_ns:
            return None
        wanted = limits.MOST_WORKERS
        if self.other_ns > 0:
            wanted = min(wanted, ceil(limits.WORKER_HEADROOM * self.make_ns / self.other_ns))
        most = wanted
        if self.cores is not None:
            most = min(wanted, max(1, floor(self.cores)) * per_core)
        fewest, batch_ns = _fewest(self, most)
        return WorkerPlan(fewest, batch_ns, wanted)


@lru_cache(maxsize=4)
def _fewest(feeding: Feeding, most: int) -> tuple[int, float]:
    """The fewest workers within 5 % of the best number up to `most`, and the time of a batch with
    them, ns. Worked out once a window: several rules and notes ask for it.

    A number is tried on thousands of batches. So those are left out that are too slow even at
    their best, and those behind the answer once it is within 5 % of what none of them can beat.
    Halving would miss it, as more workers may be slower: all slow batches, every tenth say, may
    become one worker's.
    """
    near, floor_ns = 1 + limits.NEAR_BEST, feeding.at_best(most)
    times, fewest = {most: feeding.with_workers(most)}, most
    for workers in range(1, most):
        if feeding.at_best(workers) > near * min(times.values()):
            continue
        times[workers] = feeding.with_workers(workers)
        best_ns = min(times.values())
        fewest = min(one for one, ns in times.items() if ns <= near * best_ns)
        if fewest < most and times[fewest] <= near * floor_ns:
            break
    return fewest, times[fewest]


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """Of an update that accumulates gradients."""

    count: int
    size: int
    """Samples of each."""

    @property
    def merged(self) -> str:
        """ "one batch of 16 for each update instead of 4 of 4"."""
        whole = self.count * self.size
        return f"one batch of {whole} for each update instead of {self.count} of {self.size}"


def micro_batches(window: StepWindow) -> MicroBatches | None:
    """The batches of the one loader that an update has, with a backward for each. None where it is
    one or they differ, and where samples may not be put together: single ones, or of sizes that
    vary."""
    loader = training_loader(window)
    if loader is None or (loader.batch_size or 0) < LEAST_TO_MERGE or loader.varies:
        return None
    if sum(not one.evaluation for one in window.loaders) > 1:
        return None  # of several tasks, which are no one batch
    each = Counter(
        row.fetches // max(1, row.count)
        for row in window.steps
        if row.fetches == row.backwards and row.optimizer_steps == row.count
    )
    ((count, rows),) = each.most_common(1) or ((0, 0),)
    is_usual = rows >= SAME_MICRO_BATCHES * len(window.steps)
    return MicroBatches(count, loader.batch_size or 0) if count > 1 and is_usual else None


def training_loader(window: StepWindow) -> Loader | None:
    """The first that feeds no evaluation; None without one."""
    return next((one for one in window.loaders if not one.evaluation), None)


def evaluates_the_same(window: StepWindow) -> Loader | None:
    """An evaluation's loader whose dataset is of the training's kind; None without one."""
    own = training_loader(window)
    if own is None or own.dataset is None:
        return None
    alike = [one for one in window.evaluation_loaders if one.dataset == own.dataset]
    return max(alike, key=lambda one: one.batches or 0, default=None)


@lru_cache(maxsize=4)
def feeding(window: StepWindow) -> Feeding | None:
    """The loader over the window; None when nothing was fetched. Worked out once a window."""
    total = spent(window.steps)
    batch_ns, wait_ns = total.batch_ns, total.wait_ns
    if batch_ns is None or wait_ns is None or total.wall_ns <= 0:
        return None
    device = on_device(window)
    every_ns = total.wall_ns / total.fetches  # pauses too: shares of samples cover them as well
    workers = window.loaders[0].num_workers if window.loaders else None
    busy = make_ns = make_cpu_ns = None
    made_ns: tuple[float, ...] = ()
    if workers:
        sampled = _busy(window, total)
        busy = None if sampled is None else sampled.mean
        if busy is not None:
            make_ns = workers * busy * every_ns
        if window.workers is not None and window.workers.cpu_percent is not None:
            make_cpu_ns = workers * window.workers.cpu_percent / 100 * every_ns
            if make_ns is not None:
                make_cpu_ns = min(make_ns, make_cpu_ns)
    elif workers == 0:
        make_ns, make_cpu_ns = wait_ns, min(wait_ns, ran_at_most(window) * every_ns)
        if total.fetches <= MOST_IN_TURN and all(row.count == 1 for row in window.steps):
            made_ns = _newest_made(window.steps)
    main_cpu_ns = batch_ns - wait_ns
    if window.host.main_cpu_percent is not None:
        used = window.host.main_cpu_percent / 100
        if window.gpu_present:
            used = min(used, limits.MOST_CORES_BESIDE_GPU)
        used_ns = used * every_ns
        main_cpu_ns = used_ns - (make_cpu_ns or 0.0) if workers == 0 else used_ns
    return Feeding(
        workers=workers,
        batch_ns=batch_ns,
        wait_ns=wait_ns,
        busy=busy,
        make_ns=make_ns,
        make_cpu_ns=make_cpu_ns,
        main_cpu_ns=max(0.0, main_cpu_ns),
        cores=window.cores,
        on_gpu_ns=0.0 if device is None else max(0.0, batch_ns - device.exposed_share * wait_ns),
        on_cpu=not window.gpu_present,
        made_ns=made_ns,
        beside_ns=every_ns - batch_ns if _pauses(window.steps) > 1 else 0.0,
    )


def ran_at_most(window: RunFacts) -> float:
    """Part of the time in which the training thread would run, whatever for, had it never to wait
    for a core: it sleeps in the rest. What others do to the cores changes nothing of that. 1 where
    the kernel does not report it."""
    ran, queued = window.host.thread_cpu, window.host.run_delay
    if ran is None or queued is None:
        return 1.0
    free = 1.0 - queued
    return ran / free if ran < free else 1.0


def _pauses(rows: Sequence[Step]) -> int:
    """Steps that hold something beside the training."""
    return sum(paused_of(row) + row.startup_ns > 0 for row in rows)


def _newest_made(rows: Sequence[Step]) -> tuple[float, ...]:
    """What the newest batches took the training thread, oldest first."""
    newest: list[float] = []
    for row in reversed(rows):
        if len(newest) >= FOLLOWED:
            break
        newest += reversed(_each_ns(row))
    return tuple(reversed(newest))


def _each_ns(row: Step) -> tuple[float, ...]:
    """What each fetch of a step took: the longest, and the others alike."""
    if row.fetches < 2:
        return (row.data_ns,) * row.fetches
    rest = max(0, row.data_ns - row.data_max_ns) / (row.fetches - 1)
    return (row.data_max_ns, *[rest] * (row.fetches - 1))


def loader_floor(window: StepWindow) -> float:
    """S/W over P: no cause outside the loader can be worth more than what this leaves, 0 to 1.

    Workers that are busy all the time are the limit themselves, whatever else is removed.
    """
    return loader_floor_sampled(window).mean


def loader_floor_sampled(window: StepWindow) -> Share:
    """The same with the interval of the samples that it comes from, where it does."""
    nothing = Share(0.0, 0.0, 0.0)
    workers = window.loaders[0].num_workers if window.loaders else None
    return (_busy(window, spent(window.steps)) or nothing) if workers else nothing


def often_late(window: StepWindow) -> bool:
    """Workers' batches that lie ready for fewer than 95 % of the fetches: then what is gained
    elsewhere may be lost to them."""
    workers = window.loaders[0].num_workers if window.loaders else None
    counted = [row for row in window.steps if row.ready is not None]
    steps = sum(row.count for row in counted)
    ready = sum(min(row.ready or 0, row.count) for row in counted)
    return bool(workers) and ready < READY_ENOUGH * steps


def all_ready(window: StepWindow) -> bool:
    """Nearly every batch is known to have lain ready when it was fetched."""
    return any(row.ready is not None for row in window.steps) and not often_late(window)


def all_made(window: StepWindow) -> bool:
    """Nearly always all batches that workers make ahead were made by the time that one was fetched:
    then none was late, whatever the training waited for. (Of a few that lie ready the next in order
    may be missing.) Of a step with several fetches only what lay ready before the first is known:
    an update may fill a queue that eight micro-batches empty, and the others may be another
    loader's."""
    loader = window.loaders[0] if window.loaders else None
    if loader is None or not loader.num_workers:
        return False
    ahead = loader.num_workers * (loader.prefetch_factor or PREFETCH)
    rows = [row for row in window.steps if row.fetches <= row.count]
    counted = [row.ready for row in rows if row.ready is not None]
    made = sum(ready >= max(1, ahead - 1) for ready in counted)
    return bool(counted) and made >= READY_ENOUGH * len(counted)


def _busy(window: StepWindow, total: Spent) -> Share | None:
    """Part of the time in which a worker makes a batch: stacks, else the wait, else their CPU."""
    stacks = window.stacks
    enough = stacks is not None and stacks.worker_samples >= LEAST_STACKS
    if stacks is not None and enough and stacks.worker_idle_share is not None:
        return of_samples(1.0 - stacks.worker_idle_share, stacks.worker_samples)
    device = on_device(window)
    exposed_share = 1.0 if device is None else device.exposed_share
    late = not (all_made(window) if window.gpu_present else all_ready(window))
    if late and exposed_share * total.data_ns >= ENTER_SHARE * total.wall_ns:
        return Share(1.0, 1.0, 1.0)  # a loader that is the limit is never idle
    if window.workers is not None and window.workers.cpu_percent is not None:
        counted = min(1.0, max(0.0, window.workers.cpu_percent / 100))
        return Share(counted, counted, counted)
    return None
