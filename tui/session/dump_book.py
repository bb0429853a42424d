"""The probe's own look at its threads, as long as it says where they are: until something moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tui.observations import DumpSeen, StackCount
from tui.session.branches import branches_of
from tui.sources.frames import summarise, way_to, worth_naming
from tui.stack_trees import Merged, StacksOf, StackTrees, Tree

ROLES: Final = {"main": "main", "pin": "pin", "other": "threads"}


@dataclass(frozen=True, slots=True)
class Standing:
    """A dump that still holds."""

    frame: str
    """Where the training thread is."""
    way: tuple[str, ...]
    """How it came there: a few frames, outermost first."""
    trees: StackTrees


class DumpBook:
    """The last one."""

    def __init__(self) -> None:
        self._taken_ns: int | None = None
        self._standing: Standing | None = None

    def seen(self, seen: DumpSeen) -> None:
        """Take a dump."""
        self._taken_ns = seen.taken_ns
        self._standing = _standing(seen.stacks)

    def standing(self, marked_ns: int | None) -> Standing | None:
        """The dump, if the training thread has not made a mark since it was taken."""
        if self._taken_ns is None or (marked_ns is not None and marked_ns > self._taken_ns):
            return None
        return self._standing


def _standing(stacks: Sequence[StackCount]) -> Standing | None:
    main = next((stack.frames for stack in stacks if stack.role == "main"), ())
    if not main:
        return None
    all_of_them = _stacks_of(stacks)
    trees = StackTrees("probe", False, all_of_them, all_of_them, all_of_them)
    return Standing(worth_naming(main), way_to(main), trees)


def _stacks_of(stacks: Sequence[StackCount]) -> StacksOf:
    """Each thread is one sample of its role."""
    known = (one for one in stacks if one.role in ROLES)
    merged = tuple(Merged(ROLES[one.role], one.frames, 1, one.line) for one in known)
    trees = []
    for role in ROLES.values():
        own = [one for one in merged if one.role == role]
        if own:
            trees.append(Tree(role, len(own), len(own), branches_of(own), once=True))
    return StacksOf(summarise(stacks), tuple(trees), merged)
