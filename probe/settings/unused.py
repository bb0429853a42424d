"""Parameters whose gradients are computed and that nothing updates, as a backward's graph shows
them: a backbone that should be frozen, of which only the optimizer does not know.

The leaves of the graph are looked at once. Those that no optimizer has are watched for a few
seconds more: an optimizer that steps rarely may have them, and an update by hand shows in a
tensor's version. Neither reads a saved tensor, for whom the program may have hooks.
"""

import sys
from collections.abc import Collection
from typing import Any, Final
from weakref import ref

from .autocast import nodes_below

MOST_NODES: Final = 2_000
"""As for tables: 2.6 ms at the most, once. Of a larger graph nothing is said."""
SURE_NS: Final = 3_000_000_000
"""For so long nothing updates them: each optimizer of a loop that turns within that has stepped."""
UNUSED: Final = ("unused_parameters", "graph_parameters", "unused_nodes")
"""As `messages.Settings` has them."""


class Unused:
    """Belongs to the training thread, and holds no parameter alive."""

    def __init__(self) -> None:
        self._suspects: list[tuple[Any, int]] | None = None
        """Each parameter that nothing updates so far, with its version; None before the look."""
        self._found: dict[str, Any] = {}
        self._since_ns = 0

    @property
    def is_known(self) -> bool:
        """Nothing is left to look at."""
        return self._suspects == []

    def look(self, root: Any, updated: Collection[int], now_ns: int) -> dict[str, Any]:
        """What is known now, `root` being the node that a backward starts from and `updated` the
        identities of what the known optimizers have."""
        if self._suspects is None:
            if _is_sharded():
                self._suspects = []
                return {}
            self._since_ns = now_ns
            self._found, suspects = found_below(root, updated)
            self._suspects = [(ref(one), one._version) for one in suspects]
        if any(_is_updated(one(), version, updated) for one, version in self._suspects):
            # Not all optimizers had stepped: looked at anew, with those that are known by now.
            self._suspects = None
            return dict.fromkeys(UNUSED)
        sure = not self._suspects or now_ns - self._since_ns >= SURE_NS
        return self._found if sure else {}


def found_below(root: Any, updated: Collection[int]) -> tuple[dict[str, Any], list[Any]]:
    """The fields of `UNUSED`, and the parameters that nothing updates. Nothing where the graph is
    too large, and where no leaf is updated: then optimizers hold copies of the parameters."""
    parameter: Any = sys.modules["torch.nn.parameter"].Parameter
    nodes = list(nodes_below(root, MOST_NODES))
    if len(nodes) >= MOST_NODES:
        return {}, []
    used, unused, useful = set(), {}, set()
    for node, leaves in nodes:
        for leaf in leaves:
            variable = leaf.variable
            if id(variable) in updated:
                used.add(id(variable))
            elif isinstance(variable, parameter):
                unused[id(variable)] = variable
                continue
            useful.add(node)  # an input that wants a gradient does so for a reason
    if not used:
        return {}, []
    fields = {
        "unused_parameters": len(unused),
        "graph_parameters": len(used) + len(unused),
        "unused_nodes": 1.0 - len(_all_above(useful, nodes)) / len(nodes),
    }
    return fields, list(unused.values())


def _all_above(useful: set[Any], nodes: list[tuple[Any, list[Any]]]) -> set[Any]:
    """The nodes through which a gradient reaches one of these, themselves included."""
    callers: dict[Any, list[Any]] = {}
    for node, _ in nodes:
        for below, _ in node.next_functions:
            if below is not None:
                callers.setdefault(below, []).append(node)
    found, waiting = set(useful), list(useful)
    while waiting:
        for above in callers.get(waiting.pop(), ()):
            if above not in found:
                found.add(above)
                waiting.append(above)
    return found


def _is_updated(parameter: Any, version: int, updated: Collection[int]) -> bool:
    return parameter is None or id(parameter) in updated or parameter._version != version


def _is_sharded() -> bool:
    """In a job of several ranks optimizers may have shards, and the graph what they are gathered
    to."""
    distributed: Any = sys.modules.get("torch.distributed")
    asked = getattr(distributed, "is_initialized", None)  # None where torch was built without
    return asked is not None and bool(asked())
