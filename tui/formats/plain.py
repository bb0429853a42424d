"""`--plain`: the live view as a stream of lines, for logs, pipes and terminals without a screen."""

from typing import Final, NamedTuple

from ..model.snapshot import Event, Snapshot
from ..verdict.findings import MissingSignal
from ..wording import numbers
from ..wording.gpu import does_words
from ..wording.steps import share_words
from ..wording.words import word_of
from .report import event_line, note_line, report_lines, verdict_lines
from .report_run import phase_shares

HEARTBEAT_NS: Final = 2_000_000_000
"""Often enough to show that it is alive, seldom enough to read."""
REPORT_NS: Final = 60_000_000_000
"""Between two full reports: as long as the verdict's window."""
NEWS_SHARE: Final = 0.10
"""A verdict is written again when its share moved by so much of the wall time…"""
NEWS_SPEEDUP: Final = 1.3
"""…or its speedup by this factor."""
HEARTBEAT_WORDS: Final = 2
"""Of a GPU's activity: multiprocessors and tensor cores, where measured."""


class VerdictKey(NamedTuple):
    """What in a verdict is worth another block when it changes."""

    name: tuple[str, str | None, str]
    """Kind, sub and severity."""
    share: float | None
    speedup: float | None
    placed: bool
    """Of a stall: its place in the code is known."""


def key_of(snapshot: Snapshot) -> VerdictKey:
    """Of this moment's verdict."""
    finding, now = snapshot.verdict.finding, snapshot.open_step
    frame = now.frame if now is not None else None
    placed = finding.kind == "stalled" and frame is not None and frame in finding.headline
    name = (finding.kind, finding.sub, finding.severity)
    return VerdictKey(name, finding.share, finding.speedup, placed)


def is_news(before: VerdictKey, now: VerdictKey) -> bool:
    """Another verdict; or its numbers moved, or its place became known."""
    if before.name != now.name or (now.placed and not before.placed):
        return True
    shares = None if before.share is None or now.share is None else (before.share, now.share)
    if shares is not None and abs(shares[0] - shares[1]) >= NEWS_SHARE:
        return True
    if before.speedup is None or now.speedup is None:
        return before.speedup is not now.speedup
    low, high = sorted((before.speedup, now.speedup))
    return high >= NEWS_SPEEDUP * low


class PlainView:
    """Writes what is new in each snapshot: a block for a new verdict, events and notes,
    else a heartbeat; and a full report every minute."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._written: VerdictKey | None = None
        """The verdict that was written last."""
        self._heartbeat_ns: int | None = None
        self._missing: set[MissingSignal] = set()
        self._notes: set[str] = set()
        """Texts of the notes that were written."""
        self._events: set[Event] = set()
        """Those that were written, or older than this view."""
        self._report_ns: int | None = None
        """When the next report is due."""

    def lines(self, snapshot: Snapshot) -> list[str]:
        """What to write now; often nothing."""
        if self._report_ns is None:
            self._report_ns = snapshot.t_ns + REPORT_NS
            self._events.update(snapshot.events)
        lines = self._missing_lines(snapshot) + self._new_events(snapshot)
        now = key_of(snapshot)
        if self._written is None or is_news(self._written, now):
            self._written = now
            lines += ["", *verdict_lines(snapshot.verdict, self._width), ""]
            self._heartbeat_ns = snapshot.t_ns
            self._notes.update(note.text for note in snapshot.verdict.notes)
        elif self._heartbeat_ns is None or snapshot.t_ns - self._heartbeat_ns >= HEARTBEAT_NS:
            self._heartbeat_ns = snapshot.t_ns
            lines.append(heartbeat(snapshot))
        lines += self._new_notes(snapshot)
        if snapshot.t_ns < self._report_ns:
            return lines
        self._report_ns = snapshot.t_ns + REPORT_NS
        return [*lines, *self.closing(snapshot), ""]

    def closing(self, snapshot: Snapshot) -> list[str]:
        """The full report."""
        rule = "-" * min(self._width, 40)
        return ["", rule, *report_lines(snapshot, self._width)]

    def _missing_lines(self, snapshot: Snapshot) -> list[str]:
        new = [one for one in snapshot.status.missing if one not in self._missing]
        self._missing.update(new)
        return [f"without {one.text}" for one in new]

    def _new_events(self, snapshot: Snapshot) -> list[str]:
        """Without changes of verdict: those get a block."""
        new = [event for event in snapshot.events if event not in self._events]
        self._events = set(snapshot.events)
        return [event_line(event) for event in new if event.kind != "verdict"]

    def _new_notes(self, snapshot: Snapshot) -> list[str]:
        """Settings and costs may become known after the verdict was written."""
        new = [note for note in snapshot.verdict.notes if note.text not in self._notes]
        self._notes.update(note.text for note in new)
        return [f"note: {note_line(note)}" for note in new]


def heartbeat(snapshot: Snapshot) -> str:
    """One line: how far, how fast, where the time goes, the verdict's word."""
    word = word_of(snapshot.verdict.finding)
    status, steps, now = snapshot.status, snapshot.steps, snapshot.open_step
    if status.state == "ended":
        return f"training {status.ended} · {word}"
    parts: list[str] = []
    if steps is not None:
        parts.append(f"step {numbers.count(steps.total)}")
        parts.append(numbers.steps_in_time(steps.steps_s))
        parts.append(", ".join(phase_shares(snapshot)))
        parts += _gpus(snapshot)
    elif snapshot.sampled is not None and snapshot.sampled.samples:
        parts.append(", ".join(share_words(snapshot.sampled)))
        parts += _gpus(snapshot)
    if status.state == "silent" and status.freshness_s is not None:
        parts.append(f"no message for {numbers.duration(status.freshness_s)}")
    elif steps is None and not parts:
        parts.append(status.state if status.state != "live" else "no step yet")
    unusual_s = 1.0 if steps is None else 3 + 3 * steps.p50_ms / 1000
    if now is not None and now.age_s >= unusual_s:
        parts.append(f"in {now.phase} for {numbers.duration(now.age_s)}")
    return " · ".join([*parts, word])


def _gpus(snapshot: Snapshot) -> list[str]:
    """What each GPU does; without its index where there is only one."""
    several = len(snapshot.activity) > 1
    return [
        (f"GPU {one.index} " if several else "") + ", ".join(does_words(one)[:HEARTBEAT_WORDS])
        for one in snapshot.activity
        if does_words(one)
    ]
