"""A net that is asked once more in a step, when its update is done: an evaluation, though it has no
loop and no function of its own."""

import ast
from collections.abc import Iterator
from typing import Final

from .places import updates

BACKWARD: Final = frozenset(("backward", "manual_backward"))


def evaluates_after_update(region: ast.AST, line: int) -> bool:
    """By the source of the loop, or of the function: the line calls a net that was set to `eval()`
    last, after the backward and the update of a loss that the same net has made. A teacher's mode,
    or a target's, says nothing: it is not what was updated. (pygcn: 1.36x without it.)"""
    calls = [one for one in _own_calls(region) if one.lineno <= line]
    trains = [one.lineno for one in _own_calls(region) if _trains(one)]
    if not trains or max(trains) >= line:
        return False
    asked = [one for one in calls if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return any(_is_updated(net, calls, trains) for one in asked for net in _nets_of(one))


def _is_updated(net: str, calls: list[ast.Call], trains: list[int]) -> bool:
    learned_on = any(net in _nets_of(one) and one.lineno <= min(trains) for one in calls)
    modes = [
        (one.lineno, one.func.attr)
        for one in calls
        if isinstance(one.func, ast.Attribute)
        and one.func.attr in ("eval", "train")
        and ast.unparse(one.func.value) == net
    ]
    return learned_on and bool(modes) and max(modes)[1] == "eval"


def _nets_of(call: ast.Call) -> tuple[str, ...]:
    """`model(x)` and `model.encode(x)` may ask "model", `self.model(x)` "self.model"."""
    if isinstance(call.func, ast.Attribute):
        if call.func.attr in ("eval", "train"):
            return ()
        return ast.unparse(call.func), ast.unparse(call.func.value)
    return (ast.unparse(call.func),)


def _trains(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and (call.func.attr in BACKWARD or updates(call))


def _own_calls(region: ast.AST) -> Iterator[ast.Call]:
    """Without those of functions that are defined within it."""
    left = list(ast.iter_child_nodes(region))
    while left:
        node = left.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            left.extend(ast.iter_child_nodes(node))
