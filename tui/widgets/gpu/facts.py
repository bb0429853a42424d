"""What holds a GPU's clocks down, who is on it, and what its figures rest on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...verdict.findings import Signal
from ...wording.gpu import (
    clocks_words,
    cores_words,
    counters_words,
    held_by,
    holder_words,
    host_memory_words,
    no_gpu_words,
)
from ...wording.ledger import ledger_words
from ..panel import Panel, View
from ..text import Row, Span, clip, row, rule, within
from .devices import chosen_gpu
from .strips import label_cells

HEADED_FROM = 5
"""Rows from which it has a heading, and a line for every process."""
SIGN = "▲ "
OF_THE_GPU: Final[tuple[Signal, ...]] = ("nvml", "gpm")
"""Sources whose absence is shown here."""


@dataclass(frozen=True, slots=True)
class FactLine:
    """One line."""

    name: str
    words: str
    role: str = "text"


class GpuFactsPanel(Panel):
    """Without a GPU: why, and what there is instead."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """A line each; where they do not all fit, what is wrong stays."""
        headed = height >= HEADED_FROM
        lines = fact_lines(view, width - label_cells(width) - 3, apart=headed)
        if not headed:
            return [_row(line, width) for line in most_urgent(lines, height)]
        title = "On this GPU" if chosen_gpu(view) else "Without a GPU"
        head = rule(title, (), width, self.has_focus)
        shown = most_urgent(lines, height - 1)
        left = len(lines) - len(shown)
        if left:
            more = row(f"{'':{label_cells(width)}}  and {left + 1} more", "dim")
            return [head, *(_row(line, width) for line in shown[:-1]), more]
        return [head, *(_row(line, width) for line in shown)]


def fact_lines(view: View, width: int, apart: bool) -> list[FactLine]:
    """What there is to say of the chosen GPU, or of a machine without, in so many cells; `apart`:
    processes on it that do not fit into a line have one each."""
    snapshot, gpu = view.snapshot, chosen_gpu(view)
    missing = [one.text for one in snapshot.status.missing if one.signal in OF_THE_GPU]
    if gpu is None:
        return [
            FactLine("GPU", within(no_gpu_words(snapshot), width)[0]),
            FactLine("CPU", cores_words(snapshot)),
            FactLine("memory", host_memory_words(snapshot.memory)),
        ]
    holders = holder_words(gpu)
    together = " · ".join(holders)
    if not apart or len(together) <= width - len(SIGN):
        holders = [together]
    found = [one for one in snapshot.series if one.device == gpu.index]
    crowded = "warning" if gpu.others else "text"
    spent = [] if snapshot.ledger is None else ledger_words(snapshot.ledger, width)
    return [
        *(FactLine("time", " · ".join(spent)) for _ in spent[:1]),
        FactLine("clocks", clocks_words(gpu), "warning" if held_by(gpu) else "text"),
        *(FactLine("" if at else "used by", words, crowded) for at, words in enumerate(holders)),
        *(FactLine("missing", words, "warning") for words in missing),
        *(FactLine("measured", words, "dim") for words in [counters_words(found, width)] if words),
    ]


def most_urgent(lines: Sequence[FactLine], most: int) -> list[FactLine]:
    """At most so many, those with a warning before the others, in their order."""
    urgent = sorted(lines, key=lambda line: line.role != "warning")[: max(0, most)]
    return [line for line in lines if line in urgent]


def _row(line: FactLine, width: int) -> Row:
    sign = SIGN if line.role == "warning" else ""
    label = label_cells(width)
    words = clip(line.words, width - label - 3 - len(sign))
    return (Span(f"{line.name:>{label}}  ", "dim"), Span(sign, line.role), Span(words, _role(line)))


def _role(line: FactLine) -> str:
    return "strong" if line.role == "warning" else line.role
