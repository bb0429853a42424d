"""Events: checkpoints, evaluations, recompiles, verdicts that changed. The newest first."""

from collections.abc import Sequence

from tui.snapshot import Event, Snapshot
from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, clip, row, rule
from tui.widgets.view import View
from tui.wording.numbers import count, duration


class EventsPanel(Panel):
    """One line: the newest. More: a heading and as many as there is room for."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Newest first, with their age."""
        snapshot = view.snapshot
        events = snapshot.events
        if height == 1:
            return [_line(snapshot, events[-1], width)] if events else [_quiet()]
        head = rule("Events", [count(len(events))] if events else [], width, self.has_focus)
        lines = [_line(snapshot, event, width) for event in reversed(events[-(height - 1) :])]
        return [head, *(lines or [_quiet()])]


def _quiet() -> Row:
    return row("   no events yet", "dim")


def _line(snapshot: Snapshot, event: Event, width: int) -> Row:
    age = f" {duration((snapshot.t_ns - event.t_ns) / 1e9) + ' ago':>10}  "
    step = "" if event.step is None else f"step {count(event.step)}  "
    return (Span(age + step, "dim"), Span(clip(event.text, width - len(age) - len(step) - 1)))
