"""How many operations a backward goes through, as its graph shows it: on a CPU each costs its call,
however small it is, and a loop over the parts of a batch makes many small ones.

A walk through a graph costs less than a fifth of what building it and going back through it has
cost the program, and comes once in a thousand times as long as it took.
"""

from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final

from .products import PRODUCTS, products_among
from .repeated import REPEATED, repeated_layer
from .users import MOST_NODES, Users, bytes_of, users_below

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
        self._products_again_ns: int | None = None
        self._looks: dict[str, deque[Any]] = {name: deque(maxlen=KEPT) for name in PRODUCTS}
        self._last: deque[tuple[int, int, int]] = deque(maxlen=KEPT)

    def look(self, root: Any, on_host: bool = True, is_alone: bool = True) -> dict[str, Any]:
        """The fields of `OPERATIONS`, a repeated layer and products that need not be, `root` being
        the node that a backward starts from; nothing new where the last walk was not long enough
        ago. What runs on a device costs no call of the host's, so that only the last are asked.
        `is_alone`: the backward starts from no other node as well."""
        begun_ns = self._now_ns()
        if not on_host:
            due = self._products_again_ns is None or begun_ns >= self._products_again_ns
            return self._products(*users_below(root), begun_ns, is_alone) if due else {}
        if self._again_ns is not None and begun_ns < self._again_ns:
            return {}
        nodes, users = users_below(root)
        self._last.append(counted(nodes, users))
        layer = repeated_layer(users)
        ended_ns = self._now_ns()
        self._again_ns = ended_ns + PAUSE * (ended_ns - begun_ns)
        means = (round(sum(each) / len(self._last)) for each in zip(*self._last, strict=True))
        found = {**dict(zip(OPERATIONS, means, strict=True)), REPEATED: layer}
        return found | self._products(nodes, users, ended_ns, is_alone)

    def _products(self, nodes: int, users: Users, now_ns: int, is_alone: bool) -> dict[str, Any]:
        """These take longer than the walk, so they have a pause of their own."""
        if self._products_again_ns is not None and now_ns < self._products_again_ns:
            return {}
        for name, seen in products_among(users, is_alone and nodes < MOST_NODES).items():
            self._looks[name].append(seen)
        ended_ns = self._now_ns()
        self._products_again_ns = ended_ns + PAUSE * (ended_ns - now_ns)
        return {name: _mean(looks) for name, looks in self._looks.items()}


def counted(nodes: int, users: Users) -> tuple[int, int, int]:
    """How many nodes a graph has; how many of them use the value, or the parameter, that most of
    them use; and the bytes of gradients that are added to those of an earlier use."""
    uses = {one: len(often) for one, often in users.items()}
    added = sum((often - 1) * bytes_of(one) for one, often in uses.items() if often > 1)
    return nodes, max(uses.values(), default=0), added


def _mean(looks: Collection[Any]) -> Any:
    """The part that the first field is, over all of them; the rest as it was seen last. A step may
    have several backwards, of which some have none."""
    last = next((one for one in reversed(tuple(looks)) if one is not None), None)
    if last is None:
        return None
    part = sum(0.0 if one is None else one[0] for one in looks) / len(looks)
    return (part, *last[1:])
