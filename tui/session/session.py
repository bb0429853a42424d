"""Everything that is known about a run: what was observed, the last verdict, its snapshot."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol, TypeVar

from msgspec import structs

from ..model.observations import AnyObservation
from ..model.snapshot import Sawtooth, Scope, Snapshot, Status, StepStats
from ..recording.format import Past
from ..steps import GpuMemory, MemoryPoint
from ..verdict.findings import Verdict
from ..verdict.window import OpenStep
from .dispatch import Stores
from .gpu import GpuStore
from .gpu_steps import GpuStepStore
from .judge import Annotate, Engine, Judge
from .noted import not_finite_note
from .step_profile import anchored, folded
from .steps import SHOWN_ROWS, StepStore
from .window_builder import Assessment, step_stats

FOLDED_ROWS: Final = 1_200
"""Steps that the samples of 24 s can be folded on."""
EVERY_NS: Final = 4_000_000_000
"""Folding 24 s takes 3 to 6 ms; a sixth of the samples are new by then."""


class StepProfileStore:
    """The profile of one step, folded anew every few seconds from GPU readings and steps."""

    def __init__(self, gpus: GpuStore, steps: StepStore, on_gpu: GpuStepStore) -> None:
        self._gpus = gpus
        self._on_gpu = on_gpu
        self._steps = steps
        self._due_ns = 0
        self._scope: Scope | None = None

    def at(self, now_ns: int) -> Scope | None:
        """The profile of one step; None where the counters or the steps do not give one."""
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + EVERY_NS
            self._scope = self._fold()
        return self._scope

    def _fold(self) -> Scope | None:
        steps = self._steps.last(FOLDED_ROWS)
        if not steps or any(step.count > 1 for step in steps):
            return None  # merged steps are far too short
        edges_ns = [*(step.start_ns for step in steps), steps[-1].end_ns]
        scope = folded(self._gpus.readings(), edges_ns, "gpm 100 ms")
        if scope is None:
            return None
        return anchored(scope, self._on_gpu.between(edges_ns[0], edges_ns[-1]))


_Read = TypeVar("_Read", GpuMemory, MemoryPoint)


class Tape(Protocol):
    """Keeps what a session takes in, for a recording. Never waits."""

    def keep(self, observation: AnyObservation) -> AnyObservation:
        """Keep an observation; returns it as the recording will have it."""

    def looked(self, now_ns: int) -> None:
        """The verdict is judged at this moment."""


class Session:
    """Observations in, snapshots out. Belongs to one thread: the collector's, or the replay's.

    It reads no clock. A live session is judged by `judge_if_due`, and notes when on its tape; a
    replay calls `judge` at the moments that its recording has.
    """

    def __init__(
        self,
        pid: int,
        script: str,
        started_ns: int,
        engine: Engine,
        *,
        tape: Tape | None = None,
        annotate: Annotate | None = None,
    ) -> None:
        self._tape = tape
        self._pid = pid
        self._started_ns = started_ns
        self._stores = Stores(pid, script, started_ns)
        self._annotate = annotate
        self._assessment = Assessment(self._stores, Judge(engine, self._annotated))
        self._profile = StepProfileStore(
            self._stores.gpus, self._stores.steps, self._stores.gpu_steps
        )

    def ingest(self, observation: AnyObservation | Past) -> None:
        """Take what a source saw, or a recording has. Does bookkeeping only."""
        if isinstance(observation, Past):
            self._stores.remember(observation)
            return
        if self._tape is not None:
            observation = self._tape.keep(observation)
        self._stores.take(observation)

    def monitor_used(self, cpu_percent: float) -> None:
        """The monitor's own CPU over the last second or so, of one core."""
        self._stores.link.monitor_used(cpu_percent)

    def judge_if_due(self, now_ns: int) -> bool:
        """Judge if a second has passed, there is news, or the run has ended; whether it did."""
        run_ns, ended = self._run_ns(now_ns), self._stores.link.ended is not None
        if not self._assessment.judge.due(run_ns, ended, self._news()):
            return False
        if self._tape is not None:
            self._tape.looked(now_ns)
        self.judge(now_ns)
        return True

    def _news(self) -> int:
        """Grows with what a first verdict waits for: the first step, the first samples."""
        return min(1, self._stores.steps.total) + min(1, len(self._stores.stacks.chunks))

    def judge(self, now_ns: int) -> None:
        """Judge at this moment."""
        run_ns = self._run_ns(now_ns)
        self._assessment.update(run_ns, self._open_step(run_ns))

    def lacks_stacks(self) -> bool:
        """Whether nothing moves and no stack shows where, by the last verdict."""
        return self._assessment.lacks_stacks

    def training_thread(self) -> int | None:
        """The kernel's id of the thread that runs the backward, as the process knows it."""
        settings = self._stores.settings
        return None if settings is None else settings.training_thread

    def warm_since_ns(self) -> int | None:
        """When its warm-up ended, as it was last judged; None while it may go on."""
        return self._assessment.warm_since_ns

    def nearly_stalled(self) -> bool:
        """Whether nothing has moved for long, when it was last judged."""
        return self._assessment.nearly_stalled

    def past(self, until_ns: int) -> Past | None:
        """What a recording that begins then needs to know of before; None of nothing. From any
        thread: by the last window, which nobody changes."""
        window = self._assessment.window
        if window is None:
            return None
        warm_step = window.warm_step
        after = self._stores.steps.after(until_ns)
        reached = after[0].number - after[0].count if after else self._stores.steps.total

        def before(rows: Iterable[_Read]) -> tuple[_Read, ...]:
            return tuple(r for r in rows if r.t_ns < until_ns and r.step > warm_step)

        past = structs.replace(
            self._stores.noted.before(until_ns, reached),
            gpu_memory=before(window.gpu_memory),
            memory=before(window.memory),
            worker_memory=before(window.worker_memory),
            moments=tuple(one for one in window.moments if one.step <= reached),
        )
        return past if past.rows else None

    def snapshot(self, now_ns: int, now_unix: float) -> Snapshot:
        """The run at this moment, with the last verdict. Takes half a millisecond."""
        stores, assessment = self._stores, self._assessment
        judge = assessment.judge
        run_ns = self._run_ns(now_ns)
        stats = step_stats(assessment.counted(), stores.steps.total, assessment.spreads)
        return Snapshot(
            t_ns=now_ns,
            t_unix=now_unix,
            attached_s=max(0, run_ns - self._started_ns) / 1e9,
            hello=stores.hello,
            script=stores.script,
            pid=self._pid,
            status=self._status(now_ns, stats),
            verdict=judge.verdict,
            steps=stats,
            recent=stores.steps.last(SHOWN_ROWS),
            open_step=self._open_step(run_ns),
            loaders=stores.loaders.all(),
            sawtooth=self._sawtooth(run_ns),
            memory=stores.memory.view(judge.memory_grows, judge.trends),
            stacks=assessment.stacks,
            trees=assessment.trees,
            processes=stores.processes.processes,
            cores=stores.processes.cores,
            gpus=stores.gpus.gpus,
            activity=stores.gpus.newest(),
            series=(
                *stores.gpus.series(),
                *stores.memory.levels.series(),
                *stores.processes.series,
            ),
            scope=self._profile.at(run_ns),
            events=stores.events.newest(),
            gpu_phases=assessment.gpu_phases,
            recent_gpu=stores.gpu_steps.recent,
            gpu_memory=stores.gpu_steps.memory,
            timeline=judge.timeline,
            summary=judge.summary,
            ranks=stores.ranks.ranks,
            world_size=stores.ranks.world_size,
            job=assessment.job,
            ledger=assessment.ledger,
            trends=judge.trends,
            surroundings=stores.processes.surroundings(),
            sampled=assessment.from_samples if stores.link.unprobed else None,
            histogram=stores.steps.histogram if stores.steps.total else None,
            numerics=stores.noted.numerics(),
            throughput=stores.noted.throughput(stats, stores.settings),
        )

    def _annotated(self, verdict: Verdict) -> Verdict:
        """With a note where a number was not finite, whatever the verdict is."""
        verdict = verdict if self._annotate is None else self._annotate(verdict)
        numerics = self._stores.noted.numerics()
        if numerics is None:
            return verdict
        note = not_finite_note(numerics, self._stores.steps.total, self._stores.settings)
        return verdict if note is None else replace(verdict, notes=(note, *verdict.notes))

    def _run_ns(self, now_ns: int) -> int:
        """Time stops for the run when its process ends: what was open stays as old as it was."""
        ended = self._stores.link.ended
        return min(now_ns, ended.t_ns) if ended else now_ns

    def _open_step(self, run_ns: int) -> OpenStep | None:
        stores = self._stores
        return stores.open.at(run_ns, *stores.stacks.where(run_ns, stores.open.marked_ns))

    def _status(self, now_ns: int, stats: StepStats | None) -> Status:
        """Of the connection, with the cost of the device marks added to the host's."""
        status = self._stores.link.status(now_ns)
        on_device_ns = self._stores.gpu_steps.cost_ns_a_step
        if stats is None or on_device_ns is None:
            return status
        share = (status.cost_share or 0.0) + on_device_ns / 1e9 * stats.steps_s
        return replace(status, cost_share=share)

    def _sawtooth(self, now_ns: int) -> Sawtooth | None:
        stores = self._stores
        edges = stores.edges.edges()
        gpu = stores.gpus.sawtooth(edges)
        if gpu is not None:
            return gpu
        spans = stores.open.spans(now_ns)
        return stores.computing.sawtooth(spans, edges, bool(stores.gpus.gpus))
