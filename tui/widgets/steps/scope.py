"""The scope: the profile of one step, drawn over its phases."""

from collections.abc import Sequence
from itertools import pairwise

from ...model.snapshot import PhaseStats, Scope, Snapshot
from ...wording.numbers import count, milliseconds
from ...wording.steps import waiting_words
from ..charts.columns import ChartColumn, area_rows
from ..charts.small import histogram_rows
from ..panel import Panel, View
from ..text import Row, Span, ends, row, rule
from .phases import PhaseStyle, looks_of
from .step_times import wall_ms

GUTTER = 5
"""Cells of the scale, as the sawtooth's."""
LEAST_HEIGHT = 6
"""Rows: a heading, three of the picture, the axis and the phases."""
IN_ORDER = ("data", "forward", "backward", "optimizer")
"""Phases that follow each other in a step; where the others lie in it is not known."""
RARE = ("loader start-up", "evaluation", "checkpoint", "compile")
"""Phases that steps of the usual length, which are the ones folded, do not have."""


class ScopePanel(Panel):
    """The inside of one step; where that cannot be resolved, how often steps take how long, and why
    there is no more."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading and picture."""
        snapshot = view.snapshot
        if snapshot.scope is not None:
            notes = scope_notes(snapshot.scope)
            out = [rule("Inside one step: SM active %", notes, width, self.has_focus)]
            phases = phases_below(snapshot)
            return [*out, *scope_body(snapshot.scope, phases, width, height - 1)]
        steps = snapshot.recent
        if not steps:
            waiting = row(f"   {waiting_words(view.snapshot)}", "dim")
            return [rule("Inside one step", (), width, self.has_focus), waiting]
        out = [rule(f"How long {count(len(steps))} steps took", ["[hook]"], width, self.has_focus)]
        why = [why_no_scope(snapshot)] if height >= LEAST_HEIGHT else []
        out += histogram_rows([wall_ms(step) for step in steps], width, height - 1 - len(why))
        return [*out, *(row(f" {line}", "dim") for line in why)]


def why_no_scope(snapshot: Snapshot) -> str:
    """Why the inside of a step is not shown."""
    if not snapshot.gpus:
        return "the inside of a step needs a GPU"
    if not any(one.sm is not None for one in snapshot.activity):
        return "scope: needs GPM, Hopper or newer"
    return "no repeating pattern to show"


def phases_below(snapshot: Snapshot) -> Sequence[PhaseStats]:
    """The profile is of the GPU, so its own clock says what it did, where it is read."""
    if snapshot.gpu_phases is not None:
        return snapshot.gpu_phases.phases
    return snapshot.steps.phases if snapshot.steps else ()


def scope_rows(scope: Scope, phases: Sequence[PhaseStats], width: int, height: int) -> list[Row]:
    """The scope as a part of a larger panel."""
    left: Row = (
        Span(f" one step, folded ({count(scope.steps)} steps)", "dim"),
        Span("   SM active %"),
    )
    right = Span(f"{' · '.join([scope.source, *_sure(scope)])} ", "dim")
    return [ends(left, (right,), width), *scope_body(scope, phases, width, height - 1)]


def scope_notes(scope: Scope) -> list[str]:
    """What it is made of."""
    return [f"{count(scope.steps)} steps folded", scope.source, *_sure(scope)]


def _sure(scope: Scope) -> list[str]:
    sides = [
        (high - low) / 2
        for low, high in zip(scope.low, scope.high, strict=True)
        if low is not None and high is not None
    ]
    return [f"±{sum(sides) / len(sides):.0f}"] if sides else []


def scope_body(scope: Scope, phases: Sequence[PhaseStats], width: int, height: int) -> list[Row]:
    """Blocks up to the mean, shade up to the highest of the quarters; a part of the profile is as
    many columns wide as it is long. Below it the phases, each with its mean."""
    count_of = width - GUTTER - 1
    parts = len(scope.mean)
    columns = [_column(scope, x * parts // count_of) for x in range(count_of)]
    below = _below(scope, phases, count_of, means=height >= LEAST_HEIGHT)
    body = area_rows(columns, max(1, height - len(below)))
    labels = [" " * (GUTTER - 1) + "┤"] * len(body)
    if len(body) >= LEAST_HEIGHT:
        labels[len(body) // 2] = "  50┤"
    labels[-1] = "   0┤"
    labels[0] = " 100┤"
    out: list[Row] = [
        (Span(label, "dim"), Span(text, "area")) for label, text in zip(labels, body, strict=True)
    ]
    return [*out, *below]


def _column(scope: Scope, part: int) -> ChartColumn | None:
    mean, high = scope.mean[part], scope.high[part]
    return None if mean is None else ChartColumn(mean, mean if high is None else high)


def _below(scope: Scope, phases: Sequence[PhaseStats], columns: int, means: bool) -> list[Row]:
    """Ticks where the phases begin, their names, and the profile's mean over each of them."""
    usual = [(phase, look) for phase, look in looks_of(phases) if phase.name not in RARE]
    whole = sum(phase.share for phase, _ in usual) or 1.0
    edges = [0.0]
    for phase, _ in usual:
        edges.append(edges[-1] + phase.share / whole)
    placed = [
        (look, begins, ends_at)
        for (phase, look), (begins, ends_at) in zip(usual, pairwise(edges), strict=True)
        if phase.name in IN_ORDER
    ]
    line, names, means_row = ["─"] * columns, [" "] * columns, [" "] * columns
    for look, begins, ends_at in placed:
        x, room = _place(begins, ends_at, columns)
        line[x] = "┴"
        _write(names, x, _name(look, room), room)
        _write(means_row, x, f"{mean_over(scope, begins, ends_at):.0f}%", room)
    length = milliseconds(scope.step_ns / 1e6)
    end = columns - len(length)
    if not "".join(names[end - 1 :]).strip():
        names[end:] = length
    out: list[Row] = [
        (Span(" " * (GUTTER - 1) + "└" + "".join(line), "dim"),),
        (Span(" " * GUTTER + "".join(names), "dim"),),
    ]
    return [*out, (Span(" " * GUTTER), Span("".join(means_row), "strong"))] if means else out


def _place(begins: float, ends_at: float, columns: int) -> tuple[int, int]:
    x = min(columns - 1, round(begins * columns))
    return x, min(columns, round(ends_at * columns)) - x - 1


def _name(look: PhaseStyle, room: int) -> str:
    return look.long if len(look.long) <= room else look.short


def _write(cells: list[str], x: int, text: str, room: int) -> None:
    if len(text) <= room:
        cells[x : x + len(text)] = text


def mean_over(scope: Scope, begins: float, ends_at: float) -> float:
    """Of the profile between two parts of the step, 0 to 1; 0 where nothing is known."""
    parts = len(scope.mean)
    total = weight = 0.0
    for at, value in enumerate(scope.mean):
        share = min(ends_at, (at + 1) / parts) - max(begins, at / parts)
        if share > 0 and value is not None:
            total += share * value
            weight += share
    return total / weight if weight else 0.0
