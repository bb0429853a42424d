"""A walk through the graph of a backward: what uses each result, and each parameter."""

import sys
from collections.abc import Iterable
from typing import Any, Final

from ..loaders import runs_no_code
from .autocast import is_leaf, nodes_below

MOST_NODES: Final = 20_000
"""A walk takes 0.7 to 1 us a node (two cores, torch 2.13), 20 ms for so many, and once more as
long where a repeated layer is looked for: the forward and the backward of such a graph have taken
130 ms at the least. Of a larger one it is "at least"."""

Users = dict[Any, list[Any]]
"""Of a node those that its result goes to, or of a leaf those that use the parameter."""


def users_below(root: Any) -> tuple[int, Users]:
    """How many nodes a graph has, leaves left out and `MOST_NODES` at the most; and the users of
    each below the first."""
    nodes = [node for node, _ in nodes_below(root, MOST_NODES)]
    return len(nodes), users_among(nodes)


def users_among(nodes: Iterable[Any]) -> Users:
    """What of these nodes uses each."""
    users: Users = {}
    for node in nodes:
        for below, _ in node.next_functions:
            if below is not None:
                users.setdefault(below, []).append(node)
    return users


def parameter_of(node: Any) -> Any:
    """The parameter that a leaf gathers the gradient of; None of another node, and where its size
    is asked of the code of a tensor's subclass."""
    if not is_leaf(node):
        return None
    variable = node.variable
    return variable if runs_no_code(type(variable), sys.modules["torch"]) else None


def bytes_of(node: Any) -> int:
    """Of a parameter's gradient; other results are added up too, and no shape is kept of them."""
    variable = parameter_of(node)
    return 0 if variable is None else int(variable.numel() * variable.element_size())
