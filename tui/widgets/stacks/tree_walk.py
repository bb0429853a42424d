"""Walking a tree of stacks: which branches are in sight, and where a key leads."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ...model.frames import worth_naming
from ...model.stack_trees import Branch, Tree
from ...wording.numbers import count, percent
from ...wording.stacks import function_of, short_frame
from ..charts.columns import share_bar
from ..text import Row, Span, clip, ends, first_that_fits, length

OPEN_FROM = 0.05
"""A branch with this part of its role's samples is open until somebody closes it."""

Path = tuple[str, ...]
"""Of a branch: its role, then the outermost frame of each branch down to it."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A row of the tree."""

    path: Path
    tree: Tree
    branch: Branch | None
    """None: the role itself."""
    is_open: bool
    has_more: bool

    @property
    def depth(self) -> int:
        """0 for the role."""
        return len(self.path) - 1


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a person is in the tree, what they opened and closed, and what they look for."""

    at: Path = ()
    toggled: frozenset[Path] = frozenset()
    """Open if they would be closed, and closed if they would be open."""
    text: str = ""
    """Only branches with it are shown, those around them, and all below."""

    def spots(self, trees: Sequence[Tree]) -> list[Spot]:
        """The rows in sight."""
        return [spot for tree in trees for spot in self._of(tree)]

    def index(self, spots: Sequence[Spot]) -> int:
        """Which row the cursor is on: its own, else its nearest parent's, else the first."""
        paths = [spot.path for spot in spots]
        for depth in range(len(self.at), 0, -1):
            if self.at[:depth] in paths:
                return paths.index(self.at[:depth])
        return min(1, len(spots) - 1)

    def moved(self, spots: Sequence[Spot], by: int) -> "Walk":
        """The cursor so many rows further."""
        if not spots:
            return self
        return self._to(spots, self.index(spots) + by)

    def opened(self, spots: Sequence[Spot]) -> "Walk":
        """Open the row of the cursor; from an open one to its first branch."""
        if not spots:
            return self
        at = self.index(spots)
        spot = spots[at]
        if not spot.has_more:
            return self
        return self._to(spots, at + 1) if spot.is_open else self._toggle(spot)

    def closed(self, spots: Sequence[Spot]) -> "Walk":
        """Close the row of the cursor; from a closed one to what it hangs on."""
        if not spots:
            return self
        spot = spots[self.index(spots)]
        if spot.has_more and spot.is_open and not self.text:
            return self._toggle(spot)
        return replace(self, at=spot.path[:-1] or spot.path)

    def looking_for(self, text: str) -> "Walk":
        """With this text to look for; "" for none."""
        return replace(self, text=text)

    def _to(self, spots: Sequence[Spot], index: int) -> "Walk":
        return replace(self, at=spots[max(0, min(index, len(spots) - 1))].path)

    def _toggle(self, spot: Spot) -> "Walk":
        return replace(self, at=spot.path, toggled=self.toggled ^ {spot.path})

    def _of(self, tree: Tree) -> Iterator[Spot]:
        branches = matching(tree.branches, self.text) if self.text else tree.branches
        if self.text and not branches:
            return
        path = (tree.role,)
        is_open = bool(self.text) or path not in self.toggled
        yield Spot(path, tree, None, is_open, bool(branches))
        if is_open:
            yield from self._below(tree, path, branches)

    def _below(self, tree: Tree, above: Path, branches: Collection[Branch]) -> Iterator[Spot]:
        for branch in branches:
            path = (*above, branch.frames[0])
            is_open = bool(self.text) or (branch.share >= OPEN_FROM) is not (path in self.toggled)
            yield Spot(path, tree, branch, is_open, bool(branch.branches))
            if is_open:
                yield from self._below(tree, path, branch.branches)


def matching(branches: Sequence[Branch], text: str) -> tuple[Branch, ...]:
    """The branches with the text in a frame or its line, whole; of others what leads to one."""
    wanted = text.casefold()
    kept: list[Branch] = []
    for branch in branches:
        if any(wanted in part.casefold() for part in (*branch.frames, branch.line)):
            kept.append(branch)
        elif below := matching(branch.branches, text):
            kept.append(replace(branch, branches=below))
    return tuple(kept)


# Rows of a tree of stacks: the share of the samples, then the frame where it hangs.

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
    counted = f"{count(tree.samples)} {what}{'s' * (tree.samples != 1)} "
    return ends(left, (Span(counted, "dim"),), width)


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
