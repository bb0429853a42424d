"""What `attach --json` reported over a run, line by line, and whether it kept its contract."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from gpuwatch.tui.formats.jsonlines import SCHEMA

PROMISED_S: Final = 1.0


@dataclass
class AttachOutput:
    """All of its lines, read in order."""

    lines: int = 0
    wrong: list[str] = field(default_factory=list)
    """What was wrong with lines, each once."""
    longest_gap_s: float = 0.0
    """Between two lines; one a second is promised."""
    late: int = 0
    """Lines that came more than a second after the one before."""
    finals: int = 0
    states: Counter[str] = field(default_factory=Counter)
    lost_messages: int = 0
    lost_marks: int = 0
    steps: int = 0
    """As the last line counts them."""
    verdicts: list[tuple[float, str]] = field(default_factory=list)
    """(time, kind/sub) of each line."""
    lost_at: list[tuple[float, int]] = field(default_factory=list)
    """(time, messages lost until then) of each line."""
    _last_t: float | None = None

    def take(self, text: str) -> None:
        """One line."""
        self.lines += 1
        try:
            line = json.loads(text)
        except ValueError:
            self._complain("a line is no JSON")
            return
        if line["schema"] != SCHEMA:
            self._complain(f"schema {line['schema']}")
        if self.finals:
            self._complain("a line after the last")
        self.finals += line["final"]
        self._time(line["t"])
        self._status(line["status"], line["t"])
        if line["steps"] is not None:
            if line["steps"]["total"] < self.steps:
                self._complain("steps were taken back")
            self.steps = line["steps"]["total"]
        verdict = line["verdict"]
        name = "/".join(filter(None, (verdict["kind"], verdict["sub"])))
        self.verdicts.append((line["t"], name))

    def _time(self, t: float) -> None:
        if self._last_t is not None:
            if t < self._last_t:
                self._complain("time went back")
            self.longest_gap_s = max(self.longest_gap_s, t - self._last_t)
            self.late += t - self._last_t > PROMISED_S
        self._last_t = t

    def _status(self, status: dict[str, Any], t: float) -> None:
        self.states[status["state"]] += 1
        self.lost_messages = max(self.lost_messages, status["lost_messages"])
        self.lost_marks = max(self.lost_marks, status["lost_marks"])
        self.lost_at.append((t, status["lost_messages"]))

    def _complain(self, what: str) -> None:
        if what not in self.wrong:
            self.wrong.append(what)


def read_output(lines: Iterable[str]) -> AttachOutput:
    """A line that is not complete is not read: it is being written."""
    output = AttachOutput()
    for text in lines:
        if text.endswith("\n"):
            output.take(text)
    return output
