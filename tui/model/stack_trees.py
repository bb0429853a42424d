"""Stacks merged: of all moments, and of those alone at which the GPU was idle, or busy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from ..verdict.stack_samples import Stacks
from collections import Counter
from collections.abc import Iterable

SortedBy = Literal["gpu", "host", "none", "dump"]
"""What marks the idle moments: the GPU's use, or where that is not known the host's waits for data;
nothing where no sample has a time or no step has ended; nothing of one dump, which is no sample."""
StacksWhen = Literal["idle", "busy", "all"]
KINDS: Final[tuple[StacksWhen, ...]] = ("idle", "busy", "all")
SAMPLES_WORTH: Final = 20
"""Fewer samples of the main thread stand for no kind of moment (thresholds.LEAST_STACKS)."""


@dataclass(frozen=True, slots=True)
class Merged:
    """One distinct stack of a role."""

    role: str
    """"main", "workers" or "pin"."""
    frames: tuple[str, ...]
    """Outermost first, "function (file:line)"."""
    samples: int
    line: str = ""
    """Text of the innermost line of the user's own in it, where that could be read."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Frames that follow one another in every sample that has the first of them."""

    frames: tuple[str, ...]
    """Outermost first: all the user's own, or none."""
    samples: int
    share: float
    """Of the role's samples, 0 to 1."""
    own: bool
    """They are the user's own."""
    line: str
    """Text of the innermost one's line, where it is the user's own and could be read; else ""."""
    branches: tuple["Branch", ...]
    """What they call, most samples first."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The stacks of one role."""

    role: str
    """"main", "workers" or "pin"."""
    threads: int
    samples: int
    branches: tuple[Branch, ...]
    once: bool = False
    """Each thread was looked at once: that gives no shares of its time."""


@dataclass(frozen=True, slots=True)
class StacksOf:
    """The stacks of one kind of moment."""

    summary: "Stacks"
    """The places that hold most."""
    trees: tuple[Tree, ...]
    """Main first; roles without a sample are left out."""
    merged: tuple[Merged, ...]
    """Every distinct stack."""

    @property
    def samples(self) -> int:
        """Of all roles together."""
        return sum(tree.samples for tree in self.trees)


@dataclass(frozen=True, slots=True)
class StackTrees:
    """The last minute's."""

    sorted_by: SortedBy
    timed: bool
    """The samples have times: older recordings have none."""
    all: StacksOf
    idle: StacksOf
    busy: StacksOf

    def of(self, when: StacksWhen) -> StacksOf:
        """Those of one kind of moment."""
        return {"idle": self.idle, "busy": self.busy, "all": self.all}[when]


def worth_showing(trees: StackTrees | None) -> StacksWhen:
    """What to show where nobody chose: while the GPU is idle, if enough samples fell there."""
    main = trees.idle.summary.main_samples if trees is not None else 0
    return "idle" if main >= SAMPLES_WORTH else "all"


def next_kind(when: StacksWhen) -> StacksWhen:
    """The one after it, round and round."""
    return KINDS[(KINDS.index(when) + 1) % len(KINDS)]


def collapsed(stacks: Iterable[Merged]) -> str:
    """ "main;train (train.py:88);wait (threading.py:359) 17", the most samples first."""
    counts: Counter[str] = Counter()
    for stack in stacks:
        parts = (stack.role, *stack.frames)
        counts[";".join(part.replace(";", ",") for part in parts)] += stack.samples
    return "".join(f"{stack} {count}\n" for stack, count in counts.most_common())


def with_text(stacks: Iterable[Merged], text: str) -> list[Merged]:
    """Those with a frame, or a line of the user's, that has the text in it, in any case."""
    wanted = text.casefold()
    return [one for one in stacks if any(wanted in part.casefold() for part in _parts(one))]


def _parts(stack: Merged) -> tuple[str, ...]:
    return (*stack.frames, stack.line)
