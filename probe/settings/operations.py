"""How many operations a backward goes through, as its graph shows it: on a CPU each costs its call,
however small it is, and a loop over the parts of a batch makes many small ones.

A walk through a graph costs less than a tenth of what building it and going back through it has
cost the program, and comes once in a thousand times as long as it took.
"""

import sys
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

from ..loaders import runs_no_code
from .autocast import is_leaf

MOST_NODES: Final = 20_000
"""A walk takes 0.7 to 1 us a node (two cores, torch 2.13), 20 ms for so many: the forward and the
backward of such a graph have taken 130 ms at the least. Of a larger one it is "at least"."""
PAUSE: Final = 1_000
"""Times a walk's own length until the next: a thousandth of the time at the most."""
KEPT: Final = 8
"""Graphs over which the numbers are means: sentences differ in length."""
OPERATIONS: Final = ("graph_nodes", "graph_uses", "graph_added_bytes")
"""As `messages.Settings` has them."""


class Operations:
    """Belongs to the training thread, and holds no graph."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._again_ns: int | None = None
        self._last: deque[tuple[int, int, int]] = deque(maxlen=KEPT)

    def look(self, root: Any) -> dict[str, Any]:
        """The fields of `OPERATIONS`, `root` being the node that a backward starts from; nothing
        new where the last walk was not long enough ago."""
        begun_ns = self._now_ns()
        if self._again_ns is not None and begun_ns < self._again_ns:
            return {}
        self._last.append(counted_below(root))
        ended_ns = self._now_ns()
        self._again_ns = ended_ns + PAUSE * (ended_ns - begun_ns)
        means = (round(sum(each) / len(self._last)) for each in zip(*self._last, strict=True))
        return dict(zip(OPERATIONS, means, strict=True))


def counted_below(root: Any) -> tuple[int, int, int]:
    """How many nodes a graph has, leaves left out and `MOST_NODES` at the most; how many of them
    use the value, or the parameter, that most of them use; and the bytes of gradients that are
    added to those of an earlier use."""
    waiting, met, uses = deque((root,)), {root}, Counter[Any]()
    nodes = 0
    while waiting and nodes < MOST_NODES:
        node = waiting.popleft()
        nodes += 1
        for below, _ in node.next_functions:
            if below is None:
                continue
            uses[below] += 1
            if below not in met and not is_leaf(below):
                met.add(below)
                waiting.append(below)
    added = sum((often - 1) * _bytes_of(one) for one, often in uses.items() if often > 1)
    return nodes, max(uses.values(), default=0), added


def _bytes_of(node: Any) -> int:
    """Of a parameter's gradient; other results are added up too, and no shape is kept of them. No
    code of a tensor's subclass is run for its size."""
    if not is_leaf(node):
        return 0
    variable = node.variable
    if not runs_no_code(type(variable), sys.modules["torch"]):
        return 0
    return int(variable.numel() * variable.element_size())
