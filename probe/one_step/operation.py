"""One operation of a step that was traced, and what is known of all of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

NOWHERE: Final = -1
STRIDED: Final = 4
"""Parts of the view of a strided tensor."""
COPIES: Final = ("_to_copy", "copy_")
TENSOR: Final = "tensor"
"""Stands for one among the arguments."""


class Work(IntEnum):
    """What a compiler could do with an operation."""

    PRODUCT = 0
    """Whatever is not below: matrix products, convolutions, sorting, random numbers."""
    FUSIBLE = 1
    """Pointwise arithmetic, reductions, copies and lookups: one kernel can do several."""
    VIEW = 2
    """Computes nothing."""


class Value(NamedTuple):
    """A tensor as an operation reads or makes it."""

    storage: int
    """Number of the memory it lies in, anew for each that is made."""
    view: Any
    """Offset, sizes, strides and type: which part of that, and how it is read."""
    bytes: int
    """Of its elements, each once: one that is expanded lies there once."""
    on_host: bool
    is_weight: bool = False
    """It is there before the step, and a gradient is made for it."""

    @property
    def is_strided(self) -> bool:
        """Its view has sizes and strides: of a sparse tensor it has neither offset nor strides."""
        return len(self.view) == STRIDED


class Operation(NamedTuple):
    """In the order of the step."""

    name: str
    work: Work
    place: int
    """Index of the line of the program that asked for it, in `Step.places`; of a backward, for its
    forward. NOWHERE if it is not known."""
    reads: tuple[Value, ...]
    makes: tuple[Value, ...]
    writes: frozenset[int]
    """Storages that it changes."""
    arguments: Any
    """What else it was called with, and where its tensors stand among that: to tell two apart."""
    is_random: bool
    node: int
    """Of the graph's node that was made for it, a number of ours: a gradient goes through it.
    NOWHERE without one."""
    of_node: int
    """Of the node whose backward it belongs to; NOWHERE in a forward."""
    task: int
    """Number of that backward: a step may have several."""
    is_kept: bool
    """What it made is still there as the step ends."""
    ns: int
    """What it took, on the device where the step has one, and nothing of what is on the host…"""
    host_ns: int
    """…and on the host."""

    @property
    def is_on_host(self) -> bool:
        """It has to do with no device. One that makes nothing may wait for one."""
        return bool(self.makes) and all(one.on_host for one in (*self.reads, *self.makes))

    @property
    def brings(self) -> Value | None:
        """What it copies from the host to a device."""
        if self.name not in COPIES or not self.reads or not self.makes or self.makes[0].on_host:
            return None
        return self.reads[-1] if self.reads[-1].on_host else None

    @property
    def in_backward(self) -> bool:
        """A backward has asked for it."""
        return self.of_node != NOWHERE


class Place(NamedTuple):
    """A line of the program."""

    file: str
    function: str
    line: int


class Step(NamedTuple):
    """All operations of one step, but those of the optimizer and of the loader."""

    operations: tuple[Operation, ...]
    places: tuple[Place, ...]
    lasting: frozenset[int]
    """Storages that were there before the step and have not changed since the last one that was
    traced: their numbers are the same in both."""
    filled: Mapping[int, float]
    """Of large matrices among those that are multiplied: the part that is not zero, 0 to 1."""
    closed: frozenset[int] = frozenset()
    """Places that call layers of PyTorch's own which hold others: recurrent ones and attention."""


def is_all_on_host(operations: Iterable[Operation]) -> bool:
    """The step has no device."""
    return all(value.on_host for one in operations for value in one.makes)


def readers_of(operations: Iterable[Operation]) -> dict[int, set[int]]:
    """Of each storage the operations that read it, views' among them, by identity."""
    found: dict[int, set[int]] = defaultdict(set)
    for one in operations:
        if one.work is not Work.VIEW:
            for each in one.reads:
                found[each.storage].add(id(one))
    return found


def forward_readings(step: Step) -> Mapping[int, list[tuple[Operation, Value]]]:
    """Of each storage what reads it in the forward, and which part; views read nothing."""
    found: dict[int, list[tuple[Operation, Value]]] = defaultdict(list)
    for one in step.operations:
        if one.work is not Work.VIEW and not one.in_backward:
            for each in one.reads:
                found[each.storage].append((one, each))
    return found
