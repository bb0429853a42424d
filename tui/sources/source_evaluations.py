"""A net that runs without learning, by the source of the functions that lead to it: without
gradients, or in `eval()` mode, and in no step of a training."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from .after_update import follows_learning
from .source_places import FUNCTIONS, LOOPS, Function, Place, learns, name_of

WITHOUT_GRAD: Final = frozenset(("no_grad", "inference_mode", "set_grad_enabled"))
Block = ast.With | ast.AsyncWith


def evaluation_of(way: Sequence[Place]) -> list[ast.AST]:
    """The loop of an evaluation, and the functions that it calls there: without gradients or in
    `eval()` mode, and it does not train. A net that is asked in every step of a training, as a
    teacher or a target, is part of that step."""
    at = next((index for index, place in enumerate(way) if is_off(place)), None)
    if any(isinstance(place.scope, Function) and learns(place.scope) for place in way[:at]):
        return []  # the loop of a script over epochs calls it, beside an evaluation
    functions: list[ast.AST] = []
    for place in way[at:] if at is not None else ():
        loop = next((one for one in place.around() if isinstance(one, LOOPS)), None)
        if loop is not None and not learns(loop):
            return [loop, *functions]
        if loop is not None or isinstance(place.scope, ast.Module) or learns(place.scope):
            block = off_block_of(place)
            around = place.scope if loop is None else loop
            return [block, *functions] if block and follows_learning(around, block) else []
        functions.append(place.scope)
    return []


def is_validation(place: Place) -> bool:
    """A function that is decorated without gradients and sets a net to `eval()`: nothing else
    does both."""
    scope = place.scope
    if isinstance(scope, ast.Module) or not any(map(_without_grad, scope.decorator_list)):
        return False
    called = (one.func for one in _own_nodes(scope) if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr == "eval" for one in called)


def loop_around(way: Sequence[Place]) -> ast.AST | None:
    """The innermost loop on the way that does not train, in which an evaluation's batches are
    fetched, or an environment acts, though gradients are not off there."""
    for place in way:
        loop = next((one for one in place.around() if isinstance(one, LOOPS)), None)
        if loop is not None:
            return None if learns(loop) else loop
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return None
    return None


def is_off(place: Place) -> bool:
    """Gradients are off at the line, or a net was set to `eval()` last before it."""
    if isinstance(place.scope, Function) and any(map(_without_grad, place.scope.decorator_list)):
        return True
    if (block := _switching_block(place.around())) is not None:
        return _turns_off(block)
    modes = [
        (call.lineno, call.func.attr)
        for call in _own_nodes(place.scope)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("eval", "train")
        and call.lineno < place.line
    ]
    return bool(modes) and max(modes)[1] == "eval"


def off_block_of(place: Place) -> Block | None:
    """The `with` around the line that turns gradients off."""
    block = _switching_block(place.around())
    return block if block is not None and _turns_off(block) else None


def _own_nodes(scope: Function | ast.Module) -> Iterator[ast.AST]:
    """Without what functions within it do when they are called."""
    left: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            left.extend(ast.iter_child_nodes(node))


def _switching_block(around: Iterable[ast.AST]) -> Block | None:
    """The innermost `with` that turns gradients off, or on, among the nodes around a line, which
    come innermost first."""
    for one in around:
        if isinstance(one, Block) and _switches(one):
            return one
    return None


def _turns_off(block: Block) -> bool:
    """Such a `with` turns them off."""
    return _without_grad(_switches(block)[0])


def _without_grad(context: ast.expr) -> bool:
    """A context or a decorator, with or without its brackets, that turns gradients off."""
    if not isinstance(context, ast.Call):
        return name_of(context) in WITHOUT_GRAD
    return name_of(context.func) in WITHOUT_GRAD and not _turned_on(context)


def _switches(block: Block) -> list[ast.Call]:
    contexts = (item.context_expr for item in block.items)
    return [
        one for one in contexts if isinstance(one, ast.Call) and name_of(one.func) in WITHOUT_GRAD
    ]


def _turned_on(called: ast.Call) -> bool:
    """`set_grad_enabled(True)`, or by a value that only the run knows."""
    if name_of(called.func) != "set_grad_enabled":
        return False
    given = called.args[0] if called.args else None
    return not (isinstance(given, ast.Constant) and given.value is False)
