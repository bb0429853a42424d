"""The deep look on the screen: what a window would cost, then what it shows."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final, Literal

from ..errors import GpuwatchError
from ..formats.files import export, file_stem
from ..formats.job_profile_report import JobReport, job_profile_costs, job_profile_lines
from ..formats.memory_report import NO_SNAPSHOT, memory_costs, memory_report_lines
from ..formats.profile_report import DeepReport, profile_costs, profile_lines
from ..widgets.dialogs import Page
from ..widgets.panel import View
from ..widgets.text import EMPTY, Row, Span, wrap
from .dialogs import Dialog
from .export import exported_words

if TYPE_CHECKING:
    from ..sources.deep_report import Looked, StepsAfter
    from ..sources.job_look import JobLooked
    from ..trace.leaks import MemoryWindow

STEPS: Final = 3
JOB_STEPS: Final = 10
MOST_S: Final = 20.0
FOR_S: Final = 30.0
HERE: Final = Path()
MARGIN: Final = 1
WIDEST: Final = 200

State = Literal["offered", "open", "read", "refused"]


class DeepScreen(Dialog):
    """Offers, waits on a thread, and shows lines of text. Leaving it while it waits gives up
    waiting: the process ends its window by itself."""

    def __init__(self, title: str, view: View) -> None:
        self.state: State = "offered"
        self._lines: Callable[[int], list[str]] = lambda _: []
        self._left = Event()
        super().__init__(title, self._rows, view)

    def on_page_wanted(self, wanted: Page.Wanted) -> None:
        """Begin, begin again, or keep the file."""
        if wanted.what == "save":
            self.notify(self.save())
        elif self.state != "open":
            self.state = "open"
            self.run_worker(self._look, thread=True, exit_on_error=False)
        self.show(self.view)

    def on_unmount(self) -> None:
        """Nobody waits any more."""
        self._left.set()

    def offer(self) -> list[str]:
        """What it costs, before anybody has asked for it."""
        raise NotImplementedError

    def look(self, stop: Event) -> Callable[[int], list[str]]:
        """Open the window and wait, on a thread; returns its lines by width. Raises a
        GpuwatchError."""
        raise NotImplementedError

    def save(self) -> str:
        """Keep the file; returns the notice."""
        raise NotImplementedError

    def _look(self) -> None:
        try:
            lines = self.look(self._left)
        except GpuwatchError as error:
            words = [line for line in (error.what, error.why, error.fix) if line]
            self._lines, self.state = (lambda _: words), "refused"
            return
        self._lines, self.state = lines, "read"

    def _rows(self, view: View, width: int) -> list[Row]:
        room = max(20, min(WIDEST, width - 2 * MARGIN))
        if self.state == "offered":
            lines = [*self.offer(), "", "Press p or m to begin, esc to leave."]
        elif self.state == "open":
            lines = ["The window is open: waiting for steps of the run."]
        else:
            lines = self._lines(room)
        rows: list[Row] = [EMPTY]
        for line in lines:
            for part in wrap(line, room, 4) if len(line) > room else [line]:
                rows.append((Span(" " * MARGIN), Span(part)) if part else EMPTY)
        return rows

    def _kept(self, suffix: str, content: bytes) -> str:
        return self._kept_all({suffix: content})

    def _kept_all(self, files: dict[str, bytes]) -> str:
        snapshot = self.view.snapshot
        stem = file_stem(snapshot.script, snapshot.pid, snapshot.t_unix)
        try:
            return exported_words(export(files, stem, HERE), self.app.size.width - 2)
        except OSError as error:
            return f"nothing written: {error}"


class ProfileScreen(DeepScreen):
    """A few steps by the profiler."""

    def __init__(self, view: View) -> None:
        self._looked: Looked | None = None
        self._report: DeepReport | None = None
        self._after: StepsAfter | None = None
        super().__init__("Profile", view)

    def show(self, view: View) -> None:
        """Draw a frame; steps after the window are taken from it."""
        if self._after is not None and self._report is not None:
            self._after.add(view.snapshot)
            self._report = self._after.on(self._report)
        super().show(view)

    def offer(self) -> list[str]:
        """For three steps."""
        return profile_costs(STEPS, operators=True)

    def look(self, stop: Event) -> Callable[[int], list[str]]:
        """Beside the verdict as it stands now."""
        from ..sources.deep_report import StepsAfter, open_window, report_of

        before = self.view.snapshot
        looked = open_window(before.pid, STEPS, MOST_S, True, stop)
        self._looked = looked
        self._report = report_of(before, looked)
        self._after = StepsAfter(before, looked.over_ns)
        return self._reported

    def save(self) -> str:
        """The trace."""
        if self._looked is None:
            return "there is no trace yet: p profiles"
        return self._kept(".trace.json", self._looked.trace())

    def _reported(self, width: int) -> list[str]:
        return [] if self._report is None else profile_lines(self._report, width)


class JobProfileScreen(DeepScreen):
    """The same steps on all ranks here."""

    def __init__(self, view: View) -> None:
        self._looked: JobLooked | None = None
        self._report: JobReport | None = None
        super().__init__("Profile of all ranks", view)

    def offer(self) -> list[str]:
        """For ten steps."""
        return job_profile_costs(JOB_STEPS)

    def look(self, stop: Event) -> Callable[[int], list[str]]:
        """Beside the job's verdict as it stands now."""
        from ..sources.job_look import job_report_of, open_job_windows

        before = self.view.snapshot
        self._looked = open_job_windows(before.pid, JOB_STEPS, MOST_S, stop)
        self._report = job_report_of(before, self._looked)
        return self._reported

    def save(self) -> str:
        """A trace of each rank."""
        if self._looked is None:
            return "there are no traces yet: p profiles"
        ranks = (one.rank for one in self._looked.profile.ranks)
        traces = zip(ranks, self._looked.traces(), strict=True)
        return self._kept_all({f".{rank}.trace.json": trace for rank, trace in traces})

    def _reported(self, width: int) -> list[str]:
        return [] if self._report is None else job_profile_lines(self._report, width)


class MemoryScreen(DeepScreen):
    """What outlives some seconds, by line."""

    def __init__(self, view: View) -> None:
        self._window: MemoryWindow | None = None
        self._snapshot: bytes | None = None
        super().__init__("Memory", view)

    def offer(self) -> list[str]:
        """For half a minute; of a run without a GPU Python's memory."""
        return memory_costs(FOR_S, host=not self.view.snapshot.gpus)

    def look(self, stop: Event) -> Callable[[int], list[str]]:
        """Open the memory's window."""
        from ..sources.deep_look import DeepLookLink
        from ..sources.deep_report import hello_of

        now = self.view.snapshot
        with DeepLookLink(hello_of(now.pid), now.pid) as link:
            self._window, self._snapshot = link.memory(FOR_S, False, stop)
        window = self._window
        return lambda width: memory_report_lines(now.script, now.pid, window, "", width)

    def save(self) -> str:
        """The snapshot for memory_viz."""
        if self._window is not None and self._snapshot is None:
            return f"no snapshot: {self._window.no_file or NO_SNAPSHOT}"
        if self._snapshot is None:
            return "there is no snapshot of GPU memory: m records one"
        return self._kept(".snapshot.pickle", self._snapshot)


def screen_for(what: str, view: View) -> DeepScreen | str:
    """The dialog; or why there is none here. In the view of the ranks a profile is of all."""
    snapshot = view.snapshot
    if snapshot.status.replay is not None:
        return f"{what} looks into a running process: this is a recording"
    if snapshot.status.state == "ended":
        return "the process has ended"
    if snapshot.hello is None:
        return f"{what} works through the probe, which this process lacks: d says how to get it"
    if what == "memory":
        return MemoryScreen(view)
    here = [rank for rank in snapshot.ranks if not rank.host and rank.state == "live"]
    return JobProfileScreen(view) if view.tab == "ranks" and len(here) > 1 else ProfileScreen(view)
