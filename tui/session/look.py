"""The slow part, once a second: stacks summed up, pace looked at, the verdict judged."""

from probe.wire.messages import GpuStep, Step
from tui.session.books import Books
from tui.session.judge import Engine, Judge
from tui.session.memory_room import room_of
from tui.session.sampled_book import SampledBook
from tui.session.sampled_window import sampled
from tui.session.sorted_stacks import SortedStacks
from tui.session.spreads import Spreads, spreads_of
from tui.session.step_book import RECENT_ROWS
from tui.snapshot import GpuPhases
from tui.stack_trees import StackTrees
from tui.verdict.rules.stalled import is_near
from tui.verdict.selection import Choice, choose_window
from tui.verdict.warmup import warm_after
from tui.verdict.window import GpuActivity, OpenStep, Sampled, Stacks, Window


class Look:
    """What was made of the books at the last look."""

    def __init__(self, books: Books, engine: Engine) -> None:
        self._books = books
        self.judge = Judge(engine)
        self.spreads: Spreads | None = None
        """Of the verdict's steps."""
        self.gpu_phases: GpuPhases | None = None
        """Of the same window, by the steps that were measured on the GPU's clock."""
        self.stacks: Stacks | None = None
        """Of samples alone: one dump has no shares."""
        self.trees: StackTrees | None = None
        self.told_by_samples: Sampled | None = None
        """Of a run without a probe alone."""
        self.lacks_stacks = False
        """Nothing moves, and nobody says where."""
        self.nearly_stalled = False
        """Nothing has moved for long."""
        self._choice: Choice = choose_window(())
        """The verdict's window."""
        self._warm_step = 0
        """Last of the warm-up: what is held of the first steps does not tell it for ever."""
        self._sampled = SampledBook()
        self._sorted = SortedStacks(books.stacks, books.gpus, books.gpu_steps, books.steps)

    def again(self, now_ns: int, open_step: OpenStep | None) -> None:
        """Look anew."""
        books = self._books
        sampled_trees = self._sorted.look(now_ns, books.loaders.evaluating_pids())
        standing = books.stacks.dumps.standing(books.open.marked_ns)
        self.stacks = sampled_trees.all.summary if sampled_trees else None
        self.trees = sampled_trees or (standing.trees if standing else None)
        if books.link.unprobed:
            self._sampled.look(books.stacks.chunks)
            self.told_by_samples = sampled(
                self._sampled, books.stacks, books.processes, books.gpus, now_ns
            )
        self._choice = choose_window(books.steps.all(), self._choice.cut_ns)
        chosen = self._choice.steps
        self.spreads = spreads_of(self.counted())
        gpu_rows = books.gpu_steps.between(chosen[0].start_ns, chosen[-1].end_ns) if chosen else ()
        self.gpu_phases = books.gpu_steps.phases(gpu_rows)
        if self._choice.change is not None and chosen:
            books.events.pace_changed(chosen[0], self._choice.change)
        self._warm_step = max(self._warm_step, warm_after(books.steps.last(RECENT_ROWS)))
        said = self.judge.look(self._window(now_ns, open_step, gpu_rows))
        is_stalled = self.judge.verdict.finding.kind == "stalled"
        self.lacks_stacks = is_stalled and books.link.lacks("stacks") and standing is None
        self.nearly_stalled = open_step is not None and is_near(
            open_step, books.steps.last(RECENT_ROWS), ended=books.link.marks_are_over
        )
        if said:
            books.events.say("verdict", now_ns, books.steps.total or None, said)

    def counted(self) -> tuple[Step, ...]:
        """The steps that the numbers speak of: the verdict's, and those since its last look."""
        chosen = self._choice.steps
        if not chosen:
            return self._books.steps.last(RECENT_ROWS)
        return chosen + self._books.steps.after(chosen[-1].end_ns)

    def _window(
        self, now_ns: int, open_step: OpenStep | None, gpu_rows: tuple[GpuStep, ...]
    ) -> Window:
        books = self._books
        unprobed = books.link.unprobed
        steps = self._sampled.rows if unprobed else self._choice.steps
        host = books.processes.host_use(*_span_of(steps))
        return Window(
            now_ns=now_ns,
            steps=steps,
            steps_seen=books.steps.total,
            warmup_left=self._choice.warmup_left,
            all_recent=books.steps.last(RECENT_ROWS),
            loaders=books.loaders.training(),
            cores=books.processes.cores,
            machine_cpu_percent=books.processes.machine_cpu_percent,
            main_cpu_percent=host.main_cpu_percent,
            workers=books.processes.worker_use(books.loaders.evaluating_pids()),
            stacks=self.stacks,
            memory=books.memory.main.all(),
            worker_memory=books.memory.workers.all(),
            memory_limit_bytes=books.memory.limit_bytes,
            open_step=open_step,
            gpu_present=bool(books.gpus.gpus),
            ended=books.link.ended is not None,
            killed=books.link.killed,
            missing=books.link.missing,
            gpu_steps=gpu_rows,
            gpu_clocked=books.gpu_steps.clocked,
            activity=self._activity(steps),
            gpu_memory=books.gpu_steps.memory,
            gpu_memory_limit_bytes=room_of(books.gpus.gpus, books.gpu_steps.memory),
            settings=books.settings,
            thread_cpu=host.thread_cpu,
            run_delay=host.run_delay,
            cpu_throttled=host.cpu_throttled,
            others_cores=host.others_cores,
            beside_cores=host.beside_cores,
            warm_step=self._warm_step,
            moments=books.moments.all(),
            workers_grown=books.memory.workers_grown,
            late_rank=books.ranks.late,
            sampled=self.told_by_samples if unprobed else None,
        )

    def _activity(self, steps: tuple[Step, ...]) -> GpuActivity | None:
        """What the GPUs did while the window's steps ran."""
        return self._books.gpus.between(steps[0].start_ns, steps[-1].end_ns) if steps else None


def _span_of(steps: tuple[Step, ...]) -> tuple[int, int]:
    """When the first began and the last ended; an empty stretch without any."""
    return (steps[0].start_ns, steps[-1].end_ns) if steps else (0, 0)
