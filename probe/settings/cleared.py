"""Gradients that are computed and then cleared before their optimizer steps: the backward of a
generator also fills its discriminator's gradients, that of an actor its critic's, and an attack on
an input those of the whole net.

One parameter of each optimizer is looked at as a backward begins and ends, for a microsecond: a
gradient that is there after a backward and gone at a later one, while its optimizer has not stepped
and its parameter is as it was, was made for nothing. Once seen, the backwards of the next turn are
walked through for how much of their work that is. It may still have been read by hand, as for a
penalty: so nothing is said of a backward that serves no other optimizer and no input.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import ref

from .autocast import COMPILED, PRODUCTS, is_leaf, name_of, nodes_below
from .unused import above, is_parameter, is_sharded
from .users import users_among

MOST_BACKWARDS: Final = 32
"""Looked at in one turn, which holds a whole interval between two steps of every optimizer: 22
backwards where a critic updates five times for each update of its actor."""
MOST_NODES: Final = 8_000
"""Of all those graphs, and of each: 30 ms, once in a run (two cores, torch 2.13)."""
COUNTED: Final = (*PRODUCTS, COMPILED, "CudnnRnn", "MkldnnRnn", "ThnnFused", "ScaledDotProduct")
"""Nodes that take nearly all the time of a backward that computes, and two launches each of one
that does not. Where there are none all nodes are counted."""

CLEARED: Final = ("cleared_parameters", "cleared_nodes", "cleared_weights", "cleared_for_input")
"""As `settings.Settings` has them."""

Owners = Mapping[int, int]
"""The optimizer of each parameter, by identities."""


class _Backward:
    """What is known of one backward."""

    __slots__ = ("for_input", "lost", "nodes", "parts", "pending", "products", "used")

    def __init__(self) -> None:
        self.nodes = self.products = 0
        self.parts: dict[int, tuple[int, int, int]] = {}
        """By optimizer: parameters, products that lead to those alone, and other products of which
        one gradient does."""
        self.for_input = False
        self.pending: set[int] = set()
        self.used: set[int] = set()
        self.lost: set[int] = set()
        """Optimizers for whose parameters it made gradients: these did not step so far, have
        stepped, and have not until the gradients were cleared."""


class _Parameter:
    """One of an optimizer's, with the backwards whose gradient it has."""

    __slots__ = ("before", "made", "parameter", "version")

    def __init__(self, parameter: Any) -> None:
        self.parameter: Callable[[], Any] = ref(parameter)
        self.before: tuple[Callable[[], Any], int] | None = None
        self.made: list[_Backward] = []
        self.version = 0

    def begins(self) -> None:
        parameter = self.parameter()
        gradient = None if parameter is None else parameter.grad
        self.before = None if gradient is None else (ref(gradient), gradient._version)
        if parameter is not None and not self.made:
            self.version = parameter._version

    def has_new(self) -> bool:
        """A gradient was made or added to since the backward began."""
        parameter = self.parameter()
        gradient = None if parameter is None else parameter.grad
        if gradient is None or self.before is None:
            return gradient is not None
        held, version = self.before
        return held() is not gradient or gradient._version != version

    def is_cleared(self) -> bool:
        parameter = self.parameter()
        return parameter is not None and parameter.grad is None

    def is_untouched(self) -> bool:
        parameter = self.parameter()
        return parameter is not None and parameter._version == self.version


class Cleared:
    """Belongs to the training thread, and holds no parameter alive."""

    def __init__(self) -> None:
        self.is_known = False
        self._parameters: dict[int, _Parameter] = {}
        self._last: _Backward | None = None
        self._seen = self._walks = False
        """A gradient was cleared; in a turn before this one."""
        self._backwards: list[_Backward] = []
        self._steps: dict[int, list[int]] = {}
        """Of this turn; and behind how many of them each optimizer in it stepped."""

    def begin(self) -> None:
        """A turn begins. What came before it was not seen."""
        self._walks = self._seen
        self._last, self._parameters = None, {}
        self._backwards, self._steps = [], {}

    @property
    def is_over(self) -> bool:
        """Nothing of this turn is left to look at."""
        if self.is_known or len(self._backwards) >= MOST_BACKWARDS:
            return True
        if not self._parameters:
            return bool(self._backwards)
        if sum(one.nodes for one in self._backwards) >= MOST_NODES:
            return True
        if any(len(self._steps.get(key, ())) < 2 for key in self._parameters):
            return False
        return not any(one.pending for one in self._whole())

    def stepping(self, optimizer: Any) -> dict[str, Any]:
        """It is about to use what its parameters have. What is known now."""
        self._steps.setdefault(id(optimizer), []).append(len(self._backwards))
        one = self._parameters.get(id(optimizer))
        if one is not None:
            _end(one, id(optimizer), lost=False)
        if not self._walks or not self.is_over:
            return {}
        self.is_known = True
        return found_in(self._whole())

    def backward(self, root: Any, some: Mapping[int, Any], owners: Callable[[], Owners]) -> None:
        """A backward begins from the node `root`; `some` has one parameter of each optimizer."""
        if is_sharded():
            self.is_known = True
            return
        for key, one in self._parameters.items():
            if one.made and one.is_cleared():
                lost = one.is_untouched()
                self._seen |= lost
                _end(one, key, lost)
        self._last = _Backward()
        self._backwards.append(self._last)
        if self._walks:
            walk(self._last, root, owners())
        for key, parameter in some.items():
            self._parameters.setdefault(key, _Parameter(parameter)).begins()

    def ended(self) -> None:
        """A backward has ended: for which optimizers it has made gradients."""
        last, self._last = self._last, None
        for key, one in self._parameters.items():
            if last is not None and one.has_new():
                one.made.append(last)
                last.pending.add(key)

    def _whole(self) -> list[_Backward]:
        """Those between two steps of the optimizer that steps least often."""
        ways = [steps for steps in self._steps.values() if len(steps) > 1]
        if len(self._backwards) >= MOST_BACKWARDS or not ways:
            return self._backwards
        steps = max(ways, key=lambda steps: steps[1] - steps[0])
        return self._backwards[steps[0] : steps[1]]


def _end(parameter: _Parameter, key: int, lost: bool) -> None:
    for backward in parameter.made:
        backward.pending.discard(key)
        (backward.lost if lost else backward.used).add(key)
    parameter.made = []


def walk(backward: _Backward, root: Any, owners: Owners) -> None:
    """What leads to whose parameters. Of a graph that is too large, its first part."""
    nodes = list(nodes_below(root, MOST_NODES))
    counted = {node for node, _ in nodes if name_of(node).startswith(COUNTED)}
    counted = counted or {node for node, _ in nodes}
    backward.nodes, backward.products = len(nodes), len(counted)
    parameters: dict[int, int] = {}
    leading: dict[int | None, set[Any]] = {}
    for node, leaves in nodes:
        for leaf in leaves:
            owner = owners.get(id(leaf.variable))
            leading.setdefault(owner, set()).add(node)
            if owner is not None:
                parameters[id(leaf.variable)] = owner
            elif not is_parameter(leaf.variable):
                backward.for_input = True
    users = users_among(node for node, _ in nodes)
    for key, count in Counter(parameters.values()).items():
        useful = above(set().union(*(at for owner, at in leading.items() if owner != key)), users)
        rest = {node for node in useful & counted if _is_in_part(node, useful, owners, key)}
        backward.parts[key] = count, len(counted - useful), len(rest)


def _is_in_part(node: Any, useful: set[Any], owners: Owners, key: int) -> bool:
    """One of the gradients that it makes leads to parameters of this optimizer alone."""
    for below, _ in node.next_functions:
        if below is None or below in useful:
            continue
        if not is_leaf(below) or owners.get(id(below.variable)) == key:
            return True
    return False


def found_in(backwards: list[_Backward]) -> dict[str, Any]:
    """The fields of `CLEARED`, of backwards of whose gradients all is known; nothing where whoever
    cleared them may have read them."""
    whole = [one for one in backwards if not one.pending and (one.used or one.lost)]
    lost = [one for one in whole if one.lost and (one.used or one.for_input)]
    parts = [one.parts[key] for one in lost for key in one.lost if key in one.parts]
    products = sum(one.products for one in whole)
    if not parts or not products:
        return {}
    return {
        "cleared_parameters": max(count for count, _, _ in parts),
        "cleared_nodes": min(1.0, sum(alone for _, alone, _ in parts) / products),
        "cleared_weights": min(1.0, sum(rest for _, _, rest in parts) / products),
        "cleared_for_input": not any(one.used for one in lost),
    }
