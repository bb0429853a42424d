"""How many operations a backward goes through, as its graph shows it: on a CPU each costs its call,
however small it is, and a loop over the parts of a batch makes many small ones.

A walk through a graph costs less than a fifth of what building it and going back through it has
cost the program, and comes once in a thousand times as long as it took.
"""

import sys
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final

from ..loaders import is_dispatched
from .attention import ATTENTION, attention_among
from .device_reads import Answers, DeviceReads, find_reads
from .diagonals import DIAGONALS, diagonals_among
from .penalties import PENALTY, penalty_among
from .products import PRODUCTS, UNUSED_ROWS, products_among
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

    def __init__(
        self,
        now_ns: Callable[[], int],
        reads_of: Callable[[], DeviceReads | None] = find_reads,
    ) -> None:
        self._now_ns = now_ns
        self._reads_of = reads_of
        self._reads: DeviceReads | None = None
        self._under_way: dict[str, Any] | None = None
        """Fields of which the device has not given some yet."""
        self._asked_ns = 0
        """What asking for them took."""
        self._again_ns: int | None = None
        self._products_again_ns: int | None = None
        self._looks: dict[str, deque[Any]] = {
            name: deque(maxlen=KEPT) for name in (*PRODUCTS, PENALTY, ATTENTION, DIAGONALS)
        }
        self._last: deque[tuple[int, int, int]] = deque(maxlen=KEPT)

    def look(self, root: Any, on_host: bool = True, is_alone: bool = True) -> dict[str, Any]:
        """The fields of `OPERATIONS`, a repeated layer and products that need not be, `root` being
        the node that a backward starts from; nothing new where the last walk was not long enough
        ago. What runs on a device costs no call of the host's, so that only the last are asked.
        `is_alone`: the backward starts from no other node as well."""
        begun_ns = self._now_ns()
        if not on_host:
            if is_dispatched(sys.modules["torch"]):
                return {}  # a mode would see what is copied and read
            if self._under_way is not None:
                return self._arrived()
            due = self._products_again_ns is None or begun_ns >= self._products_again_ns
            return self._on_device(root, begun_ns, is_alone) if due else {}
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

    def forget_rows(self) -> None:
        """Another backward of the step goes through the graph that was looked at last: what looks
        unused to the first is used by it."""
        if self._under_way is not None:
            self._under_way[UNUSED_ROWS] = None

    def _products(self, nodes: int, users: Users, now_ns: int, is_alone: bool) -> dict[str, Any]:
        """These take longer than the walk, so they have a pause of their own."""
        if self._products_again_ns is not None and now_ns < self._products_again_ns:
            return {}
        found = products_among(users, is_alone and nodes < MOST_NODES) | _beside_products(users)
        self._pause_since(now_ns)
        return self._noted(found)

    def _on_device(self, root: Any, now_ns: int, is_alone: bool) -> dict[str, Any]:
        if self._reads is None:
            self._reads = self._reads_of()
        reads = self._reads
        if reads is not None and not reads.begin():
            return {}
        nodes, users = users_below(root)
        found = products_among(users, is_alone and nodes < MOST_NODES, reads)
        found |= _beside_products(users, reads)
        is_under_way = reads is not None and reads.end()
        self._asked_ns = self._pause_since(now_ns)
        if not is_under_way:
            return self._noted(found)
        self._under_way = found
        return {}

    def _arrived(self) -> dict[str, Any]:
        reads, under_way = self._reads, self._under_way
        begun_ns = self._now_ns()
        answers = None if reads is None else reads.arrived()
        if answers is None or under_way is None:
            return {}
        self._under_way = None
        found = {name: _known(one, answers) for name, one in under_way.items()}
        self._pause_since(begun_ns - self._asked_ns)
        return self._noted(found)

    def _pause_since(self, begun_ns: int) -> int:
        """Returns how long it took, ns."""
        ended_ns = self._now_ns()
        self._products_again_ns = ended_ns + PAUSE * (ended_ns - begun_ns)
        return ended_ns - begun_ns

    def _noted(self, found: dict[str, Any]) -> dict[str, Any]:
        for name, seen in found.items():
            self._looks[name].append(seen)
        return {name: _mean(looks) for name, looks in self._looks.items()}


def _beside_products(users: Users, reads: DeviceReads | None = None) -> dict[str, Any]:
    return {
        PENALTY: penalty_among(users),
        ATTENTION: attention_among(users),
        DIAGONALS: diagonals_among(users, reads),
    }


def _known(field: Any, answers: Answers) -> Any:
    return field(answers) if callable(field) else field


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
