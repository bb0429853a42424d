"""The base of all panels: rows that are composed from a view."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from ..model.provider import SourceReader, nobody_reads
from ..model.snapshot import Snapshot
from ..model.stack_trees import StacksWhen
from .keys import ACTIONS
from .text import EMPTY, Charset, Row, Span, fit

# A widget made of rows of spans, of which only those that changed are painted again.


class DrawnRows(Widget):
    """Holds the rows that were drawn last."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._drawn: list[Row] = []
        self._charset = Charset.UNICODE

    def draw(self, rows: Sequence[Row], charset: Charset, size: Size) -> None:
        """Show these rows, as many as there is room for."""
        before = self._drawn
        self.hold(rows, charset, size)
        if len(before) != len(self._drawn):
            self.refresh()
            return
        changed = [y for y, row in enumerate(self._drawn) if row != before[y]]
        if changed:
            self.refresh(*(Region(0, y, size.width, 1) for y in changed))

    def hold(self, rows: Sequence[Row], charset: Charset, size: Size) -> None:
        """Have these rows when it is painted, which is seen to elsewhere. `size` is the widget's,
        which Textual works out anew whenever it is asked."""
        width, height = size
        self._charset = charset
        self._drawn = [fit(row, width) for row in rows[:height]]
        self._drawn += [fit(EMPTY, width)] * (height - len(self._drawn))

    def render_line(self, y: int) -> Strip:
        """One row, coloured by its roles."""
        if y >= len(self._drawn):
            return Strip.blank(self.size.width, self.rich_style)
        style_of = self.screen.get_component_rich_style
        return Strip(
            [
                Segment(self._charset.translate(span.text), style_of(f"role--{span.role}"))
                for span in self._drawn[y]
            ],
            self.size.width,
        )


# What a panel draws from: the snapshot, and how the person wants to see it.


@dataclass(frozen=True, slots=True)
class View:
    """One frame."""

    snapshot: Snapshot
    window_s: int
    """The time that the charts show; of those of slow quantities only where a person chose it."""
    charset: Charset
    behind_s: float | None
    """How far a paused view lags; None while it runs."""
    window_chosen: bool = False
    """A person chose `window_s`; else it fits the steps, and slow quantities show all of theirs."""
    tab: str = "overview"
    """Which of the views is shown."""
    at_ns: int | None = None
    """Where the charts end, when a person went back in time; None: at `shown_at_ns`."""
    cursor_ns: int | None = None
    """The moment that the cursor of the charts reads; None: no cursor."""
    stacks_when: StacksWhen = "idle"
    """Which stacks are counted: those sampled while the GPU was idle, busy, or all."""
    device: int | None = None
    """The GPU that a person chose (NVML's index); None: all of them, or the first."""
    baseline: Snapshot | None = None
    """What the numbers are compared with; None: nothing was marked."""
    panel: str = ""
    """Kind of the focused panel (`Panel.KIND`): its keys stand first in the footer."""
    read_source: SourceReader = nobody_reads
    """Reads the lines around a frame; it may wait for a disk."""

    @property
    def ended(self) -> bool:
        """The target has ended; the picture is its last."""
        return self.snapshot.status.state == "ended"


def shown_at_ns(snapshot: Snapshot) -> int:
    """The moment that the picture shows: now, or the last thing seen of a target that has ended."""
    saw = snapshot.sawtooth
    if snapshot.status.state == "ended" and saw:
        return min(snapshot.t_ns, saw.series.end_ns)
    return snapshot.t_ns


def charts_end_ns(view: View) -> int:
    """Where the charts end: at the moment that a person went back to, else at `shown_at_ns`."""
    return shown_at_ns(view.snapshot) if view.at_ns is None else view.at_ns


def has_measured(snapshot: Snapshot) -> bool:
    """Something of the run has been seen: what is missing by now does not only come late."""
    return bool(
        snapshot.sawtooth or snapshot.recent or (snapshot.sampled and snapshot.sampled.samples)
    )


ROLES = (
    *("text", "dim", "strong", "title", "focus", "rule", "key", "area", "paused"),
    *("critical", "warning", "info", "good"),
    *("data", "startup", "forward", "backward", "optimizer", "gpu-wait"),
    *("evaluation", "checkpoint"),
    *("compile", "user", "other"),
)
"""Everything that text can mean; the colours are in the stylesheet."""

ROLE_CLASSES = {f"role--{role}" for role in ROLES}
"""The component classes of a screen with panels: kept there once, not in every panel."""


class Panel(DrawnRows):
    """Draws `rows(view, width, height)`; holds the last view."""

    can_focus = True
    KIND = ""
    """Its name in the table of keys, where it has keys of its own."""
    typing = False
    """Keys are text in it now: `take_key` has them."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._view: View | None = None

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The panel's content, at most `height` rows."""
        raise NotImplementedError

    def columns_in(self, width: int) -> int:
        """Columns of time that it has at this width; 0: no picture in it follows the window."""
        return 0

    def take_key(self, event: events.Key) -> None:
        """A key while one types."""
        raise NotImplementedError

    def drill(self) -> bool:
        """Enter: into what is marked in it; False where it has no inside of its own."""
        return False

    def show(self, view: View) -> None:
        """Draw a new frame."""
        self._view = view
        size = self.size
        if size:
            self.draw(self._rows(view, *size), view.charset, size)

    def render_line(self, y: int) -> Strip:
        """One row. It is painted before it is given its first size: not without its rows."""
        if not self._drawn and self._view is not None:
            size = self.size
            self.hold(self._rows(self._view, *size), self._view.charset, size)
        return super().render_line(y)

    def _rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        rows = self.rows(view, width, height)
        return _marked(rows) if self.has_focus else rows

    def on_resize(self, event: events.Resize) -> None:
        """The same frame at another size."""
        self._redraw()

    def watch_has_focus(self, value: bool) -> None:
        """Show whether the keys mean this panel."""
        super().watch_has_focus(value)
        self._redraw()

    def _redraw(self) -> None:
        if self._view is not None:
            self.show(self._view)


def _marked(rows: Sequence[Row]) -> Sequence[Row]:
    """Where no heading has room, the blank that the first row begins with shows the focus."""
    if not rows or not rows[0] or any(span.role == "focus" for row in rows for span in row):
        return rows
    first, *others = rows[0]
    if not first.text.startswith(" "):
        return rows
    return [(Span("▸", "focus"), Span(first.text[1:], first.role), *others), *rows[1:]]


# A panel whose lines can be narrowed to those with some words in them.

BEGIN = frozenset(key for action in ACTIONS if action.handler == "filter" for key in action.keys)


class FilteredPanel(Panel):
    """`/` begins to type, enter keeps the words, esc forgets them.

    Keys that come in one burst are with the panel before the first of them has become an action:
    so that which begins to type is taken here.
    """

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.words = ""
        self.typing = False

    def action_filter(self) -> None:
        """Begin to type."""
        self.typing = True
        self._redraw()

    def on_key(self, event: events.Key) -> None:
        """While typing every key means its character: none of them reaches the bindings."""
        if not self.typing:
            if event.key in BEGIN:
                event.stop()
                self.action_filter()
            elif event.key == "escape" and self.words:
                self.words = ""
                event.stop()
                self._redraw()
            return
        self.take_key(event)

    def take_key(self, event: events.Key) -> None:
        """More of the words, or the end of them."""
        event.stop()
        event.prevent_default()
        if event.key == "enter":
            self.typing = False
        elif event.key == "escape":
            self.typing, self.words = False, ""
        elif event.key == "backspace":
            self.words = self.words[:-1]
        elif event.character is not None and event.is_printable:
            self.words += event.character
        self._redraw()

    def on_blur(self) -> None:
        """The keys mean something else now."""
        self.typing = False

    @property
    def filter_note(self) -> str:
        """ "/ worker▏" while typing, "/ worker" while it narrows, else ""."""
        if self.typing:
            return f"/ {self.words}▏"
        return f"/ {self.words}" if self.words else ""
