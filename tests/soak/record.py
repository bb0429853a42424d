"""A soak as its files show it, ended or not."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from tests.soak.attach_output import AttachOutput, read_output
from tests.soak.costs import Triple
from tests.soak.files import Files, rows
from tests.soak.trend import PARTS, Figure, part_of, parts

Row = dict[str, Any]


@dataclass(frozen=True)
class SoakRecord:
    """All that was written."""

    began: float
    """Unix time."""
    cores: int
    closing: Row | None
    """None: it goes on, or was cut off."""
    samples: list[Row]
    watched: list[Row]
    bare: list[Row]
    attached: AttachOutput

    @property
    def length_s(self) -> float:
        """Until the last thing that was reported."""
        return float(max(row["t"] for row in (self.samples[-1], *self.rounds[-1:])) - self.began)

    @property
    def load(self) -> float | None:
        """Threads that wanted a core, beyond which there were in one sample of ten. None where the
        samples do not say: those of an earlier soak."""
        loads = sorted(row["load"] for row in self.samples if "load" in row)
        return loads[int(0.9 * (len(loads) - 1))] if loads else None

    @property
    def to_itself(self) -> bool | None:
        """Whether all who wanted a core had one, so that nobody else was in the way."""
        return None if self.load is None else self.load <= self.cores

    @property
    def ready(self) -> Row:
        """What the watched run reported first."""
        return self.watched[0]

    @cached_property
    def rounds(self) -> list[Row]:
        """Of the watched run."""
        return [row for row in self.watched if row["kind"] == "round"]

    @cached_property
    def bare_rounds(self) -> list[Row]:
        """Of its twin."""
        return [row for row in self.bare if row["kind"] == "round"]

    @property
    def hooked_steps(self) -> int | None:
        """As the watched run counted them; None before its end."""
        last = self.watched[-1]
        return last["hooked_steps"] if last["kind"] == "end" else None

    def sampled(self, look: Callable[[Row], float]) -> list[Figure]:
        """The median of the samples in each part of the run."""
        return parts(((row["s"], look(row)) for row in self.samples), self.length_s)

    def rates(self, look: Callable[[Row], float]) -> list[Figure]:
        """What a counter of the samples grew by a second, in each part."""
        firsts: list[Row | None] = [None] * PARTS
        for row in self.samples:
            at = part_of(row["s"], self.length_s)
            firsts[at] = firsts[at] or row
        ends = [*firsts, self.samples[-1]]
        return [
            (look(end) - look(first)) / (end["s"] - first["s"])
            if first is not None and end is not None and end["s"] > first["s"]
            else None
            for first, end in pairwise(ends)
        ]

    @cached_property
    def triples(self) -> list[list[Triple]]:
        """Those of all sprints in each part of the run."""
        found: list[list[Triple]] = [[] for _ in range(PARTS)]
        for row in self.rounds:
            found[part_of(row["t"] - self.began, self.length_s)] += row["triples"]
        return found


def read_record(files: Files) -> SoakRecord:
    """Read it."""
    about = json.loads(files.about.read_text())
    with open(files.attached, encoding="utf-8") as lines:
        attached = read_output(lines)
    return SoakRecord(
        began=about["began"],
        cores=about["cores"],
        closing=json.loads(files.closing.read_text()) if files.closing.exists() else None,
        samples=rows(files.samples),
        watched=rows(files.training("watched")),
        bare=rows(files.training("bare")),
        attached=attached,
    )
