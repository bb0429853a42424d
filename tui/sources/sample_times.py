"""When samples were taken in which no stack had changed."""

from bisect import bisect_right
from collections.abc import Sequence


def with_unseen(
    seen_us: Sequence[int], ended_us: int, count: int, pause_us: int
) -> tuple[int, ...]:
    """The moments of all `count` samples: those that were seen, and the others spread over the
    pauses between them, of which a longer one gets more.

    In an unseen sample every stack was still as at the seen moment before. After a stack changes,
    the next sample is a seen one and comes `pause_us` later on average, so unseen ones lie earlier
    than that. The last pause ends with a sample too, of which nothing is known.
    """
    unseen = count - len(seen_us)
    if unseen <= 0 or not seen_us:
        return tuple(seen_us)
    ends_us = [*(max(0, at - pause_us) for at in seen_us[1:]), ended_us]
    rooms = [max(0, end - start) for start, end in zip(seen_us, ends_us, strict=True)]
    if not any(rooms):
        rooms = [1] * len(rooms)
    moments = list(seen_us)
    reached, placed = 0, 0
    for start, room in zip(seen_us, rooms, strict=True):
        reached += room
        own = round(unseen * reached / sum(rooms)) - placed
        placed += own
        moments += [start + room * (i + 1) // (own + 1) for i in range(own)]
    return tuple(sorted(moments))


def standing_at(changes_us: Sequence[int], moment_us: int) -> int | None:
    """Index of the last change at or before a moment; None before the first."""
    index = bisect_right(changes_us, moment_us) - 1
    return index if index >= 0 else None
