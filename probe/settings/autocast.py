"""The type that autocast uses in the loop, as a backward shows it.

Autocast's flags belong to a thread and are off again outside of its `with`, and none of our hooks
lies inside: the fetch comes before it, the backward after it. But a parameter that autocast casts
leaves the cast in the graph: a copy to another type (`ToCopyBackward`) right above the leaf. So the
graph is walked from the loss to the first layers that it meets.

A compiled forward is one node of it. What that has saved for its backward shows the type that it
computed in: a half type at inputs of products where autocast was on.

What can not be seen: inside a custom function, where the graph is wider than the walk, and where no
parameter with a gradient is cast. The answer is None then. A forward that casts its own parameters
looks the same, and costs the same.
"""

import sys
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, Final

from .flags import type_name

MOST_SAVED: Final = 64
"""Tensors that are looked at of one compiled forward, 1 us each: the last ones, for its parameters
come first."""
MOST_NODES: Final = 512
"""A loss over several scales, or of each speaker against each, lies wide above the net's last
layer. Once in ten seconds, 2 to 8 us a node (two cores, torch 2.13)."""
NODES_BEYOND: Final = 32
"""That are looked at behind the first product in float32: the loss may have one outside of
autocast. The last layer of a net lies within 10 to 20 nodes of a plain loss."""
HALVES: Final = ("bfloat16", "float16")
_LEAF: Final = "torch::autograd::AccumulateGrad"
COMPILED: Final = "CompiledFunction"
_CASTS: Final = ("ToCopy", COMPILED)
"""Nodes that take a parameter and give it on in another type."""
PRODUCTS: Final = ("Addmm", "Mm", "Bmm", "Baddbmm", "Linear", "Convolution")
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
    beyond = 0
    for node, leaves in nodes_below(root, MOST_NODES):
        beyond += off
        if beyond > NODES_BEYOND:
            break
        name, types = name_of(node), set(map(_type_of, leaves))
        to = {_type_of(node)} if name.startswith(_CASTS) else set()
        if name.startswith(COMPILED):
            computed_in = _computed_in(node, leaves)
            to, hidden = to | {computed_in}, hidden or computed_in is None
            off = off or computed_in == "float32"
        if leaves and not off:
            off = _type_of(leaves[0]) in HALVES  # the model itself is of that type
        if "float32" in types and (half := next((one for one in HALVES if one in to), None)):
            return half
        if not off and name.startswith(PRODUCTS):
            off = _type_of(node) == "float32"
    return "" if off and not hidden else None


def _computed_in(node: Any, leaves: list[Any]) -> str | None:
    """The type of a compiled forward's products, by the matrices that it keeps for its backward and
    that are no parameters: each product keeps its input. None where this torch does not show them,
    or where they are too few: a forward that is computed anew (a checkpoint) keeps the inputs of
    its parts, which autocast leaves in float32, and one buffer may have any type."""
    matrices = sum(map(_is_matrix, leaves))
    kept = _types_kept(node, leaves) if matrices else []
    products = min(matrices, MOST_SAVED // 2)
    halves = Counter(one for one in kept if one in HALVES).most_common(1)
    if not halves:
        return "float32" if products and kept.count("float32") >= products else None
    half, count = halves[0]
    return half if count > products / 2 else None


def _types_kept(node: Any, leaves: list[Any]) -> list[str]:
    """What hooks have put away (a checkpoint, an offload) is not asked for: it would be computed or
    copied anew."""
    try:
        parameters = {leaf.variable.data_ptr() for leaf in leaves}
        kept = [one for one in node._raw_saved_tensors[-MOST_SAVED:] if one.unpack_hook is None]
        tensors = [one.data for one in kept if one.data.data_ptr() not in parameters]
    except (AttributeError, RuntimeError):
        return []
    return [type_name(one.dtype) for one in tensors if one.dim() > 1 and one.is_floating_point()]


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


def _is_matrix(leaf: Any) -> bool:
    metadata = getattr(leaf, "_input_metadata", None) or ()
    return any(len(one.shape) > 1 for one in metadata)
