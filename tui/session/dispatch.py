"""All that is held of a run, and which store takes what a source saw."""

import os
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from ..messages import Hello, Loader
from ..model.frames import is_notebook, waits_for_work
from ..model.observations import (
    ActivitySeen,
    AnyObservation,
    CollectivesSeen,
    Delivered,
    DumpSeen,
    GpusSeen,
    Greeted,
    Link,
    Missing,
    PageSeen,
    PendingSeen,
    ProcessesSeen,
    RanksSeen,
    StacksSeen,
    TargetEnded,
)
from ..recording.format import Past
from ..settings import Settings
from ..steps import GpuMemory, Padding, Step
from .connection import ConnectionStore
from .cpu_activity import ComputingSeries
from .events import EvaluationCycleStore, EventStore, RunEventStore
from .gpu import GpuStore
from .gpu_steps import GpuStepStore
from .memory import MemoryStore
from .noted import NotedStore
from .open_step import OpenStepStore
from .processes import ProcessStore
from .ranks import RankStore
from .stacks import StackStore
from .steps import EdgeStore, StepStore

MOST_LOADERS: Final = 32
"""As many as the probe keeps in mind."""
MOST_EPOCHS: Final = 16
"""Of a loader's, whose workers are kept in mind: what is sampled is at most a minute old."""
MOST_PADDING: Final = 64
"""Batches of a loader whose masks count: the newest."""
IDLE_SAMPLES: Final = 12
"""A worker of the training that is busy a fifth of the time is idle in so many in 7 of 100."""


class LoaderStore:
    """The loaders of the training process."""

    def __init__(self) -> None:
        self._loaders: dict[int, Loader] = {}
        self._pids: dict[int, deque[tuple[int, ...]]] = {}
        """Workers of a loader's last epochs, the newest last."""
        self._padding: dict[int, deque[Padding]] = {}
        """By the loader's key."""

    def update(self, loader: Loader) -> None:
        """A loader is new, or changed. A script may make new ones for ever: the oldest go."""
        self._loaders.pop(loader.key, None)
        self._loaders[loader.key] = loader
        epochs = self._pids.setdefault(loader.key, deque(maxlen=MOST_EPOCHS))
        if not epochs or epochs[-1] != loader.worker_pids:
            epochs.append(loader.worker_pids)
        if len(self._loaders) > MOST_LOADERS:
            oldest = next(iter(self._loaders))
            del self._loaders[oldest], self._pids[oldest]
            self._padding.pop(oldest, None)

    def masked(self, padding: Padding) -> None:
        """A batch was looked at, and has a mask. Of loaders that are not known nothing is kept."""
        if padding.loader in self._loaders:
            self._padding.setdefault(padding.loader, deque(maxlen=MOST_PADDING)).append(padding)

    def padding(self) -> tuple[Padding, ...]:
        """Of the loader that the training fetched from last, oldest first."""
        training = self.training()
        return tuple(self._padding.get(training[0].key, ())) if training else ()

    def all(self) -> tuple[Loader, ...]:
        """The one that changed last is last."""
        return tuple(self._loaders.values())

    def training(self) -> tuple[Loader, ...]:
        """Those that a backward has followed first, each kind newest first, without those of
        evaluations, unless there are no others."""
        newest_first = sorted(reversed(self._loaders.values()), key=lambda one: not one.trains)
        return tuple(one for one in newest_first if not one.evaluation) or tuple(newest_first)

    def evaluations(self) -> tuple[Loader, ...]:
        """Those of evaluations."""
        return tuple(one for one in self.all() if one.evaluation)

    def beside_training(self, chunks: Iterable[StacksSeen]) -> frozenset[int]:
        """Workers that make no batch of the training's, and idle whether it is late or not: those
        of evaluations, which may wait for the next one all through an epoch; and those of another
        loader than the training's newest that have done nothing in any sample. A look at the held-
        out set before the first step leaves such, and nothing yet tells that it was one."""
        loaders = self._loaders.values()
        apart = {
            pid
            for loader in loaders
            if loader.evaluation
            for epoch in self._pids[loader.key]
            for pid in epoch
        }
        if not self._loaders:
            return frozenset()
        known = {pid for epochs in self._pids.values() for epoch in epochs for pid in epoch}
        known -= apart | set(self.training()[0].worker_pids)
        if not known:
            return frozenset(apart)
        seen: Counter[int] = Counter()
        idle: Counter[int] = Counter()
        for chunk in chunks:
            for stack in chunk.stacks:
                if stack.role == "worker" and stack.pid in known:
                    seen[stack.pid] += stack.count
                    idle[stack.pid] += stack.count * waits_for_work(stack.frames)
        return frozenset(apart | {pid for pid in seen if idle[pid] == seen[pid] >= IDLE_SAMPLES})


UNSEEN_NS: Final = 3_000_000_000
"""The monitor was stopped; the probe holds the newest 2,048 rows for it."""


class Stores:
    """Bookkeeping alone: nothing here judges, locks or reads a clock."""

    def __init__(self, pid: int, script: str, started_ns: int) -> None:
        self._started_ns = started_ns
        self.script = script
        self.hello: Hello | None = None
        self.settings: Settings | None = None
        """The newest."""
        self.loaders = LoaderStore()
        self.steps = StepStore()
        self.edges = EdgeStore()
        self.computing = ComputingSeries(self.steps)
        self.gpus = GpuStore()
        self.gpu_steps = GpuStepStore()
        self.open = OpenStepStore()
        self.memory = MemoryStore()
        self.moments = RunEventStore()
        self.cycles = EvaluationCycleStore()
        self.processes = ProcessStore()
        self.ranks = RankStore(pid)
        self.stacks = StackStore()
        self.events = EventStore()
        self.noted = NotedStore(self.events)
        self.link = ConnectionStore()

    @property
    def world_size(self) -> int:
        """Ranks of the job by the target's own word; 1 where it has none."""
        return (self.hello.world_size if self.hello else None) or 1

    def take(self, seen: AnyObservation) -> None:
        """Put an observation into the stores that it concerns."""
        match seen:
            case Delivered():
                self._delivered(seen)
            case PageSeen():
                self.link.page_seen(seen)
                self.open.page_seen(seen)
            case Greeted():
                self._greeted(seen.hello)
            case ProcessesSeen():
                self.processes.seen(seen)
                self.computing.processes(seen)
                self.memory.processes(seen, self._reached(seen.t_ns))
            case StacksSeen():
                self.stacks.seen(seen)
            case DumpSeen():
                self.stacks.dumps.seen(seen)
            case GpusSeen():
                self.gpus.used(seen)
                self.noted.gpus(seen)
                self.memory.levels.gpus(seen)
            case ActivitySeen():
                self.gpus.seen(seen)
                self.noted.activity(seen)
            case RanksSeen():
                self.ranks.seen(seen)
            case CollectivesSeen():
                self.ranks.exchanged(seen)
            case PendingSeen():
                self.ranks.pending_seen(seen)
            case Link():
                self._linked(seen)
            case Missing():
                self.link.missed(seen)
            case TargetEnded():
                self._ended(seen)

    def _reached(self, t_ns: int) -> int:
        """The x of memory over time: steps, or seconds where nothing counts steps."""
        if not self.link.unprobed:
            return self.steps.total
        return max(0, t_ns - self._started_ns) // 1_000_000_000

    def _greeted(self, hello: Hello) -> None:
        self.link.hooked = True
        self.link.fault = hello.fault
        self.hello = hello
        self.script = script_name(hello) or self.script
        self.open.is_notebook = is_notebook(hello.argv)

    def _delivered(self, seen: Delivered) -> None:
        batch = seen.batch
        self.link.delivered(seen.t_ns, batch, seen.lost)
        before = self.steps.newest
        fresh = self.steps.add(batch.steps)
        if before is not None and fresh and (unseen := _unseen(before, fresh[0])):
            self.events.add("link", seen.t_ns, fresh[0].number, f"{unseen:,} steps passed unseen")
        for step in fresh:
            self.events.step_ended(step)
            self.moments.step_ended(step)
            self.cycles.step_ended(step)
        self.noted.delivered(batch.notes, fresh, batch.sent_ns)
        self.edges.ended(fresh)
        self.computing.added(len(fresh))
        self.gpu_steps.delivered(batch)
        self._allocators(batch.gpu_memory)
        self.open.delivered(batch, self.steps.total)
        if batch.rss_bytes is not None:
            total, files = self.steps.total, batch.file_bytes
            self.memory.resident(seen.t_ns, total, batch.rss_bytes, files)
        self.settings = batch.settings or self.settings
        for loader in batch.loaders:
            self.loaders.update(loader)
            self.events.loader_reported(seen.t_ns, self.steps.total or None, loader)
            self.moments.loader_reported(self.steps.total, loader)
        for padding in batch.padding:
            self.loaders.masked(padding)

    def _allocators(self, readings: Iterable[GpuMemory]) -> None:
        for reading in readings:
            self.gpu_steps.allocator(reading)
            self.events.allocator_reported(reading)
            self.memory.levels.allocator(reading)

    def remember(self, past: Past) -> None:
        """Of a replay, before anything else of it."""
        self._allocators(past.gpu_memory)
        self.memory.remember(past.memory, past.worker_memory)
        for moment in past.moments:
            self.moments.keep(moment)
        self.noted.remember(past)

    def _linked(self, link: Link) -> None:
        self.link.linked(link)
        if link.state != "connected" and self.link.ended is None:
            text = {"silent": "the probe is silent", "left": "the probe has left"}
            what = text.get(link.state, f"a {link.state} message")
            if link.detail:
                what += f": {link.detail}"
            if link.state == "silent" and self.hello is None:
                what = "the probe does not answer yet"  # a program that imports for long
            self.events.add("link", link.t_ns, self.steps.total or None, what)

    def _ended(self, ended: TargetEnded) -> None:
        if self.link.ended is None:
            self.link.ended = ended
            step = self.steps.total or None
            self.events.add("ended", ended.t_ns, step, f"training {self.link.end_text(ended)}")


def _unseen(before: Step, after: Step) -> int:
    """Steps missing between two rows, where these lie further apart than a lost message or two."""
    if after.start_ns - before.end_ns < UNSEEN_NS:
        return 0
    return max(0, after.number - after.count - before.number)


def script_name(hello: Hello) -> str:
    """Base name of the training script; "" where the command line does not say."""
    return os.path.basename(hello.argv[0]) if hello.argv else ""
