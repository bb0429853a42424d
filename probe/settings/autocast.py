"""The type that autocast uses in the loop, as a backward shows it.

Autocast's flags belong to a thread and are off again outside of its `with`, and none of our hooks
lies inside: the fetch comes before it, the backward after it. But a parameter that autocast casts
leaves the cast in the graph: a copy to another type (`ToCopyBackward`) right above the leaf. So the
graph is walked from the loss, for a few dozen nodes.

What can not be seen: inside a compiled forward (one node of the graph), inside a custom function,
where the graph is wider than the walk, and where no parameter with a gradient is cast. The answer
is None then. A forward that casts its own parameters looks the same, and costs the same.
"""

import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from .flags import type_name

MOST_NODES: Final = 32
"""The last layer of a net lies within 10 to 20 nodes of its loss; a node costs 1 to 2 us."""
HALVES: Final = ("bfloat16", "float16")
_LEAF: Final = "torch::autograd::AccumulateGrad"
_COMPILED: Final = "CompiledFunction"
_CASTS: Final = ("ToCopy", _COMPILED)
"""Nodes that take a parameter and give it on in another type."""
_PRODUCTS: Final = ("Addmm", "Mm", "Bmm", "Baddbmm", "Linear", "Convolution")
"""Nodes that autocast would have run in its type."""


def autocast_of(roots: Any) -> str | None:
    """ "bfloat16", "" where it was not on, None where the graph does not show it. `roots` is what a
    backward starts from."""
    first = first_of(roots)
    if first is None:
        return None
    torch: Any = sys.modules["torch"]
    device = first.device.type
    try:
        if torch.is_autocast_enabled(device):
            return type_name(torch.get_autocast_dtype(device))
    except RuntimeError:
        return None  # a device that has no autocast: meta
    return None if first.grad_fn is None else _walked(first.grad_fn)


def parameter_type_of(roots: Any) -> str | None:
    """The type of the parameter nearest to the loss, before any cast: of a net that no optimizer
    updates. None where the graph does not show it."""
    first = first_of(roots)
    if first is None or first.grad_fn is None:
        return None
    found = (leaves[0] for _, leaves in nodes_below(first.grad_fn, MOST_NODES) if leaves)
    return next(map(_type_of, found), None)


def first_of(roots: Any) -> Any:
    """The first tensor that a backward starts from, for it may start from edges of the graph too;
    None without one."""
    several = roots if isinstance(roots, (tuple, list)) else (roots,)
    return next((one for one in several if hasattr(one, "grad_fn")), None)


def nodes_below(root: Any, most: int) -> Iterator[tuple[Any, list[Any]]]:
    """The first nodes of a graph, `root` among them, at most so many and the nearest first: each
    with the leaves right below it."""
    waiting, met = deque((root,)), {root}
    for _ in range(most):
        if not waiting:
            return
        node = waiting.popleft()
        leaves = []
        for below, _ in node.next_functions:
            if below is None or below in met:
                continue
            if is_leaf(below):
                leaves.append(below)
            else:
                met.add(below)
                waiting.append(below)
        yield node, leaves


def _walked(root: Any) -> str | None:
    off = hidden = False
    for node, leaves in nodes_below(root, MOST_NODES):
        name = name_of(node)
        if leaves and name.startswith(_CASTS):
            types = {_type_of(leaf) for leaf in leaves}
            if "float32" in types and (to := _type_of(node)) in HALVES:
                return to
        if name.startswith(_COMPILED):
            hidden = True
        elif leaves and not off:
            off = _type_of(leaves[0]) in HALVES  # the model itself is of that type
        if not off and name.startswith(_PRODUCTS):
            off = _type_of(node) == "float32"
    return "" if off and not hidden else None


def is_leaf(node: Any) -> bool:
    """It gathers the gradient of a parameter, or of an input that wants one."""
    return name_of(node) == _LEAF


def name_of(node: Any) -> str:
    """Of its type: a custom function's node is the `ctx` that its forward writes attributes into,
    and may have a `name` of its own."""
    name: str = type(node).name(node)
    return name


def _type_of(node: Any) -> str | None:
    """Type of what a node made in the forward; None where this torch does not record it."""
    metadata = getattr(node, "_input_metadata", None)
    return type_name(metadata[0].dtype) if metadata else None
