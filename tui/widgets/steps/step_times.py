"""The last steps one by one: how long each took, how much of it was waiting, and what happened."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from ...model.snapshot import Event, Snapshot
from ...steps import Step
from ...wording.numbers import count, digits, milliseconds
from ...wording.steps import waiting_words
from ..charts.columns import ChartColumn, area_rows, runs_of
from ..panel import Panel, View
from ..text import Row, Span, clip, ends, joined, row, rule
from .phases import DATA_WAIT, LOOKS, in_colours

GUTTER: Final = 7
CUT: Final = 3.0
"""The scale ends at so many usual steps: one checkpoint must not make all others flat."""
OVER: Final = "↑"
"""Tops a column that goes on beyond the scale."""
NOTED: Final = ("pace", "workers", "recompile", "allocator")
"""Kinds of event that explain a step's time, beside what the step itself says."""


class StepTimes(Panel):
    """A column a step."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, the columns, their axis with marks, and what the marks are."""
        steps = shown_steps(view.snapshot, width)
        if not steps:
            waiting = row(f"   {waiting_words(view.snapshot)}", "dim")
            return [rule("Step times", (), width, self.has_focus), waiting]
        walls = [wall_ms(step) for step in steps]
        title = "Step times" if width < 60 else f"Times of the last {count(len(steps))} steps"
        top = top_of(walls)
        notes = [longest_words(walls, top), "ms [hook]", "░ data wait  █ the rest"]
        out = [rule(title, notes, width, self.has_focus)]
        marks = marks_of(steps, view.snapshot.events)
        body = bars_of(steps, max(1, height - 3), top)
        for label, text in zip(_scale(top, len(body)), body, strict=True):
            out.append((Span(label, "dim"), *in_colours(text, DATA_WAIT)))
        out.append(_axis(marks, len(steps)))
        out.append(_caption(steps, marks, width))
        return out


class StepMark(NamedTuple):
    """Something that happened at a step."""

    at: int
    """Index of the step among those shown."""
    glyph: str
    role: str
    kind: str
    text: str


def shown_steps(snapshot: Snapshot, width: int) -> Sequence[Step]:
    """As many as there are columns."""
    return snapshot.recent[-max(1, width - GUTTER - 1) :]


def wall_ms(step: Step) -> float:
    """Of one step, where the message merged several."""
    return (step.end_ns - step.start_ns) / 1e6 / max(1, step.count)


def wait_ms(step: Step) -> float:
    """Its wait for data, the start-up of the loader included."""
    return (step.data_ns + step.startup_ns) / 1e6 / max(1, step.count)


def top_of(walls: Sequence[float]) -> float:
    """Where the scale ends: at the longest step, unless that is far longer than the usual one."""
    usual = sorted(walls)[len(walls) // 2]
    return min(max(walls), CUT * usual)


def bars_of(steps: Sequence[Step], rows: int, top_ms: float) -> list[str]:
    """A column a step: blocks for its work, shade above them for its wait, a mark at the top of
    one that is longer than the scale."""
    columns = [
        ChartColumn(
            min(top_ms, max(0.0, wall_ms(step) - wait_ms(step))), min(top_ms, wall_ms(step))
        )
        for step in steps
    ]
    body = area_rows(columns, rows, 0.0, top_ms)
    cut = [wall_ms(step) > top_ms for step in steps]
    body[0] = "".join(OVER if over else cell for over, cell in zip(cut, body[0], strict=True))
    return body


def longest_words(walls: Sequence[float], top_ms: float) -> str:
    """ "longest 34.2 ms", with the mark of what the scale does not reach."""
    longest = max(walls)
    return f"{f'{OVER} ' if longest > top_ms else ''}longest {milliseconds(longest)}"


def marks_of(steps: Sequence[Step], events: Sequence[Event]) -> list[StepMark]:
    """What the steps had in them beside training, and events that explain their times."""
    marks: list[StepMark] = []
    for at, step in enumerate(steps):
        for name, ns in (
            ("checkpoint", step.checkpoint_ns),
            ("evaluation", step.evaluation_ns),
            ("compile", step.compile_ns),
        ):
            if ns:
                look = LOOKS[name]
                text = f"{name} {milliseconds(ns / 1e6)}"
                marks.append(StepMark(at, look.fill, look.role, name, text))
    places = {step.number: at for at, step in enumerate(steps)}
    for event in events:
        if event.kind in NOTED and event.step in places:
            at = places[event.step]
            glyph, role = ("▼", "good") if event.better else ("▲", "warning")
            marks.append(StepMark(at, glyph, role, event.kind, event.text))
    return sorted(marks, key=lambda mark: mark.at)


def _scale(top_ms: float, rows: int) -> list[str]:
    labels = [" " * (GUTTER - 1) + "┤"] * rows
    labels[-1] = f"{'0':>{GUTTER - 1}}┤"
    labels[0] = f"{_short(top_ms):>{GUTTER - 1}}┤"
    return labels


def _short(ms: float) -> str:
    """Without its unit where the heading has it: 1240.0 -> "1,240", 12000.0 -> "12.0 s"."""
    return f"{digits(ms / 1000)} s" if ms >= 10_000 else digits(ms)


def _axis(marks: Sequence[StepMark], columns: int) -> Row:
    cells = [Span("─", "dim")] * columns
    for mark in marks:
        cells[mark.at] = Span(mark.glyph, mark.role)
    return (Span(" " * (GUTTER - 1) + "└", "dim"), *runs_of(cells))


def _caption(steps: Sequence[Step], marks: Sequence[StepMark], width: int) -> Row:
    """The first and the last number, and the newest marks in words as far as they fit."""
    first, last = count(steps[0].number), count(steps[-1].number)
    left = f"{'':{GUTTER}}{first if len(steps) > 1 else ''}  "
    axis = min(width - 1, max(GUTTER + len(steps), len(left) + len(last)))
    room = axis - len(left) - len(last) - 2
    newest = {mark.kind: mark for mark in marks}
    often = Counter(mark.kind for mark in marks)
    texts = [
        f"{mark.glyph} {mark.text}" + (f", {often[kind] - 1} before" if often[kind] > 1 else "")
        for kind, mark in newest.items()
    ]
    words = joined(texts, room, "   ") or clip("".join(texts[:1]), max(0, room))
    return ends((Span(left, "dim"), Span(words)), (Span(last, "dim"),), axis, gap=0)
