"""Parameters whose gradients are computed and that nothing updates, as a backward's graph shows
them: a backbone that should be frozen, of which only the optimizer does not know, or whose learning
rate is 0.

The leaves of the graph are looked at once, and anew where one of them turns out to be used. Those
that no optimizer has are watched from then on: an optimizer that steps rarely may have them, and an
update by hand shows in a tensor's version. One through `parameter.data` shows in its numbers alone,
of which some are read before anything is said, where they lie in host memory; but a target net that
follows the trained one moves so too, and nobody clears its gradients: they only grow. None of it
reads a saved tensor, for whom the program may have hooks.
"""

import sys
from collections.abc import Collection
from typing import Any, Final
from weakref import ref

from ..loaders import is_dispatched
from .autocast import nodes_below
from .users import Users, users_among

MOST_NODES: Final = 8_000
"""As for tables. Of a larger graph nothing is said."""
MOST_WALKS: Final = 3
"""Then nothing is said either: parameters that something else updates are found anew for ever."""
MOST_READ: Final = 16
NUMBERS: Final = 8
"""Of so many parameters so many numbers, spread over them: 0.1 ms, and of their gradients at each
look."""
LOOKS: Final = 3
"""Looks in a row, half a second apart or more, at which the old gradient is still there."""
ADDED: Final = 64
"""Additions to a gradient since it was made, from which on it is taken to grow without ever being
cleared: more than anybody's micro-batches before an update by hand that makes it anew."""
SURE_NS: Final = 3_000_000_000
"""For so long nothing updates them: each optimizer of a loop that turns within that has stepped."""
Numbers = tuple[float, ...] | None
UNUSED: Final = ("unused_parameters", "graph_parameters", "unused_nodes", "resting_parameters")
"""As `settings.Settings` has them."""


class Unused:
    """Belongs to the training thread, and holds no parameter alive."""

    def __init__(self) -> None:
        self._suspects: list[tuple[Any, int | None]] | None = None
        """Each parameter that nothing updates so far, with its version; None before the look. An
        optimizer that leaves one as it is makes a new version of it nevertheless: so that has
        none."""
        self._numbers: list[tuple[Any, Numbers]] = []
        """Of some of them; empty once they were compared."""
        self._kept = 0
        """Looks in a row at which all of these keep their gradients."""
        self._walks = 0
        self._found: dict[str, Any] = {}
        self._since_ns = 0

    @property
    def is_known(self) -> bool:
        """Nothing is left to look at."""
        return self._suspects == []

    def look(
        self, root: Any, updated: Collection[int], resting: Collection[int], now_ns: int
    ) -> dict[str, Any]:
        """What is known now, `root` being the node that a backward starts from; `updated` and
        `resting` are the identities of what the known optimizers update, and have but leave as it
        is."""
        if self._suspects is None:
            if is_sharded():
                self._suspects = []
                return {}
            self._since_ns = now_ns
            self._walks += 1
            self._found, suspects = found_below(root, updated)
            if self._found:
                self._found["resting_parameters"] = sum(id(one) in resting for one in suspects)
            self._suspects = [
                (ref(one), None if id(one) in resting else one._version) for one in suspects
            ]
            some = suspects[:: max(1, len(suspects) // MOST_READ)][:MOST_READ]
            self._numbers, self._kept = [(ref(one), numbers_of(one)) for one in some], 0
        kept = all(_keeps_gradient(one()) for one, _ in self._numbers)
        self._kept = self._kept + 1 if kept else 0
        sure = not self._suspects or now_ns - self._since_ns >= SURE_NS
        used = any(_is_updated(one(), version, updated) for one, version in self._suspects)
        if sure and not used:
            moved = any(_has_moved(one(), numbers) for one, numbers in self._numbers)
            used = moved and self._kept < LOOKS
            self._numbers = []
        if used:
            # Not all optimizers had stepped: looked at anew, with those that are known by now.
            self._suspects = None if self._walks < MOST_WALKS else []
            return dict.fromkeys(UNUSED)
        return self._found if sure else {}


def found_below(root: Any, updated: Collection[int]) -> tuple[dict[str, Any], list[Any]]:
    """The fields of `UNUSED`, and the parameters that nothing updates. Nothing where the graph is
    too large, and where no leaf is updated: then optimizers hold copies of the parameters."""
    nodes = list(nodes_below(root, MOST_NODES))
    if len(nodes) >= MOST_NODES:
        return {}, []
    used, unused, useful = set(), {}, set()
    for node, leaves in nodes:
        for leaf in leaves:
            variable = leaf.variable
            if id(variable) in updated:
                used.add(id(variable))
            elif is_parameter(variable):
                unused[id(variable)] = variable
                continue
            useful.add(node)  # an input that wants a gradient does so for a reason
    if not used:
        return {}, []
    useful = above(useful, users_among(node for node, _ in nodes))
    fields = {
        "unused_parameters": len(unused),
        "graph_parameters": len(used) + len(unused),
        "unused_nodes": 1.0
        - len(above(useful, users_among(node for node, _ in nodes))) / len(nodes),
    }
    return fields, list(unused.values())


def above(useful: set[Any], users: Users) -> set[Any]:
    """The nodes through which a gradient reaches one of these, themselves included."""
    found, waiting = set(useful), list(useful)
    while waiting:
        for node in users.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def numbers_of(tensor: Any) -> Numbers:
    """Some of a plain tensor's or parameter's numbers, where reading them waits for no device and
    calls no mode of the program's; else None."""
    torch: Any = sys.modules["torch"]
    plain = type(tensor) in (torch.nn.Parameter, torch.Tensor) and tensor.layout is torch.strided
    if not plain or tensor.device.type != "cpu" or is_dispatched(torch):
        return None
    held = tensor.detach()
    if not held.is_contiguous():
        return None
    flat = held.view(-1)
    return tuple(flat[:: max(1, len(flat) // NUMBERS)][:NUMBERS].tolist())


def _has_moved(parameter: Any, numbers: Numbers) -> bool:
    now = None if parameter is None else numbers_of(parameter)
    if numbers is None or now is None:
        return False
    return repr(now) != repr(numbers)  # what is no number is equal to nothing


def _keeps_gradient(parameter: Any) -> bool:
    """As a backward begins there is one of many earlier ones, and it was not set to zero."""
    gradient = None if parameter is None else parameter.grad
    if gradient is None or gradient._version < ADDED:
        return False
    return any(numbers_of(gradient) or ())


def _is_updated(parameter: Any, version: int | None, updated: Collection[int]) -> bool:
    if parameter is None or id(parameter) in updated:
        return True
    return version is not None and parameter._version != version


def is_parameter(variable: Any) -> bool:
    """Of a module, not an input that wants a gradient."""
    return isinstance(variable, sys.modules["torch.nn.parameter"].Parameter)


def is_sharded() -> bool:
    """In a job of several ranks optimizers may have shards, and the graph what they are gathered
    to."""
    distributed: Any = sys.modules.get("torch.distributed")
    asked = getattr(distributed, "is_initialized", None)  # None where torch was built without
    return asked is not None and bool(asked()) and int(distributed.get_world_size()) > 1
