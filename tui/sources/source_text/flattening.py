"""Batches whose texts are put together without their padding before a net sees them: by a mask, or
by the places of their words."""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Final

from ...verdict.syntax import name_of
from .packing import MANY_LENGTHS, ON
from .value_flow import name_used, read, stored

FOUND: Final = frozenset(("nonzero", "argwhere", "flatnonzero", "masked_select"))
"""How much of it there is depends on the data."""
MASKS: Final = re.compile(r"(^|_)(mask|valid|keep|kept|is_pad|not_pad)(_|$)|mask$", re.IGNORECASE)
AFTER: Final = re.compile(
    r"loss|crit|metric|acc(uracy)?(_|$)|log(ger)?(_|$)|score|drop", re.IGNORECASE
)
"""What a net's own that is called by such a name is given comes from a net."""
NETS: Final = re.compile(r"(\w+_)?(model|net|network|encoder|decoder|backbone|transformer)")
Calls = Callable[[ast.expr], frozenset[str]]
"""What an expression was computed by."""


def is_lengths(over: ast.expr) -> bool:
    """`lengths`, `lens.tolist()`, `mask.sum(1).tolist()`."""
    summed = False
    while isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        summed = summed or over.func.attr == "sum"
        if over.func.attr not in (*ON, "sum", "numpy", "detach"):
            return False
        over = over.func.value
    return summed or MANY_LENGTHS.search(name_of(over)) is not None


def flattens(nodes: Sequence[ast.AST], calls_in: Calls) -> bool:
    """What a mask has chosen of a batch, in one function, is given to a net: `flat = words[mask]`,
    `x.view(-1, d)[places]`. A loss of what a net has answered is not."""
    chosen = {
        id(one)
        for one in nodes
        if isinstance(one, ast.Subscript)
        and isinstance(one.ctx, ast.Load)
        and _is_of_mask(one.slice, calls_in)
    }
    if not chosen:
        return False
    assigned = [one for one in nodes if isinstance(one, (ast.Assign, ast.AnnAssign))]
    known = set[str]()
    for one in assigned:
        if any(id(node) in chosen for node in ast.walk(one)) or read(one) & known:
            known |= stored(one)
    return any(
        id(node) in chosen or name_used(node) in known
        for call in nodes
        if isinstance(call, ast.Call) and _is_net(call.func)
        for given in (*call.args, *(one.value for one in call.keywords))
        for node in ast.walk(given)
    )


def _is_of_mask(index: ast.expr, calls_in: Calls) -> bool:
    if isinstance(index, (ast.Compare, ast.UnaryOp)):
        return not isinstance(index, ast.UnaryOp) or isinstance(index.op, ast.Invert)
    if not isinstance(index, (ast.Name, ast.Attribute, ast.Call)):
        return False
    return MASKS.search(name_of(index)) is not None or not FOUND.isdisjoint(calls_in(index))


def _is_net(called: ast.expr) -> bool:
    """`self.net`, `self.layers[0]`, `model`."""
    while isinstance(called, ast.Subscript):
        called = called.value
    name = name_of(called)
    own = isinstance(called, ast.Attribute) and name_of(called.value) == "self"
    return (own or NETS.fullmatch(name) is not None) and not AFTER.search(name)
