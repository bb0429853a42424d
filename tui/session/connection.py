"""The connection to the target: freshness, losses, the probe's cost, what is missing, the end."""

from collections import deque
from typing import Final, Literal

from ...probe.wire import page
from ..model.observations import Link, LinkState, Missing, PageSeen, TargetEnded
from ..model.snapshot import RunState, Status
from ..steps import Batch
from ..verdict.findings import MissingSignal, Signal

COST_SAMPLES: Final = 300
"""Messages of about a minute, over which the probe's cost is a mean."""
DYING_NS: Final = 1_500_000_000
"""The end is seen within a second; what fails from a little before it fails because of it."""
WITHOUT: Final = "probe"
"""The source that is missing where a process is watched without one."""
NEW_NS: Final = 1_000_000_000
"""Steps are stamped on the device from the first message on, and reported two turns of a quarter of
a second later."""
SILENT_S: Final = 3.0
"""Messages come four times a second; twelve missing in a row are no jitter."""


class ConnectionStore:
    """Freshness, losses, cost and what is missing."""

    def __init__(self) -> None:
        self.ended: TargetEnded | None = None
        self.fault: str | None = None
        """Why the probe is disarmed or has no socket."""
        self.hooked = False
        """A probe has answered, or its page was read."""
        self.unprobed = False
        """There is none: the run is watched without."""
        self._link: LinkState | Literal["connecting"] = "connecting"
        self._interpreter_exited = False
        self._raised = ""
        """Type of the exception that ended it."""
        self._page_state: int | None = None
        self._first_message_ns: int | None = None
        self._last_message_ns: int | None = None
        self._lost_messages = 0
        self._lost_marks = 0
        self._refused = 0
        self._unended = 0
        self._marks: deque[tuple[int, int]] = deque(maxlen=COST_SAMPLES)
        """(sent_ns, marks)"""
        self.mark_cost_ns: int | None = None
        self.update_wrapper_ns: tuple[int, int] | None = None
        """The newest of both."""
        self._monitor_cpu_percent: float | None = None
        self._missing: dict[Signal, Missing] = {}

    def delivered(self, t_ns: int, batch: Batch, lost: int) -> None:
        """A message came."""
        self.hooked, self.unprobed = True, False
        self._link = "connected"
        self._last_message_ns = t_ns
        if self._first_message_ns is None:
            self._first_message_ns = t_ns
        self._lost_messages += lost
        self._lost_marks = batch.lost_marks
        self._refused = batch.refused
        self._unended = batch.unended
        self.fault = batch.fault
        if self._marks and batch.marks < self._marks[-1][1]:
            self._marks.clear()  # installed anew: it counts from 0 again
        self._marks.append((batch.sent_ns, batch.marks))
        self.mark_cost_ns = batch.mark_cost_ns or self.mark_cost_ns
        self.update_wrapper_ns = batch.update_wrapper_ns or self.update_wrapper_ns

    def page_seen(self, seen: PageSeen) -> None:
        """The page was read."""
        self.hooked = True
        self._page_state = seen.state

    def linked(self, link: Link) -> None:
        """The feed changed its state."""
        left = link.detail if link.state == "left" else ""
        self._raised = left.removeprefix(page.RAISED) if left.startswith(page.RAISED) else ""
        self._interpreter_exited = bool(self._raised) or left == "exiting"
        if link.state != "malformed":
            self._link = link.state

    def missed(self, missing: Missing) -> None:
        """A source cannot deliver, or can again."""
        if missing.source == WITHOUT:
            self.unprobed = bool(missing.reason) and not self.hooked
        if not missing.reason:
            self._missing.pop(missing.source, None)
            return
        self._missing[missing.source] = missing

    def monitor_used(self, cpu_percent: float) -> None:
        """The monitor's own CPU, of one core."""
        self._monitor_cpu_percent = cpu_percent

    def is_new(self, now_ns: int) -> bool:
        """What the probe begins to measure for us may not have come yet."""
        first_ns = self._first_message_ns
        return first_ns is not None and now_ns - first_ns < NEW_NS

    @property
    def killed(self) -> bool:
        """It has ended while its probe was at work: by a signal, or a crash."""
        in_order = self._interpreter_exited or not self.hooked
        return self.ended is not None and not in_order and self._page_state == page.STATE_ARMED

    @property
    def marks_are_over(self) -> bool:
        """It has ended, or its probe has left while the process may live on."""
        return self.ended is not None or self._link == "left"

    def lacks(self, signal: Signal) -> bool:
        """Whether its source has reported that it cannot deliver."""
        return signal in self._missing

    @property
    def missing(self) -> tuple[MissingSignal, ...]:
        """Every signal that cannot be had, but for those that failed because the target ended."""
        until_ns = None if self.ended is None else self.ended.t_ns - DYING_NS
        signals = [
            missing.signal
            for missing in self._missing.values()
            if until_ns is None or missing.t_ns < until_ns
        ]
        if self.fault and not any(self.fault in one.why for one in signals):
            signals.append(MissingSignal("probe", self.fault))
        return tuple(signals)

    def status(self, now_ns: int) -> Status:
        """For the faces."""
        freshness_s = None
        if self._last_message_ns is not None:
            freshness_s = max(0, now_ns - self._last_message_ns) / 1e9
        return Status(
            mode="hooks" if self.hooked else "no probe",
            state=self._state(freshness_s),
            ended=self._how_it_ended(now_ns),
            freshness_s=freshness_s,
            lost_messages=self._lost_messages,
            lost_marks=self._lost_marks,
            refused_requests=self._refused,
            unended_phases=self._unended,
            cost_share=self._cost_share(),
            monitor_cpu_percent=self._monitor_cpu_percent,
            missing=self.missing,
        )

    def _state(self, freshness_s: float | None) -> RunState:
        if self.ended is not None:
            return "ended"
        if freshness_s is None and self.unprobed:
            return "live"
        if freshness_s is None:
            return "silent" if self._link == "silent" else "connecting"
        if self._link in ("silent", "left") or freshness_s > SILENT_S:
            return "silent"
        return "live"

    def _how_it_ended(self, now_ns: int) -> str | None:
        if self.ended is None:
            return None
        ago_s = max(0, now_ns - self.ended.t_ns) / 1e9
        return f"{self.end_text(self.ended)} {_ago(ago_s)} ago"

    def end_text(self, ended: TargetEnded) -> str:
        """By its exit status; where that is not known, by what the probe has seen of the
        interpreter's end: an exit code may be any then."""
        if ended.code is not None or ended.signal is not None:
            return f"{ended.text} ({self._raised})" if self._raised else ended.text
        if self._raised:
            return f"was ended by {self._raised}"
        if self._interpreter_exited or self._page_state == page.STATE_ENDED:
            return "exited"
        if ended.full:
            return ended.text
        return "was killed or crashed" if self.killed else ended.text

    def _cost_share(self) -> float | None:
        """Marks in the time between two messages, times what one costs, over that time."""
        if self.mark_cost_ns is None or len(self._marks) < 2:
            return None
        (first_ns, first), (last_ns, last) = self._marks[0], self._marks[-1]
        if last_ns <= first_ns:
            return None
        return (last - first) * self.mark_cost_ns / (last_ns - first_ns)


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
