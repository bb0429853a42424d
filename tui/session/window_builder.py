"""What is worked out once a second: merged stacks, the window of steps, the verdict."""

from collections.abc import Sequence
from operator import truediv
from typing import Final

from ..model.observations import GpuUse
from ..model.snapshot import GpuPhases, JobVerdict, StepStats
from ..model.stack_trees import StackTrees
from ..steps import GpuMemory, GpuStep, Step
from ..verdict.findings import Finding
from ..verdict.gpu_activity import GpuActivity
from ..verdict.idle_ledger import IdleLedger, idle_ledger
from ..verdict.job.late import late_rank
from ..verdict.long_run import ledger_in_the_long_run
from ..verdict.rules.stalled import IDLE, is_near
from ..verdict.rules.straggler import beside_the_job, job_finding
from ..verdict.stack_samples import Sampled, Stacks, Still
from ..verdict.thresholds.samples import SAMPLED_LEAST
from ..verdict.window import OpenStep, SampleWindow, StepWindow, TimeSpan, Window
from ..verdict.window_selection import Choice, choose_window, warm_after
from .dispatch import Stores
from .gpu import GpuStore
from .judge import Judge
from .processes import ProcessStore
from .stack_samples import HOST, LOADING, WAITING, StackSampleStore
from .stacks import StackStore
from .stacks_by_gpu_state import SortedStacks, WarmUpStore
from .steps import RECENT_ROWS, Spreads, percentile, phases_of, spreads_of

LEAST_LONG_STEPS: Final = 2
LONG_STEP_NS: Final = 2_000_000_000
"""Of so long steps the twenty that a verdict takes are more than half a minute."""


def sampled(
    store: StackSampleStore,
    stacks: StackStore,
    processes: ProcessStore,
    gpus: GpuStore,
    now_ns: int,
) -> Sampled:
    """As of now."""
    gpu_present = bool(gpus.gpus)
    return Sampled(
        samples=len(store.spans),
        shares={phase: share for phase, share in store.shares(gpu_present).items()},
        serial=store.serial,
        loading=store.places(LOADING, gpu_present),
        host=store.places(HOST, gpu_present),
        period_ns=store.period_ns(),
        still=_still(store, stacks, processes, gpus, now_ns),
        waiting=store.places(WAITING, gpu_present),
    )


def _still(
    store: StackSampleStore,
    stacks: StackStore,
    processes: ProcessStore,
    gpus: GpuStore,
    now_ns: int,
) -> Still | None:
    unmoved = store.unmoved()
    if unmoved is None:
        return None
    host = processes.host_use(unmoved.since_ns, now_ns)
    activity = gpus.between(unmoved.since_ns, now_ns)
    return Still(
        age_s=max(0, now_ns - unmoved.since_ns) / 1e9,
        phase=unmoved.phase,
        frame=unmoved.frame,
        stack=unmoved.way,
        thread_cpu=host.thread_cpu,
        beside_cores=host.beside_cores,
        gpu_busy=None if activity is None else activity.busy,
        workers=stacks.workers_at(now_ns, unmoved.since_ns),
        at_prompt=stacks.where(now_ns, unmoved.since_ns).at_prompt or False,
        trains=store.trains,
    )


def room_of(gpus: Sequence[GpuUse], memory: Sequence[GpuMemory]) -> int | None:
    """Of the target's first GPU: what is free and what the allocator has, or what it may have of
    the device, if that is less. None without a GPU.

    What others hold, and what the process holds beside the allocator (its context, NCCL), is so
    left out whether or not the driver names its owner.
    """
    if not gpus:
        return None
    gpu = gpus[0]
    held = memory[-1].reserved if memory else gpu.target_memory_bytes or 0
    room = gpu.memory_total_bytes - max(0, gpu.memory_used_bytes - held)
    fraction = memory[-1].fraction if memory else None
    return room if fraction is None else min(room, round(fraction * gpu.memory_total_bytes))


def _uses_no_gpu(stores: Stores) -> bool:
    """There is one, and all that the process trains is in the CPU's memory, with nothing of it on
    any GPU that it may use: neither a clock, nor the allocator's figures, nor the driver's."""
    settings, gpus = stores.settings, stores.gpus.gpus
    if not gpus or settings is None or not settings.parameters:
        return False
    on_gpu = stores.gpu_steps.clocked or bool(stores.gpu_steps.memory)
    on_gpu = on_gpu or any(gpu.target_memory_bytes is not None for gpu in gpus)
    return settings.host_parameters == settings.parameters and not on_gpu


# Numbers about a run of steps. Merged rows count as often as they say.


def step_stats(
    steps: Sequence[Step], total: int, spreads: Spreads | None = None
) -> StepStats | None:
    """The statistics of `steps`; None without any. `total`: steps since the probe was armed.

    `spreads`: of about the same steps, which are not worked out here.
    """
    counts = [step.count for step in steps]
    walls = [step.end_ns - step.start_ns for step in steps]
    count, wall_ns = sum(counts), sum(walls)
    if not count or wall_ns <= 0:
        return None
    # A merged row knows its sum only, so its steps all get its mean.
    means = sorted(zip(map(truediv, walls, counts), counts, strict=True))
    inference = steps[-1].inference
    return StepStats(
        total=total,
        in_window=count,
        window_s=(steps[-1].end_ns - steps[0].start_ns) / 1e9,
        p50_ms=percentile(means, count, 0.50) / 1e6,
        p95_ms=percentile(means, count, 0.95) / 1e6,
        max_ms=means[-1][0] / 1e6,
        steps_s=count / (wall_ns / 1e9),
        samples_s=_samples_a_second(steps),
        inference=inference,
        phases=phases_of(steps, count, inference, spreads.phases if spreads else {}),
        error_ms=spreads.whole.error_ms if spreads else None,
        merged=spreads.merged if spreads else 1,
        whole=spreads.whole if spreads else None,
    )


def _samples_a_second(steps: Sequence[Step]) -> float | None:
    """Over the steps whose batch size is known; None without any."""
    sized = [(step.samples, step.end_ns - step.start_ns) for step in steps if step.samples]
    wall_ns = sum(ns for _, ns in sized)
    if not wall_ns:
        return None
    return sum(samples for samples, _ in sized) / (wall_ns / 1e9)


class Assessment:
    """What was concluded from the stores when they were last judged."""

    def __init__(self, stores: Stores, judge: Judge) -> None:
        self._stores = stores
        self.judge = judge
        self.spreads: Spreads | None = None
        """Of the verdict's steps."""
        self.gpu_phases: GpuPhases | None = None
        """Of the same window, by the steps that were measured on the GPU's clock."""
        self.stacks: Stacks | None = None
        """Of samples alone: one dump has no shares."""
        self.trees: StackTrees | None = None
        self.from_samples: Sampled | None = None
        """Of a run without a probe alone."""
        self.ledger: IdleLedger | None = None
        """Of the verdict's window."""
        self.job: JobVerdict | None = None
        """Of several ranks alone."""
        self.lacks_stacks = False
        """Nothing moves, and nobody says where."""
        self.nearly_stalled = False
        """Nothing has moved for long."""
        self.window: Window | None = None
        """What was judged."""
        self.warm_since_ns: int | None = None
        """Its steps are the training's usual ones from then on; None while it warms up."""
        self._choice: Choice = choose_window(())
        """The verdict's window."""
        self._warm_up = WarmUpStore()
        self._warm_step = 0
        """Last of the warm-up: what is held of the first steps does not show it for ever."""
        self._apart: frozenset[int] = frozenset()
        """Workers that are not the training's."""
        self._sampled = StackSampleStore()
        self._steps_judged = False
        """There were steps enough for a verdict once."""
        self._sorted = SortedStacks(stores.stacks, stores.gpus, stores.gpu_steps, stores.steps)

    def update(self, now_ns: int, open_step: OpenStep | None) -> None:
        """Judge what the stores hold now."""
        stores = self._stores
        self._apart = stores.loaders.beside_training(stores.stacks.chunks)
        warm_up = self._warm_up.update(stores.steps)
        self.warm_since_ns = self._warm_up.over_ns
        sampled_trees = self._sorted.merged(now_ns, self._apart, warm_up)
        standing = stores.stacks.dumps.standing(stores.open.marked_ns)
        self.stacks = sampled_trees.all.summary if sampled_trees else None
        self.trees = sampled_trees or (standing.trees if standing else None)
        if stores.link.unprobed:
            self._sampled.update(stores.stacks.chunks)
            self.from_samples = sampled(
                self._sampled, stores.stacks, stores.processes, stores.gpus, now_ns
            )
        self._choice = choose_window(stores.steps.all(), self._choice.cut_ns)
        chosen = self._choice.steps
        self.spreads = spreads_of(self.counted())
        gpu_rows = stores.gpu_steps.between(chosen[0].start_ns, chosen[-1].end_ns) if chosen else ()
        self.gpu_phases = stores.gpu_steps.phases(gpu_rows)
        if self._choice.change is not None and chosen:
            stores.events.pace_changed(chosen[0], self._choice.change)
        self._warm_step = max(self._warm_step, warm_after(stores.steps.last(RECENT_ROWS)))
        self.window = window = self._window(now_ns, open_step, gpu_rows)
        changed = self.judge.judge(window)
        finding = self.judge.verdict.finding
        self.ledger = _ledger(window, (finding, *self.judge.verdict.contributors))
        if isinstance(window, StepWindow) and window.job is not None and window.job.ranks:
            late, others = late_rank(window.job), self.judge.verdict.contributors
            before = self.job.finding if self.job is not None else None
            of_job = job_finding(window.job, late, finding, others, before)
            self.job = JobVerdict(window.job, late, of_job)
            self.judge.verdict = beside_the_job(self.judge.verdict, self.job.finding)
        is_stalled = finding.kind == "stalled" or finding.sub == IDLE
        self.lacks_stacks = is_stalled and stores.link.lacks("stacks") and standing is None
        self.nearly_stalled = open_step is not None and is_near(
            open_step, stores.steps.last(RECENT_ROWS), ended=stores.link.marks_are_over
        )
        if changed:
            stores.events.add("verdict", now_ns, stores.steps.total or None, changed)

    def counted(self) -> tuple[Step, ...]:
        """The steps of the statistics: the verdict's, and those since it was judged."""
        chosen = self._choice.steps
        if not chosen:
            return self._stores.steps.last(RECENT_ROWS)
        return chosen + self._stores.steps.after(chosen[-1].end_ns)

    def _window(
        self, now_ns: int, open_step: OpenStep | None, gpu_rows: tuple[GpuStep, ...]
    ) -> Window:
        """Of stack samples where there is no probe, and while long steps are too few; else of
        steps."""
        if self._stores.link.unprobed and self.from_samples is not None:
            return self._sample_window(now_ns, self.from_samples)
        if (filling := self._while_steps_are_few(now_ns)) is not None:
            return self._sample_window(now_ns, filling)
        return self._step_window(now_ns, open_step, gpu_rows)

    def _while_steps_are_few(self, now_ns: int) -> Sampled | None:
        """Samples since the first step has ended, where steps are so long that enough of them would
        take a minute; None where those will come soon, or nothing moves."""
        stores, rows = self._stores, self._stores.steps.last(RECENT_ROWS)
        self._steps_judged = self._steps_judged or not self._choice.warmup_left
        if self._steps_judged or len(rows) < LEAST_LONG_STEPS or self.nearly_stalled:
            return None
        steps = sum(row.count for row in rows)
        if (rows[-1].end_ns - rows[0].start_ns) / steps < LONG_STEP_NS:
            return None
        begun_ns = rows[0].end_ns
        self._sampled.update([one for one in stores.stacks.chunks if one.started_ns >= begun_ns])
        found = sampled(self._sampled, stores.stacks, stores.processes, stores.gpus, now_ns)
        return found if found.samples >= SAMPLED_LEAST else None

    def _step_window(
        self, now_ns: int, open_step: OpenStep | None, gpu_rows: tuple[GpuStep, ...]
    ) -> StepWindow:
        stores, steps = self._stores, self._choice.steps
        host = stores.processes.host_use(*_extent(steps))
        job = stores.ranks.job(now_ns)
        unused = _uses_no_gpu(stores)
        return StepWindow(
            now_ns=now_ns,
            steps=steps,
            steps_seen=stores.steps.total,
            warmup_left=self._choice.warmup_left,
            all_recent=stores.steps.last(RECENT_ROWS),
            compiled=stores.steps.compiled(),
            cycles=stores.cycles.all(),
            under_way=stores.cycles.under_way(open_step),
            loaders=stores.loaders.training(),
            evaluation_loaders=stores.loaders.evaluations(),
            padding=stores.loaders.padding(),
            cores=stores.processes.cores,
            stopped=stores.processes.stopped,
            machine_cpu_percent=stores.processes.machine_cpu_percent,
            host=host,
            workers=stores.processes.worker_use(self._apart, self._warm_up.known.end_ns),
            stacks=self.stacks,
            memory=stores.memory.main.all(),
            worker_memory=stores.memory.workers.all(),
            memory_limit_bytes=stores.memory.limit_bytes,
            open_step=open_step,
            gpu_present=bool(stores.gpus.gpus) and not unused,
            gpu_unused=unused,
            ended=stores.link.ended is not None,
            killed=stores.link.killed,
            missing=stores.link.missing,
            gpu_steps=gpu_rows,
            gpu_clocked=stores.gpu_steps.clocked or stores.link.is_new(now_ns),
            activity=None if unused else self._activity(steps),
            gpu_memory=stores.gpu_steps.memory,
            gpu_memory_limit_bytes=room_of(stores.gpus.gpus, stores.gpu_steps.memory),
            settings=stores.settings,
            warm_step=self._warm_step,
            moments=stores.moments.all(),
            workers_grown=stores.memory.workers_grown,
            job=job,
            collectives=stores.ranks.in_collectives(job),
            world_size=max(stores.ranks.world_size, stores.world_size),
            clips=stores.noted.clips,
            mark_cost_ns=stores.link.mark_cost_ns,
            update_wrapper_ns=stores.link.update_wrapper_ns,
        )

    def _sample_window(self, now_ns: int, sampled: Sampled) -> SampleWindow:
        stores, spans = self._stores, self._sampled.spans
        host = stores.processes.host_use(*_extent(spans))
        return SampleWindow(
            now_ns=now_ns,
            samples=spans,
            sampled=sampled,
            cores=stores.processes.cores,
            stopped=stores.processes.stopped,
            machine_cpu_percent=stores.processes.machine_cpu_percent,
            host=host,
            workers=stores.processes.worker_use(self._apart),
            stacks=self.stacks,
            memory=stores.memory.main.all(),
            worker_memory=stores.memory.workers.all(),
            memory_limit_bytes=stores.memory.limit_bytes,
            gpu_present=bool(stores.gpus.gpus),
            ended=stores.link.ended is not None,
            missing=stores.link.missing,
            activity=self._activity(spans),
            workers_grown=stores.memory.workers_grown,
        )

    def _activity(self, spans: Sequence[TimeSpan]) -> GpuActivity | None:
        """What the GPUs did over the window."""
        return self._stores.gpus.between(*_extent(spans)) if spans else None


def _ledger(window: Window, found: Sequence[Finding]) -> IdleLedger | None:
    """Where the GPU's time goes, with pauses that the window misses."""
    if not isinstance(window, StepWindow) or (ledger := idle_ledger(window)) is None:
        return None
    return ledger_in_the_long_run(ledger, {one.kind: one for one in found}, window)


def _extent(spans: Sequence[TimeSpan]) -> tuple[int, int]:
    """When the first began and the last ended; (0, 0) without any."""
    return (spans[0].start_ns, spans[-1].end_ns) if spans else (0, 0)
