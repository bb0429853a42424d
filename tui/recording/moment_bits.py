"""At which moments of a chunk a stack was seen, in as few bits as that takes.

A thread is in one stack at every moment. So its first stack is told by the moments at which it was
not seen, the next one by those of them at which it was not either, and for the last nothing is left
to tell. What does not add up so, as in no chunk that py-spy wrote, costs bits and is told all the
same.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ..model.observations import StackCount

MOST_MOMENTS: Final = 64
"""Chunks with more, which nobody writes, are told as they are."""


class MomentBits:
    """The stacks of one chunk, one after the other, with so many moments."""

    def __init__(self, moments: int, packing: bool) -> None:
        self._every = (1 << moments) - 1
        self._packing = packing
        self._left: dict[tuple[int, str], int] = {}
        """Of a thread, by pid and name: moments at which it was in none of the stacks so far."""

    def through(self, stacks: Sequence[StackCount]) -> tuple[StackCount, ...]:
        """The stacks with what has to be told of them, or the other way round."""
        return tuple(map(self._stack, stacks))

    def _stack(self, stack: StackCount) -> StackCount:
        thread = (stack.pid, stack.thread)
        left = self._left.get(thread, self._every)
        if self._packing:
            true, moments = stack.moments, gathered(stack.moments ^ left, left)
            moments |= (stack.moments & ~left) << left.bit_count()
            count = stack.count - true.bit_count()
        else:
            own = left.bit_count()
            inside = scattered(stack.moments & (1 << own) - 1, left) ^ left
            true = moments = inside | stack.moments >> own
            count = stack.count + true.bit_count()
        self._left[thread] = left & ~true
        return replace(stack, moments=moments, count=count)


def gathered(bits: int, places: int) -> int:
    """Those of the bits that stand at these places, moved together: 0b1001, 0b1101 -> 0b101."""
    told, at = 0, 0
    while places:
        place = places & -places
        told |= bool(bits & place) << at
        places ^= place
        at += 1
    return told


def scattered(told: int, places: int) -> int:
    """The bits back at their places."""
    bits = 0
    while places:
        place = places & -places
        if told & 1:
            bits |= place
        told >>= 1
        places ^= place
    return bits
