"""Rows of a tree of stacks: the share of the samples, then the frame where it hangs."""

from tui.sources.frames import worth_naming
from tui.stack_trees import Branch
from tui.widgets.charts.share_bar import share_bar
from tui.widgets.spans import Row, Span, clip, ends, first_that_fits, length
from tui.widgets.stacks.tree_walk import Spot
from tui.wording.frames import function_of, short_frame
from tui.wording.numbers import count, percent

BAR = 10
BAR_FROM = 90
"""Cells of width from which shares get a bar."""
DEEPEST = 0.4
"""Part of the width that the indentation may take."""


def spot_row(spot: Spot, width: int, marked: bool) -> Row:
    """One row; `marked`: the cursor is on it."""
    cursor = Span("▸" if marked else " ", "focus")
    if spot.branch is None:
        return _role_row(spot, cursor, marked, width)
    left = [cursor, Span(" ")] if spot.tree.once else [cursor, *_share(spot.branch, width)]
    step = 2 if width >= BAR_FROM else 1
    indent = min(step * (spot.depth - 1), int(DEEPEST * width))
    sign = " " if not spot.has_more else "−" if spot.is_open else "+"
    left.append(Span(f"{' ' * indent}{sign} ", "dim"))
    room = width - length(tuple(left)) - 1
    return (*left, *first_that_fits(_named(spot.branch, marked, room), room))


def _role_row(spot: Spot, cursor: Span, marked: bool, width: int) -> Row:
    tree = spot.tree
    name = f"{tree.role} ({tree.threads})" if tree.role == "workers" else tree.role
    sign = "−" if spot.is_open else "+"
    left = (cursor, Span(f"{sign} ", "dim"), Span(name, "focus" if marked else "title"))
    what = "thread" if tree.once else "sample"
    told = f"{count(tree.samples)} {what}{'s' * (tree.samples != 1)} "
    return ends(left, (Span(told, "dim"),), width)


def _share(branch: Branch, width: int) -> list[Span]:
    spans = [Span(f" {percent(branch.share):>4} ", "strong" if branch.share >= 0.1 else "text")]
    if width >= BAR_FROM:
        spans.append(Span(f"{share_bar(branch.share, BAR):<{BAR}} ", "area"))
    return spans


def _named(branch: Branch, marked: bool, room: int) -> list[Row]:
    """The frame with what is behind it, ever shorter."""
    role = "focus" if marked else "strong" if branch.own else "dim"
    frame = worth_naming(branch.frames)
    short, bare = short_frame(frame), short_frame(frame, with_class=False)
    behind = _behind(branch, frame)
    rows: list[Row] = []
    for name in (frame, short, bare):
        rows.append((Span(name, role), *behind))
        rows.append((Span(name, role), *_cut(behind, room - len(name))))
    return [*rows, (Span(bare, role),)]


def _behind(branch: Branch, frame: str) -> Row:
    """The line's text; else the frames that led there in the same piece."""
    if branch.line:
        return (Span(f"  {branch.line}", "text"),)
    callers = branch.frames[: branch.frames.index(frame)]
    names = "".join(f" ← {function_of(caller)}" for caller in reversed(callers))
    return (Span(names, "dim"),) if names else ()


def _cut(behind: Row, room: int) -> Row:
    """As much of it as fits, if that is worth it."""
    return tuple(Span(clip(text, room), role) for text, role in behind) if room >= 20 else ()


def in_sight(rows: int, at: int, first: int, room: int) -> int:
    """The first row to show: as before, but with the cursor's and one more on either side."""
    first = min(first, max(0, at - 1))
    first = max(first, min(at + 2, rows) - room)
    return max(0, min(first, rows - room))
