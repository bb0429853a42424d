"""The scope: the profile of one step, drawn over its phases."""

from collections.abc import Sequence

from tui.snapshot import Phase, Scope
from tui.widgets.columns import Column, area_rows
from tui.widgets.phases import looks_of
from tui.widgets.spans import Row, Span, ends
from tui.wording.numbers import count, milliseconds

GUTTER = 5
"""Cells of the scale, as the sawtooth's."""
LEAST_HEIGHT = 6
"""Rows: a heading, three of the picture, the axis and the phases."""
IN_ORDER = ("data", "forward", "backward", "optimizer")
"""Phases that follow each other in a step; where the others lie in it is not known."""
RARE = ("loader start-up", "evaluation", "checkpoint", "compile")
"""Phases that steps of the usual length, which are the ones folded, do not have."""


def scope_rows(scope: Scope, phases: Sequence[Phase], width: int, height: int) -> list[Row]:
    """Blocks up to the mean, shade up to the highest of the quarters; a part of the profile is as
    many columns wide as it is long."""
    count_of = width - GUTTER - 1
    columns = [_column(scope, x * len(scope.mean) // count_of) for x in range(count_of)]
    sides = [
        (high - low) / 2
        for low, high in zip(scope.low, scope.high, strict=True)
        if low is not None and high is not None
    ]
    sure = f" · ±{sum(sides) / len(sides):.0f}" if sides else ""
    head = ends(
        (Span(f" one step, folded ({count(scope.steps)} steps)", "dim"), Span("   SM active %")),
        (Span(f"{scope.source}{sure} ", "dim"),),
        width,
    )
    body = area_rows(columns, height - 3)
    labels = [" " * (GUTTER - 1) + "┤"] * len(body)
    labels[-1] = "   0┤"
    labels[0] = " 100┤"
    out = [head]
    out += [
        (Span(label, "dim"), Span(text, "area")) for label, text in zip(labels, body, strict=True)
    ]
    return [*out, *_axis(scope, phases, count_of)]


def _column(scope: Scope, part: int) -> Column | None:
    mean, high = scope.mean[part], scope.high[part]
    return None if mean is None else Column(mean, mean if high is None else high)


def _axis(scope: Scope, phases: Sequence[Phase], columns: int) -> list[Row]:
    """Ticks where the phases begin on the host's clock, and their names below."""
    line, names = ["─"] * columns, [" "] * columns
    usual = [(phase, look) for phase, look in looks_of(phases) if phase.name not in RARE]
    whole = sum(phase.share for phase, _ in usual)
    at = 0.0
    for phase, look in usual:
        x = min(columns - 1, round(at * columns))
        at += phase.share / whole
        if phase.name not in IN_ORDER:
            continue
        line[x] = "┴"
        room = min(columns, round(at * columns)) - x - 1
        name = look.long if len(look.long) <= room else look.short
        if len(name) <= room:
            names[x : x + len(name)] = name
    length = milliseconds(scope.step_ns / 1e6)
    text = "".join(names)
    if not text[-len(length) - 2 :].strip():
        text = text[: -len(length)] + length
    return [
        (Span(" " * (GUTTER - 1) + "└" + "".join(line), "dim"),),
        (Span(" " * GUTTER + text, "dim"),),
    ]
