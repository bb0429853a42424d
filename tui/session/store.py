"""One lock around everything that is known about a run."""

from dataclasses import replace
from threading import Lock

from tui.observations import AnyObservation
from tui.session.books import Books
from tui.session.judge import Engine
from tui.session.look import Look
from tui.session.scope_book import ScopeBook
from tui.session.step_book import SHOWN_ROWS
from tui.session.step_stats import step_stats
from tui.session.taped import Tape
from tui.snapshot import Sawtooth, Snapshot, Status, StepStats
from tui.verdict.window import OpenStep


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
        self._books = Books(pid, script, started_ns)
        self._look = Look(self._books, engine)
        self._scope = ScopeBook(self._books.gpus, self._books.steps, self._books.gpu_steps)

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
