"""Walking a tree of stacks: which branches are in sight, and where a key leads."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tui.stack_trees import Branch, Tree

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
        for length in range(len(self.at), 0, -1):
            if self.at[:length] in paths:
                return paths.index(self.at[:length])
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
