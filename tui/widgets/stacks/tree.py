"""The stacks as a tree that one can walk, search, and read the source of."""

from collections.abc import Sequence
from functools import partial

from textual import events
from textual.message import Message

from ...model.frames import worth_naming
from ...model.provider import SourceText
from ...model.stack_trees import Branch, StacksOf, collapsed, with_text
from ...wording.numbers import percent
from ...wording.stacks import notes, title, why_no_samples, why_not_idle
from ..footer import bindings
from ..panel import Panel, View
from ..text import EMPTY, Row, Span, clip, ends, row, rule, wrap
from .tree_walk import Spot, Walk, in_sight, spot_row

# Source lines around a place, as rows.

TAB = 4


def source_rows(
    source: SourceText | None, width: int, height: int, line: str = ""
) -> Sequence[Row]:
    """The heading and as many lines around the place as fit; None: it is being read. `line` is the
    place's text as the program ran it, where that is known."""
    if source is None:
        return [rule("Source", (), width), row("   reading", "dim")]
    if source.why_not:
        return [rule("Source", (), width), row(f"   {clip(source.why_not, width - 4)}", "dim")]
    room = height - 1
    at = source.line - source.first
    changed = bool(line) and not source.lines[at].strip().startswith(line)
    note = "changed since it ran" if changed else "as it is now"
    head = rule(f"{clip_left(source.path, width - len(note) - 18)}:{source.line}", [note], width)
    top = max(0, min(at - room // 2, len(source.lines) - room))
    digits = len(str(source.first + len(source.lines)))
    shown = enumerate(source.lines[top : top + room], source.first + top)
    marked = None if changed else source.line
    return [head, *(_line(number, text, number == marked, digits) for number, text in shown)]


def _line(number: int, text: str, marked: bool, digits: int) -> Row:
    return (
        Span("▸" if marked else " ", "focus"),
        Span(f"{number:>{digits}}  ", "dim"),
        Span(text.expandtabs(TAB), "strong" if marked else "text"),
    )


def clip_left(text: str, width: int) -> str:
    """The end of a path, which says more than its beginning."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"


SHORT_BELOW = 60
"""Cells of width below which the heading is short."""
SOURCE_PART = 0.5
"""Of the height, for the source lines."""


class StackTreePanel(Panel):
    """Rows of the tree below the heading; below them the source, when it was asked for."""

    KIND = "stacks"
    BINDINGS = bindings("stacks")

    class Copy(Message):
        """Somebody wants these stacks, as text."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._walk = Walk()
        self._first = 0
        """Row of the tree at the top."""
        self._frame = ""
        """Whose source is shown; "" for none's."""
        self._source: SourceText | None = None
        self._line = ""
        """What that frame's line says, as it ran."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, what is looked for, tree, source."""
        trees, when = view.snapshot.trees, view.stacks_when
        short = width < SHORT_BELOW
        chosen = trees.of(when) if trees is not None else None
        if trees is None or chosen is None or not chosen.trees:
            heading = title(when, trees.sorted_by, short) if trees is not None else "Stacks"
            why = wrap(why_no_samples(view.snapshot, when), width - 6, 4)
            head = rule(heading, (), width, self.has_focus)
            return [head, *(row(f"   {line}", "dim") for line in why)]
        head = rule(title(when, trees.sorted_by, short), notes(trees, when), width, self.has_focus)
        why_all = why_not_idle(trees) if when == "all" else ""
        words = [row(f"   {line}", "dim") for line in wrap(why_all, width - 6, 2)]
        top = [head, *words, *self._looked_for(chosen, width)]
        room = height - len(top)
        below = round(SOURCE_PART * room) if self._frame else 0
        drawn = self._tree(chosen, width, room - below)
        drawn += [EMPTY] * (room - below - len(drawn)) if below else []
        source = source_rows(self._source, width, below, self._line) if below else ()
        return [*top, *drawn, *source]

    def _tree(self, chosen: StacksOf, width: int, room: int) -> list[Row]:
        spots = self._walk.spots(chosen.trees)
        if not spots:
            return [row(f"   no frame has {self._walk.text!r} in it", "dim")]
        at = self._walk.index(spots)
        self._first = in_sight(len(spots), at, self._first, room)
        shown = enumerate(spots[self._first : self._first + room], self._first)
        return [spot_row(spot, width, self.has_focus and i == at) for i, spot in shown]

    def _looked_for(self, chosen: StacksOf, width: int) -> list[Row]:
        text = self._walk.text
        if not (text or self.typing):
            return []
        left = [Span(" / ", "key"), Span(clip(text, width // 2), "strong")]
        if self.typing:
            left += [Span("▏", "focus"), Span("  enter keeps, esc ends", "dim")]
        found = with_text(chosen.merged, text) if text else []
        shares = [
            f"{tree.role} {percent(have / tree.samples)}"
            for tree in chosen.trees
            if (have := sum(one.samples for one in found if one.role == tree.role))
        ]
        return [ends(tuple(left), row(f"{' · '.join(shares)} ", "dim") if shares else (), width)]

    def on_key(self, event: events.Key) -> None:
        """While one types, keys are text."""
        if self.typing:
            self.take_key(event)

    def take_key(self, event: events.Key) -> None:
        """More of the text, or the end of it."""
        text = self._walk.text
        if event.key in ("enter", "escape"):
            self.typing = False
            text = text if event.key == "enter" else ""
        elif event.key == "backspace":
            text = text[:-1]
        elif event.is_printable and event.character is not None:
            text += event.character
        else:
            return
        event.stop()
        event.prevent_default()
        self._go(self._walk.looking_for(text))

    async def action_stacks_when(self) -> None:
        """The stacks of another kind of moment."""
        await self.app.run_action("stacks_when")

    def action_down(self) -> None:
        """To the next row."""
        self._go(self._walk.moved(self._spots(), +1))

    def action_up(self) -> None:
        """To the row before."""
        self._go(self._walk.moved(self._spots(), -1))

    def action_open(self) -> None:
        """Into the branch."""
        self._go(self._walk.opened(self._spots()))

    def action_shut(self) -> None:
        """Out of the branch."""
        self._go(self._walk.closed(self._spots()))

    def action_find(self) -> None:
        """Type what to look for."""
        self.typing = True
        self._redraw()

    def action_copy_stacks(self) -> None:
        """All that are shown, whole."""
        chosen = self._chosen()
        if chosen is not None:
            text = self._walk.text
            shown = with_text(chosen.merged, text) if text else chosen.merged
            self.post_message(self.Copy(collapsed(shown)))

    def action_source(self) -> None:
        """The lines around the frame of the cursor's row, and of those that it goes to."""
        branch = self._marked()
        if branch is not None and self._view is not None:
            frame = worth_naming(branch.frames)
            self._frame, self._line, self._source = frame, branch.line, None
            self._redraw()
            read = partial(self._read, self._view, frame)
            self.run_worker(read, thread=True, exclusive=True)

    async def action_out(self) -> None:
        """Out of the source, then of the search, then of the panel."""
        if self._frame:
            self._frame = ""
            self._redraw()
        elif self._walk.text:
            self._go(self._walk.looking_for(""))
        else:
            await self.app.run_action("back")

    def _read(self, view: View, frame: str) -> None:
        self.app.call_from_thread(self._has_read, frame, view.read_source(frame, view.snapshot))

    def _has_read(self, frame: str, source: SourceText) -> None:
        if frame == self._frame:
            self._source = source
            self._redraw()

    def _chosen(self) -> StacksOf | None:
        if self._view is None or self._view.snapshot.trees is None:
            return None
        return self._view.snapshot.trees.of(self._view.stacks_when)

    def _spots(self) -> list[Spot]:
        chosen = self._chosen()
        return self._walk.spots(chosen.trees) if chosen is not None else []

    def _marked(self) -> Branch | None:
        """The branch of the cursor's row; None where it is on none."""
        spots = self._spots()
        return spots[self._walk.index(spots)].branch if spots else None

    def _go(self, walk: Walk) -> None:
        self._walk = walk
        marked = self._marked()
        if self._frame and marked is not None and worth_naming(marked.frames) != self._frame:
            self.action_source()
        else:
            self._redraw()
