"""`--plain`: the live view as a stream of lines, for logs, pipes and terminals without a screen."""

from typing import Final

from tui.report import note_line, phase_shares, report_lines, verdict_lines
from tui.snapshot import Snapshot
from tui.wording import numbers
from tui.wording.gpu import does_words
from tui.wording.words import WORDS

HEARTBEAT_NS: Final = 2_000_000_000
"""Often enough to see that it lives, seldom enough to read."""
HEARTBEAT_WORDS: Final = 2
"""Of what a GPU does: multiprocessors and tensor cores, where those are told."""


class PlainView:
    """Says what is new in each snapshot: a block for another verdict, else a heartbeat."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._said: tuple[str, str | None, str] | None = None
        """Kind, sub and severity of the verdict that was written last."""
        self._heartbeat_ns: int | None = None
        self._missing: set[str] = set()
        self._noted: set[str] = set()
        """Texts of the notes that were written."""

    def lines(self, snapshot: Snapshot) -> list[str]:
        """What to write now; often nothing."""
        lines = self._missing_lines(snapshot)
        finding = snapshot.verdict.finding
        now = (finding.kind, finding.sub, finding.severity)
        if now != self._said:
            self._said = now
            lines += ["", *verdict_lines(snapshot.verdict, self._width), ""]
            self._heartbeat_ns = snapshot.t_ns
            self._noted.update(note.text for note in snapshot.verdict.notes)
        elif self._heartbeat_ns is None or snapshot.t_ns - self._heartbeat_ns >= HEARTBEAT_NS:
            self._heartbeat_ns = snapshot.t_ns
            lines.append(heartbeat(snapshot))
        return lines + self._new_notes(snapshot)

    def closing(self, snapshot: Snapshot) -> list[str]:
        """The report at the end."""
        rule = "-" * min(self._width, 40)
        return ["", rule, *report_lines(snapshot, self._width)]

    def _missing_lines(self, snapshot: Snapshot) -> list[str]:
        new = [line for line in snapshot.status.missing if line not in self._missing]
        self._missing.update(new)
        return [f"without {line}" for line in new]

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
        return f"the process {status.ended} · {word}"
    said: list[str] = []
    if steps is not None:
        said.append(f"step {numbers.count(steps.total)}")
        said.append(f"{numbers.digits(steps.steps_s)} steps/s")
        said.append(", ".join(phase_shares(steps)))
        said += _gpus(snapshot)
    if status.state == "silent" and status.freshness_s is not None:
        said.append(f"no message for {numbers.duration(status.freshness_s)}")
    elif steps is None:
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
