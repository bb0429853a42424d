"""Tensors that a step copies from the host to a device."""

from typing import Final, NamedTuple

from .operation import Operation, Step

COPIES: Final = ("_to_copy", "copy_")
_FILLERS: Final = """
    zeros zero_ ones full fill_ arange eye linspace zeros_like ones_like rand randn randint randperm
    normal_ uniform_ bernoulli_"""
FILLERS: Final = frozenset(_FILLERS.split())
"""They bring no data of the program's into a tensor."""


class HostCopies(NamedTuple):
    """Of one step."""

    copies: int
    bytes: int
    made_bytes: int
    """Of these, what holds no data, but zeros, numbers in order or at random."""
    made_at: int
    """Where most of that is copied."""


def host_copies(step: Step) -> HostCopies:
    """Those in forward and loss, and what lies between the phases."""
    filled: dict[int, str] = {}
    """What was last put into a storage, by the operation's name."""
    count = held = made = most = 0
    made_at = -1
    for one in step.operations:
        source = _copied(one)
        if source is not None:
            count += 1
            held += source[1]
            if filled.get(source[0]) in FILLERS:
                made += source[1]
                if source[1] > most:
                    most, made_at = source[1], one.place
        read = {each.storage for each in one.reads}
        for storage in {
            each.storage for each in one.makes if each.storage not in read
        } | one.writes:
            filled[storage] = one.name
    return HostCopies(count, held, made, made_at)


def _copied(one: Operation) -> tuple[int, int] | None:
    """The storage that is copied to a device, and its bytes."""
    if one.name not in COPIES or not one.reads or not one.makes or one.makes[0].on_host:
        return None
    source = one.reads[-1]
    return (source.storage, source.bytes) if source.on_host else None
