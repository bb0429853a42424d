"""One lock around everything that is known about a run."""

import os
from dataclasses import replace
from threading import Lock
from typing import Final

from probe.wire.messages import GpuStep, Hello, Loader, Settings, Step
from tui.observations import (
    ActivitySeen,
    AnyObservation,
    Delivered,
    DumpSeen,
    GpusSeen,
    Greeted,
    Link,
    Missing,
    PageSeen,
    ProcessesSeen,
    RanksSeen,
    StacksSeen,
    TargetEnded,
)
from tui.session.activity_book import ActivityBook
from tui.session.edge_book import EdgeBook
from tui.session.event_book import EventBook
from tui.session.gpu_step_book import GpuStepBook
from tui.session.judge import Engine, Judge
from tui.session.link_book import LinkBook
from tui.session.memory_book import MemoryBook
from tui.session.memory_room import room_of
from tui.session.moment_book import MomentBook
from tui.session.open_step import OpenStepBook
from tui.session.process_book import ProcessBook
from tui.session.rank_book import RankBook
from tui.session.sampled_book import SampledBook
from tui.session.sampled_window import sampled
from tui.session.sawtooth import ComputingSeries
from tui.session.scope_book import ScopeBook
from tui.session.sorted_stacks import SortedStacks
from tui.session.spreads import Spreads, spreads_of
from tui.session.stack_book import StackBook
from tui.session.step_book import RECENT_ROWS, SHOWN_ROWS, StepBook
from tui.session.step_stats import step_stats
from tui.session.taped import Tape
from tui.snapshot import Sawtooth, Snapshot, Status, StepStats
from tui.stack_trees import StackTrees
from tui.verdict.selection import Choice, choose_window
from tui.verdict.warmup import warm_after
from tui.verdict.window import GpuActivity, OpenStep, Sampled, Stacks, Window

MOST_LOADERS: Final = 32
"""As many as the probe keeps in mind."""


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
        self._script = script
        self._started_ns = started_ns
        self._hello: Hello | None = None
        self._loaders: dict[int, Loader] = {}
        """The one that changed last is last."""
        self._settings: Settings | None = None
        """As they were last told."""
        self._steps = StepBook()
        self._choice: Choice = choose_window(())
        """The verdict's window, as of the last look."""
        self._spreads: Spreads | None = None
        """Of the same steps."""
        self._gpu_rows: tuple[GpuStep, ...] = ()
        """Of the same window, those that were measured on the GPU's clock."""
        self._edges = EdgeBook()
        self._computing = ComputingSeries(self._steps)
        self._gpus = ActivityBook()
        self._gpu_steps = GpuStepBook()
        self._scope = ScopeBook(self._gpus, self._steps, self._gpu_steps)
        self._open = OpenStepBook()
        self._memory = MemoryBook()
        self._moments = MomentBook()
        self._warm_step = 0
        """Last of the warm-up: what is held of the first steps does not tell it for ever."""
        self._processes = ProcessBook()
        self._ranks = RankBook(pid)
        self._stacks = StackBook()
        self._lacks_stacks = False
        self._sampled = SampledBook()
        """Of a run without a probe alone."""
        self._told_by_samples: Sampled | None = None
        """As of the last look."""
        self._sorted = SortedStacks(self._stacks, self._gpus, self._gpu_steps, self._steps)
        self._events = EventBook()
        self._link = LinkBook()
        self._judge = Judge(engine)
        self._trees: StackTrees | None = None
        self._stacks_summary: Stacks | None = None
        """Of samples alone: one dump has no shares."""

    def ingest(self, observation: AnyObservation) -> None:
        """Take what a source saw. Does bookkeeping only."""
        with self._lock:
            if self._tape is not None:
                observation = self._tape.keep(observation)
            self._take(observation)

    def monitor_used(self, cpu_percent: float) -> None:
        """The monitor's own CPU over the last second or so, of one core."""
        with self._lock:
            self._link.monitor_used(cpu_percent)

    def snapshot(self, now_ns: int, now_unix: float) -> Snapshot:
        """The picture at this moment."""
        with self._lock:
            return self._picture(now_ns, now_unix)

    def look(self, now_ns: int) -> None:
        """Judge at this moment: for a replay."""
        with self._lock:
            run_ns = self._run_ns(now_ns)
            self._look(run_ns, self._open_step(run_ns))

    def lacks_stacks(self) -> bool:
        """Whether nothing moves and nobody says where: as of the last look."""
        return self._lacks_stacks

    # -- in ----------------------------------------------------------------------------------

    def _take(self, seen: AnyObservation) -> None:
        match seen:
            case Delivered():
                self._delivered(seen)
            case PageSeen():
                self._link.page_seen(seen)
                self._open.page_seen(seen)
            case Greeted():
                self._greeted(seen.hello)
            case ProcessesSeen():
                self._processes.seen(seen)
                self._computing.processes(seen)
                self._memory.processes(seen, self._reached(seen.t_ns))
            case StacksSeen():
                self._stacks.seen(seen)
            case DumpSeen():
                self._stacks.dumps.seen(seen)
            case GpusSeen():
                self._gpus.used(seen)
                self._memory.levels.gpus(seen)
            case ActivitySeen():
                self._gpus.seen(seen)
            case RanksSeen():
                self._ranks.seen(seen)
            case Link():
                self._linked(seen)
            case Missing():
                self._link.missed(seen)
            case TargetEnded():
                self._ended(seen)

    def _reached(self, t_ns: int) -> int:
        """What memory goes by: steps, or seconds where nobody counts steps."""
        if not self._link.unprobed:
            return self._steps.total
        return max(0, t_ns - self._started_ns) // 1_000_000_000

    def _greeted(self, hello: Hello) -> None:
        self._link.hooked = True
        self._link.fault = hello.fault
        self._hello = hello
        self._script = script_name(hello) or self._script

    def _delivered(self, seen: Delivered) -> None:
        batch = seen.batch
        self._link.delivered(seen.t_ns, batch, seen.lost)
        fresh = self._steps.add(batch.steps)
        for step in fresh:
            self._events.step_ended(step)
            self._moments.step_ended(step)
        self._edges.ended(fresh)
        self._computing.added(len(fresh))
        self._gpu_steps.delivered(batch)
        for reading in batch.gpu_memory:
            self._events.allocator_told(reading)
            self._memory.levels.allocator(reading)
        self._open.delivered(batch, self._steps.total)
        if batch.rss_bytes is not None:
            total, files = self._steps.total, batch.file_bytes
            self._memory.resident(seen.t_ns, total, batch.rss_bytes, files)
        self._settings = batch.settings or self._settings
        for loader in batch.loaders:
            self._loaders.pop(loader.key, None)
            self._loaders[loader.key] = loader
            if len(self._loaders) > MOST_LOADERS:  # a script may make new ones for ever
                del self._loaders[next(iter(self._loaders))]
            self._events.loader_told(seen.t_ns, self._steps.total or None, loader)
            self._moments.loader_told(self._steps.total, loader)

    def _linked(self, link: Link) -> None:
        self._link.linked(link)
        if link.state != "connected" and self._link.ended is None:
            text = {"silent": "the probe has gone silent", "left": "the probe has left"}
            said = text.get(link.state, f"a {link.state} message")
            detail = f": {link.detail}" if link.detail else ""
            self._events.say("link", link.t_ns, self._steps.total or None, said + detail)

    def _ended(self, ended: TargetEnded) -> None:
        if self._link.ended is None:
            self._link.ended = ended
            step = self._steps.total or None
            self._events.say("ended", ended.t_ns, step, f"the process {ended.how}")

    # -- out ---------------------------------------------------------------------------------

    def _picture(self, now_ns: int, now_unix: float) -> Snapshot:
        run_ns = self._run_ns(now_ns)
        open_step = self._open_step(run_ns)
        if not self._replayed and self._judge.due(run_ns, self._link.ended is not None):
            if self._tape is not None:
                self._tape.looked(now_ns)
            self._look(run_ns, open_step)
        stats = step_stats(self._counted(), self._steps.total, self._spreads)
        return Snapshot(
            t_ns=now_ns,
            t_unix=now_unix,
            attached_s=max(0, run_ns - self._started_ns) / 1e9,
            hello=self._hello,
            script=self._script,
            pid=self._pid,
            status=self._status(now_ns, stats),
            verdict=self._judge.verdict,
            steps=stats,
            recent=self._steps.last(SHOWN_ROWS),
            open_step=open_step,
            loaders=tuple(self._loaders.values()),
            sawtooth=self._sawtooth(run_ns),
            memory=self._memory.view(self._judge.memory_grows, self._judge.trends),
            stacks=self._stacks_summary,
            trees=self._trees,
            processes=self._processes.processes,
            cores=self._processes.cores,
            gpus=self._gpus.gpus,
            activity=self._gpus.newest(),
            series=(
                *self._gpus.series(),
                *self._memory.levels.series(),
                *self._processes.series,
            ),
            scope=self._scope.at(run_ns),
            events=self._events.newest(),
            gpu_phases=self._gpu_steps.phases(self._gpu_rows),
            recent_gpu=self._gpu_steps.recent,
            gpu_memory=self._gpu_steps.memory,
            timeline=self._judge.timeline,
            summary=self._judge.summary,
            ranks=self._ranks.ranks,
            world_size=self._ranks.world_size,
            trends=self._judge.trends,
            surroundings=self._processes.surroundings(),
            sampled=self._told_by_samples if self._link.unprobed else None,
        )

    def _run_ns(self, now_ns: int) -> int:
        """What was open when the process ended stays as old as it was then."""
        ended = self._link.ended
        return min(now_ns, ended.t_ns) if ended else now_ns

    def _open_step(self, run_ns: int) -> OpenStep | None:
        return self._open.at(run_ns, *self._stacks.where(run_ns, self._open.marked_ns))

    def _status(self, now_ns: int, stats: StepStats | None) -> Status:
        """The link's, with the cost of the device marks added to that of the host's."""
        status = self._link.status(now_ns)
        on_device_ns = self._gpu_steps.cost_ns_a_step
        if stats is None or on_device_ns is None:
            return status
        share = (status.cost_share or 0.0) + on_device_ns / 1e9 * stats.steps_s
        return replace(status, cost_share=share)

    def _counted(self) -> tuple[Step, ...]:
        """The steps that the numbers speak of: the verdict's, and those since its last look."""
        chosen = self._choice.steps
        if not chosen:
            return self._steps.last(RECENT_ROWS)
        return chosen + self._steps.after(chosen[-1].end_ns)

    def _look(self, now_ns: int, open_step: OpenStep | None) -> None:
        """The slow part, once a second: stacks summed up, pace looked at, verdict judged."""
        sampled_trees = self._sorted.look(now_ns, self._evaluating_pids())
        standing = self._stacks.dumps.standing(self._open.marked_ns)
        self._stacks_summary = sampled_trees.all.summary if sampled_trees else None
        self._trees = sampled_trees or (standing.trees if standing else None)
        if self._link.unprobed:
            self._sampled.look(self._stacks.chunks)
            self._told_by_samples = sampled(
                self._sampled, self._stacks, self._processes, self._gpus, now_ns
            )
        self._choice = choose_window(self._steps.all(), self._choice.cut_ns)
        chosen = self._choice.steps
        self._spreads = spreads_of(self._counted())
        self._gpu_rows = (
            self._gpu_steps.between(chosen[0].start_ns, chosen[-1].end_ns) if chosen else ()
        )
        if self._choice.change is not None and self._choice.steps:
            self._events.pace_changed(self._choice.steps[0], self._choice.change)
        self._warm_step = max(self._warm_step, warm_after(self._steps.last(RECENT_ROWS)))
        window = self._window(now_ns, open_step)
        said = self._judge.look(window)
        is_stalled = self._judge.verdict.finding.kind == "stalled"
        self._lacks_stacks = is_stalled and self._link.lacks("stacks") and standing is None
        if said:
            self._events.say("verdict", now_ns, self._steps.total or None, said)

    def _window(self, now_ns: int, open_step: OpenStep | None) -> Window:
        newest_first = tuple(reversed(self._loaders.values()))
        training = tuple(loader for loader in newest_first if not loader.evaluation)
        unprobed = self._link.unprobed
        steps = self._sampled.rows if unprobed else self._choice.steps
        host = self._processes.host_use(*_span_of(steps))
        return Window(
            now_ns=now_ns,
            steps=steps,
            steps_seen=self._steps.total,
            warmup_left=self._choice.warmup_left,
            all_recent=self._steps.last(RECENT_ROWS),
            loaders=training or newest_first,
            cores=self._processes.cores,
            machine_cpu_percent=self._processes.machine_cpu_percent,
            main_cpu_percent=host.main_cpu_percent,
            workers=self._processes.worker_use(self._evaluating_pids()),
            stacks=self._stacks_summary,
            memory=self._memory.main.all(),
            worker_memory=self._memory.workers.all(),
            memory_limit_bytes=self._memory.limit_bytes,
            open_step=open_step,
            gpu_present=bool(self._gpus.gpus),
            ended=self._link.ended is not None,
            killed=self._link.killed,
            missing=self._link.missing,
            gpu_steps=self._gpu_rows,
            gpu_clocked=self._gpu_steps.clocked,
            activity=self._activity(steps),
            gpu_memory=self._gpu_steps.memory,
            gpu_memory_limit_bytes=room_of(self._gpus.gpus, self._gpu_steps.memory),
            settings=self._settings,
            thread_cpu=host.thread_cpu,
            run_delay=host.run_delay,
            cpu_throttled=host.cpu_throttled,
            others_cores=host.others_cores,
            beside_cores=host.beside_cores,
            warm_step=self._warm_step,
            moments=self._moments.all(),
            workers_grown=self._memory.workers_grown,
            late_rank=self._ranks.late,
            sampled=self._told_by_samples if unprobed else None,
        )

    def _evaluating_pids(self) -> set[int]:
        """Workers of evaluations: idle while the training's are late, they say nothing of those."""
        loaders = self._loaders.values()
        return {pid for loader in loaders if loader.evaluation for pid in loader.worker_pids}

    def _activity(self, steps: tuple[Step, ...]) -> GpuActivity | None:
        """What the GPUs did while the window's steps ran."""
        return self._gpus.between(steps[0].start_ns, steps[-1].end_ns) if steps else None

    def _sawtooth(self, now_ns: int) -> Sawtooth | None:
        edges = self._edges.edges()
        gpu = self._gpus.sawtooth(edges)
        if gpu is not None:
            return gpu
        spans = self._open.spans(now_ns)
        return self._computing.sawtooth(spans, edges, bool(self._gpus.gpus))


def _span_of(steps: tuple[Step, ...]) -> tuple[int, int]:
    """When the first began and the last ended; an empty stretch without any."""
    return (steps[0].start_ns, steps[-1].end_ns) if steps else (0, 0)


def script_name(hello: Hello) -> str:
    """Base name of the training script; "" where the command line does not say."""
    return os.path.basename(hello.argv[0]) if hello.argv else ""
