"""Events: checkpoints, evaluations, recompiles, verdicts that changed. The newest first."""

from collections.abc import Sequence
from typing import Final

from ...model.snapshot import Event, Snapshot
from ...wording.numbers import count, duration
from ...wording.words import WORD_CELLS, event_text, named, time_of_day, with_words
from ..footer import bindings
from ..panel import FilteredPanel, View
from ..text import Row, Span, row, rule, within

AGE_FROM: Final = 100
"""Cells from which a line says how long ago it was, beside the time of day."""
KIND_FROM: Final = 80
"""And from which the kinds have a column."""


class EventsPanel(FilteredPanel):
    """One line: the newest. More: a heading and as many as there is room for."""

    KIND = "events"
    BINDINGS = bindings("events")

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._after = 0
        """Newer events that are scrolled out of sight."""
        self._most = 0

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Newest first, with the time of day."""
        snapshot = view.snapshot
        if height == 1:
            newest = snapshot.events[-1:]
            return [_line(snapshot, newest[0], width)] if newest else [_quiet("no events yet")]
        events = with_words(snapshot.events, self.words)[::-1]
        room = height - 1
        self._most = max(0, len(events) - room)
        self._after = min(self._after, self._most)
        seen = events[self._after : self._after + room]
        head = rule("Events", self._notes(len(events), len(seen)), width, self.has_focus)
        if not seen:
            return [head, _quiet("none of that kind" if self.words else "no events yet")]
        return [head, *(_line(snapshot, event, width) for event in seen)]

    def action_older(self, by: int) -> None:
        """Scroll towards older events, or with less than 0 towards newer ones."""
        self._after = max(0, min(self._after + by, self._most))
        self._redraw()

    def _notes(self, events: int, seen: int) -> list[str]:
        if seen == events:
            return [self.filter_note, count(events) if events else ""]
        first = self._after + 1
        return [self.filter_note, f"{first}-{self._after + seen} of {count(events)}"]


def _quiet(text: str) -> Row:
    return row(f"   {text}", "dim")


def _line(snapshot: Snapshot, event: Event, width: int) -> Row:
    """ "12:04:31   38s ago  step 18,000  ■ checkpoint  4.1 s"."""
    kind = named(event)
    when = f" {time_of_day(snapshot, event.t_ns)}  "
    if width >= AGE_FROM:
        when += f"{duration((snapshot.t_ns - event.t_ns) / 1e9) + ' ago':>10}  "
    step = "" if event.step is None else f"step {count(event.step)}"
    step = f"{step:<13}" if width >= KIND_FROM else f"{step}  " if step else ""
    text = event.text
    if width >= KIND_FROM:
        text = f"{kind.word:<{WORD_CELLS}} {event_text(event)}"
    room = width - len(when) - len(step) - 3
    return (
        Span(when + step, "dim"),
        Span(f"{kind.glyph} ", kind.role),
        Span(within(text, max(1, room))[0]),
    )
