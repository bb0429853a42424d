"""How many operations a backward goes through, as its graph shows it: on a CPU each costs its call,
however small it is, and a loop over the parts of a batch makes many small ones.

A walk through a graph costs less than a fifth of what building it and going back through it has
cost the program, and comes once in a thousand times as long as it took.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from .repeated import REPEATED, repeated_layer
from .users import Users, bytes_of, users_below

PAUSE: Final = 1_000
"""Times a walk's own length until the next: a thousandth of the time at the most."""
KEPT: Final = 8
"""Graphs over which the numbers are means: sentences differ in length."""
OPERATIONS: Final = ("graph_nodes", "graph_uses", "graph_added_bytes")
"""As `settings.Settings` has them."""


class Operations:
    """Belongs to the training thread, and holds no graph."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._again_ns: int | None = None
        self._last: deque[tuple[int, int, int]] = deque(maxlen=KEPT)

    def look(self, root: Any) -> dict[str, Any]:
        """The fields of `OPERATIONS` and a repeated layer, `root` being the node that a backward
        starts from; nothing new where the last walk was not long enough ago."""
        begun_ns = self._now_ns()
        if self._again_ns is not None and begun_ns < self._again_ns:
            return {}
        nodes, users = users_below(root)
        self._last.append(counted(nodes, users))
        layer = repeated_layer(users)
        ended_ns = self._now_ns()
        self._again_ns = ended_ns + PAUSE * (ended_ns - begun_ns)
        means = (round(sum(each) / len(self._last)) for each in zip(*self._last, strict=True))
        return {**dict(zip(OPERATIONS, means, strict=True)), REPEATED: layer}


def counted(nodes: int, users: Users) -> tuple[int, int, int]:
    """How many nodes a graph has; how many of them use the value, or the parameter, that most of
    them use; and the bytes of gradients that are added to those of an earlier use."""
    uses = {one: len(often) for one, often in users.items()}
    added = sum((often - 1) * bytes_of(one) for one, often in uses.items() if often > 1)
    return nodes, max(uses.values(), default=0), added
