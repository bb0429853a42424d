"""One lock around everything that is known about a run."""

from dataclasses import replace
from threading import Lock
from typing import Final, Protocol

from ..model.observations import AnyObservation
from ..model.snapshot import Sawtooth, Scope, Snapshot, Status, StepStats
from ..verdict.window import OpenStep
from .dispatch import Stores
from .gpu import GpuStore
from .gpu_steps import GpuStepStore
from .judge import Engine
from .step_profile import anchored, folded
from .steps import SHOWN_ROWS, StepStore
from .window_builder import Look, step_stats

# The scope of a session, looked at anew every few seconds.

FOLDED_ROWS: Final = 1_200
"""Steps that the samples of 24 s can be folded on."""
EVERY_NS: Final = 4_000_000_000
"""It looks back over 24 s, and a look takes 3 to 6 ms: a sixth of its samples are new by then."""


class StepProfileStore:
    """Folds what one book holds on what the other does."""

    def __init__(self, gpus: GpuStore, steps: StepStore, on_gpu: GpuStepStore) -> None:
        self._gpus = gpus
        self._on_gpu = on_gpu
        self._steps = steps
        self._due_ns = 0
        self._scope: Scope | None = None

    def at(self, now_ns: int) -> Scope | None:
        """The profile of one step; None where the counters or the steps do not tell one."""
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + EVERY_NS
            self._scope = self._look()
        return self._scope

    def _look(self) -> Scope | None:
        steps = self._steps.last(FOLDED_ROWS)
        if not steps or any(step.count > 1 for step in steps):
            return None  # merged steps are far too short
        edges_ns = [*(step.start_ns for step in steps), steps[-1].end_ns]
        scope = folded(self._gpus.readings(), edges_ns, "gpm 100 ms")
        if scope is None:
            return None
        return anchored(scope, self._on_gpu.between(edges_ns[0], edges_ns[-1]))


# What a session tells whoever keeps it for a recording.


class Tape(Protocol):
    """Called under the session's lock, in the order in which things happen; never waits."""

    def keep(self, observation: AnyObservation) -> AnyObservation:
        """Take what a source saw; returns it as the recording will have it."""

    def looked(self, now_ns: int) -> None:
        """The verdict is being judged at this moment."""


class Session:
    """Observations in, pictures out. Both may be called from any thread.

    It never reads a clock and never waits for anything but its own lock. `engine` judges inside
    `snapshot`, at most once a second of the `now_ns` it is given. With `replayed` it judges only in
    `look`, where the session that was recorded did.
    """

    def __init__(
        self,
        pid: int,
        script: str,
        started_ns: int,
        engine: Engine,
        *,
        tape: Tape | None = None,
        replayed: bool = False,
    ) -> None:
        self._lock = Lock()
        self._tape = tape
        self._replayed = replayed
        self._pid = pid
        self._started_ns = started_ns
        self._books = Stores(pid, script, started_ns)
        self._look = Look(self._books, engine)
        self._scope = StepProfileStore(self._books.gpus, self._books.steps, self._books.gpu_steps)

    def ingest(self, observation: AnyObservation) -> None:
        """Take what a source saw. Does bookkeeping only."""
        with self._lock:
            if self._tape is not None:
                observation = self._tape.keep(observation)
            self._books.take(observation)

    def monitor_used(self, cpu_percent: float) -> None:
        """The monitor's own CPU over the last second or so, of one core."""
        with self._lock:
            self._books.link.monitor_used(cpu_percent)

    def snapshot(self, now_ns: int, now_unix: float) -> Snapshot:
        """The picture at this moment."""
        with self._lock:
            return self._picture(now_ns, now_unix)

    def look(self, now_ns: int) -> None:
        """Judge at this moment: for a replay."""
        with self._lock:
            run_ns = self._run_ns(now_ns)
            self._look.again(run_ns, self._open_step(run_ns))

    def lacks_stacks(self) -> bool:
        """Whether nothing moves and nobody says where: as of the last look."""
        return self._look.lacks_stacks

    def nearly_stalled(self) -> bool:
        """Whether nothing has moved for long: as of the last look."""
        return self._look.nearly_stalled

    def _picture(self, now_ns: int, now_unix: float) -> Snapshot:
        books, look = self._books, self._look
        judge = look.judge
        run_ns = self._run_ns(now_ns)
        open_step = self._open_step(run_ns)
        if not self._replayed and judge.due(run_ns, books.link.ended is not None):
            if self._tape is not None:
                self._tape.looked(now_ns)
            look.again(run_ns, open_step)
        stats = step_stats(look.counted(), books.steps.total, look.spreads)
        return Snapshot(
            t_ns=now_ns,
            t_unix=now_unix,
            attached_s=max(0, run_ns - self._started_ns) / 1e9,
            hello=books.hello,
            script=books.script,
            pid=self._pid,
            status=self._status(now_ns, stats),
            verdict=judge.verdict,
            steps=stats,
            recent=books.steps.last(SHOWN_ROWS),
            open_step=open_step,
            loaders=books.loaders.all(),
            sawtooth=self._sawtooth(run_ns),
            memory=books.memory.view(judge.memory_grows, judge.trends),
            stacks=look.stacks,
            trees=look.trees,
            processes=books.processes.processes,
            cores=books.processes.cores,
            gpus=books.gpus.gpus,
            activity=books.gpus.newest(),
            series=(
                *books.gpus.series(),
                *books.memory.levels.series(),
                *books.processes.series,
            ),
            scope=self._scope.at(run_ns),
            events=books.events.newest(),
            gpu_phases=look.gpu_phases,
            recent_gpu=books.gpu_steps.recent,
            gpu_memory=books.gpu_steps.memory,
            timeline=judge.timeline,
            summary=judge.summary,
            ranks=books.ranks.ranks,
            world_size=books.ranks.world_size,
            trends=judge.trends,
            surroundings=books.processes.surroundings(),
            sampled=look.told_by_samples if books.link.unprobed else None,
        )

    def _run_ns(self, now_ns: int) -> int:
        """What was open when the process ended stays as old as it was then."""
        ended = self._books.link.ended
        return min(now_ns, ended.t_ns) if ended else now_ns

    def _open_step(self, run_ns: int) -> OpenStep | None:
        books = self._books
        return books.open.at(run_ns, *books.stacks.where(run_ns, books.open.marked_ns))

    def _status(self, now_ns: int, stats: StepStats | None) -> Status:
        """The link's, with the cost of the device marks added to that of the host's."""
        status = self._books.link.status(now_ns)
        on_device_ns = self._books.gpu_steps.cost_ns_a_step
        if stats is None or on_device_ns is None:
            return status
        share = (status.cost_share or 0.0) + on_device_ns / 1e9 * stats.steps_s
        return replace(status, cost_share=share)

    def _sawtooth(self, now_ns: int) -> Sawtooth | None:
        books = self._books
        edges = books.edges.edges()
        gpu = books.gpus.sawtooth(edges)
        if gpu is not None:
            return gpu
        spans = books.open.spans(now_ns)
        return books.computing.sawtooth(spans, edges, bool(books.gpus.gpus))
