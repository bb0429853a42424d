"""`--plain`: the live view as a stream of lines, for logs, pipes and terminals without a screen."""

from typing import Final, NamedTuple

from ..model.snapshot import Event, Snapshot
from ..verdict.findings import MissingSignal
from ..wording import numbers
from ..wording.gpu import does_words
from ..wording.steps import share_words
from ..wording.words import WORDS
from .report import event_line, note_line, phase_shares, report_lines, verdict_lines

HEARTBEAT_NS: Final = 2_000_000_000
"""Often enough to see that it lives, seldom enough to read."""
REPORT_NS: Final = 60_000_000_000
"""Between two whole reports: as long as the verdict's window."""
NEWS_SHARE: Final = 0.10
"""A share that moved by so much of the wall time is said again."""
NEWS_SPEEDUP: Final = 1.3
"""And a forecast that is so many times what it was."""
HEARTBEAT_WORDS: Final = 2
"""Of what a GPU does: multiprocessors and tensor cores, where those are told."""


class VerdictKey(NamedTuple):
    """What a verdict says, as far as a change of it is worth another block."""

    name: tuple[str, str | None, str]
    """Kind, sub and severity."""
    share: float | None
    speedup: float | None
    placed: bool
    """Where it stands still is known."""


def said_of(snapshot: Snapshot) -> VerdictKey:
    """Of this moment's verdict."""
    finding, now = snapshot.verdict.finding, snapshot.open_step
    frame = now.frame if now is not None else None
    placed = finding.kind == "stalled" and frame is not None and frame in finding.headline
    name = (finding.kind, finding.sub, finding.severity)
    return VerdictKey(name, finding.share, finding.speedup, placed)


def is_news(before: VerdictKey, now: VerdictKey) -> bool:
    """Another verdict; or its numbers became others, or a place came to it."""
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
    """Says what is new in each snapshot: a block for another verdict, events and notes as they
    come, else a heartbeat; and every minute all there is to say."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._said: VerdictKey | None = None
        """What was written last."""
        self._heartbeat_ns: int | None = None
        self._missing: set[MissingSignal] = set()
        self._noted: set[str] = set()
        """Texts of the notes that were written."""
        self._events: set[Event] = set()
        """Those that were written, or were over when it began."""
        self._report_ns: int | None = None
        """When the next report is due."""

    def lines(self, snapshot: Snapshot) -> list[str]:
        """What to write now; often nothing."""
        if self._report_ns is None:
            self._report_ns = snapshot.t_ns + REPORT_NS
            self._events.update(snapshot.events)
        lines = self._missing_lines(snapshot) + self._new_events(snapshot)
        now = said_of(snapshot)
        if self._said is None or is_news(self._said, now):
            self._said = now
            lines += ["", *verdict_lines(snapshot.verdict, self._width), ""]
            self._heartbeat_ns = snapshot.t_ns
            self._noted.update(note.text for note in snapshot.verdict.notes)
        elif self._heartbeat_ns is None or snapshot.t_ns - self._heartbeat_ns >= HEARTBEAT_NS:
            self._heartbeat_ns = snapshot.t_ns
            lines.append(heartbeat(snapshot))
        lines += self._new_notes(snapshot)
        if snapshot.t_ns < self._report_ns:
            return lines
        self._report_ns = snapshot.t_ns + REPORT_NS
        return [*lines, *self.closing(snapshot), ""]

    def closing(self, snapshot: Snapshot) -> list[str]:
        """The whole report."""
        rule = "-" * min(self._width, 40)
        return ["", rule, *report_lines(snapshot, self._width)]

    def _missing_lines(self, snapshot: Snapshot) -> list[str]:
        new = [one for one in snapshot.status.missing if one not in self._missing]
        self._missing.update(new)
        return [f"without {one.text}" for one in new]

    def _new_events(self, snapshot: Snapshot) -> list[str]:
        """A verdict that changed gets its block."""
        new = [event for event in snapshot.events if event not in self._events]
        self._events = set(snapshot.events)
        return [event_line(event) for event in new if event.kind != "verdict"]

    def _new_notes(self, snapshot: Snapshot) -> list[str]:
        """Settings are read, and costs known, after a verdict may have been written."""
        new = [note for note in snapshot.verdict.notes if note.text not in self._noted]
        self._noted.update(note.text for note in new)
        return [f"note: {note_line(note)}" for note in new]


def heartbeat(snapshot: Snapshot) -> str:
    """One line: how far, how fast, where the time goes, the verdict's word."""
    word = WORDS[snapshot.verdict.finding.kind]
    status, steps, now = snapshot.status, snapshot.steps, snapshot.open_step
    if status.state == "ended":
        return f"training {status.ended} · {word}"
    said: list[str] = []
    if steps is not None:
        said.append(f"step {numbers.count(steps.total)}")
        said.append(f"{numbers.digits(steps.steps_s)} steps/s")
        said.append(", ".join(phase_shares(steps)))
        said += _gpus(snapshot)
    elif snapshot.sampled is not None and snapshot.sampled.samples:
        said.append(", ".join(share_words(snapshot.sampled)))
        said += _gpus(snapshot)
    if status.state == "silent" and status.freshness_s is not None:
        said.append(f"no message for {numbers.duration(status.freshness_s)}")
    elif steps is None and not said:
        said.append(status.state if status.state != "live" else "no step yet")
    unusual_s = 1.0 if steps is None else 3 + 3 * steps.p50_ms / 1000
    if now is not None and now.age_s >= unusual_s:
        said.append(f"in {now.phase} for {numbers.duration(now.age_s)}")
    return " · ".join([*said, word])


def _gpus(snapshot: Snapshot) -> list[str]:
    """What each GPU does, its name left out where there is one."""
    several = len(snapshot.activity) > 1
    return [
        (f"GPU {one.index} " if several else "") + ", ".join(does_words(one)[:HEARTBEAT_WORDS])
        for one in snapshot.activity
        if does_words(one)
    ]
