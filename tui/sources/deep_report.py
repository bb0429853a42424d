"""A profiler's window from the question to the report, for the command and for the screen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from threading import Event

from ..discovery.targets import own_page
from ..errors import NothingToMeasureError
from ..formats.profile_report import DeepReport
from ..messages import Hello
from ..model.snapshot import Snapshot
from ..steps import Step
from ..trace.against import against
from ..trace.file import file_of
from ..trace.host import HostProfile, read_window
from ..trace.pace import pace_of
from ..trace.profile import Profile, Window
from .deep_look import DeepLookLink, ProfileAnswer


@dataclass(frozen=True, slots=True)
class Looked:
    """A window that was opened and read."""

    answer: ProfileAnswer
    window: Window
    profile: Profile | HostProfile

    @property
    def over_ns(self) -> int:
        """When the run went on without the profiler, at the latest."""
        return self.window.times.ends_ns[-1] + self.answer.pause_ns

    def trace(self) -> bytes:
        """The file for Perfetto."""
        return file_of(self.window)


def hello_of(pid: int) -> Hello:
    """Of a process with a probe. Raises NothingToMeasureError where it has ended."""
    opened = own_page(pid)
    if opened is None:
        raise NothingToMeasureError(f"process {pid} has ended")
    hello = opened.hello
    opened.close()
    return hello


def open_window(
    pid: int, steps: int, most_s: float, operators: bool, stop: Event | None = None
) -> Looked:
    """Ask, wait and read. Raises a GpuwatchError where there is no window to be had."""
    with DeepLookLink(hello_of(pid), pid) as link:
        answer, window = link.profile(steps, most_s, operators, stop)
    try:
        return Looked(answer, window, read_window(window, answer.on_device))
    except ValueError as error:
        raise NothingToMeasureError("the window shows nothing", str(error)) from None


def report_of(before: Snapshot, looked: Looked) -> DeepReport:
    """`before`: the run as it was, with its verdict. Without the steps after it."""
    profile = looked.profile
    compared = None
    each_ns = _each_ns(before.recent)
    live_ns = median(each_ns) if each_ns else None
    if isinstance(profile, Profile):
        compared = against(before.verdict.finding.kind, profile, live_ns)
    return DeepReport(
        script=before.script,
        pid=before.pid,
        profile=profile,
        verdict=before.verdict,
        comparison=compared,
        pace=None,
        pause_ns=looked.answer.pause_ns,
        torn_down=looked.answer.torn_down,
        live_ns=live_ns,
        no_operators=looked.answer.no_operators,
    )


class StepsAfter:
    """Steps that began a step or more after a window, as they are seen."""

    def __init__(self, before: Snapshot, since_ns: int) -> None:
        self._before = _each_ns(before.recent)
        self._since_ns = since_ns
        self._taken: dict[int, int] = {}

    @property
    def count(self) -> int:
        """Seen so far."""
        return len(self._taken)

    def add(self, now: Snapshot) -> None:
        """What a snapshot has of them."""
        later = [step for step in now.recent if step.start_ns > self._since_ns]
        self._taken.update(zip((step.start_ns for step in later), _each_ns(later), strict=True))

    def on(self, report: DeepReport) -> DeepReport:
        """The report with their pace, once there are enough."""
        after = [self._taken[start_ns] for start_ns in sorted(self._taken)][1:]
        return replace(report, pace=pace_of(self._before, after))


def _each_ns(steps: Sequence[Step]) -> list[int]:
    """Of rows that hold several steps the mean."""
    return [(step.end_ns - step.start_ns) // step.count for step in steps]
