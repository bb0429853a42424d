"""What is done in a step when its update is done: a net that is asked once more, which is an
evaluation, though it has no loop and no function of its own; and what no training learns from."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...verdict.syntax import name_of
from .places import LOOPS, NO_OPTIMIZER, Place, enclosing, updates
from .training_values import is_own, learned_from, learners
from .value_flow import DEFINITIONS, LOOP_STATEMENTS, blocks

BACKWARD: Final = frozenset(("backward", "manual_backward"))
OPTIMIZERS: Final = re.compile(r"(^|[._])opt|optim|scaler", re.IGNORECASE)
"""What an optimizer is called, and what takes its step: `scaler.step(optimizer)`."""


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


def is_beside_training(way: Sequence[Place]) -> bool:
    """The innermost line is at work when the update around it is made, and no training learns from
    what it makes: a check of all parameters, a state that is kept. A batch for the next step, or
    its first loss, is learned from."""
    for at, place in enumerate(way):
        behind = _is_behind(place)
        if behind is not None:
            around = (one for outer in way[at:] for one in outer.around())
            if not (behind and any(isinstance(one, LOOPS) for one in around)):
                return False  # what a script does in the end is none of its steps'
            return not any(learned_from(way[inner:]) for inner in range(at + 1))
    return False


def _is_behind(place: Place) -> bool | None:
    """In the function around it; None where that trains nothing."""
    around = [one for one in enclosing(place.scope, place.line) if isinstance(one, ast.stmt)]
    behind = None
    for parent, child in reversed(list(zip((place.scope, *around), around, strict=False))):
        block = next((one for one in blocks(parent) if child in one), [child])
        at = block.index(child)
        if any(_holds_training(one, place.tree) for one in block[at:]):
            return False
        if any(_holds_update(one, place.tree) for one in block[:at]):
            behind = True
        if behind and isinstance(parent, LOOP_STATEMENTS):
            break
    return behind


def _holds_training(statement: ast.stmt, tree: ast.Module) -> bool:
    """Whatever object it is that learns by a name of this file's."""
    known = learners(tree)
    return any(
        _trains(one) or _takes_step(one) or name_of(one.func) in known
        for one in _calls_in(statement)
    )


def _holds_update(statement: ast.stmt, tree: ast.Module) -> bool:
    """Or calls a function of the same file that holds one."""
    known = learners(tree)
    return any(
        _takes_step(one)
        or (
            name_of(one.func) in known
            and (isinstance(one.func, ast.Name) or is_own(one.func))
            and any(map(_takes_step, _own_calls(known[name_of(one.func)])))
        )
        for one in _calls_in(statement)
    )


def _takes_step(call: ast.Call) -> bool:
    """An optimizer's, also with a closure, or through what scales its gradients."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    of = ast.unparse(call.func.value)
    scaled = OPTIMIZERS.search(of) is not None and not NO_OPTIMIZER.search(of)
    return updates(call) or scaled


def _calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    return iter(()) if isinstance(statement, DEFINITIONS) else _own_calls(statement)
