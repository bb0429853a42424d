"""A net that runs without learning, by the source of the functions that lead to it: without
gradients, or in `eval()` mode, and in no step of a training."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...verdict.syntax import name_of
from .environments import frames_of_environment
from .modes import asks, modes_set
from .places import LOOPS, Function, Place, learns
from .syntax_trees import Mark
from .training_values import feeds_training
from .updates_elsewhere import may_be_trained_on

WITHOUT_GRAD: Final = frozenset(("no_grad", "inference_mode", "set_grad_enabled"))


def evaluation_of(way: Sequence[Place]) -> list[Mark]:
    """The loop of an evaluation, and the functions that it calls there: without gradients or in
    `eval()` mode, and it does not train. A net that is asked in every step of a training, as a
    teacher or a target, is part of that step."""
    off = (index for index, place in enumerate(way) if is_off(place, calls_net=not index))
    at = next(off, None)
    if at is None:
        return []
    if any(isinstance(place.scope, Function) and learns(place.scope) for place in way[:at]):
        return []  # the loop of a script over epochs calls it, beside an evaluation
    if any(_may_train(way, index, at, way[index].scope) for index in range(at)):
        return []
    functions: list[Mark] = []
    for index in range(at, len(way)):
        place, inner = way[index], way[index - 1] if index else None
        loop = _calm_loop(place)
        if loop is not None:
            feeds = learns(loop) or feeds_training(way[index:], loop, inner)
            trains = feeds or _may_train(way, index, at, loop)
            return [] if trains else [place.mark(loop), *functions]
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return []
        if _may_train(way, index, at, place.scope):
            return []
        functions.append(place.marked)
    return []


def _may_train(way: Sequence[Place], index: int, off: int, region: ast.AST) -> bool:
    """Of what the net answers, in a region of that frame where gradients are on. In the mode of
    `eval()` alone, up to the frame that is `off` by it, whatever takes the loss may train; a
    teacher's answers, and what an evaluation has found, are trained on by what is named so."""
    place = way[index]
    by_mode = not _without_gradients(way[off])
    if index < off and not by_mode:
        return False

    def with_gradients(statement: ast.stmt) -> bool:
        return not _without_gradients(replace(place, line=statement.lineno))

    by_name = index > off or not by_mode
    return may_be_trained_on(way[: index + 1], region, with_gradients, by_name)


def _calm_loop(place: Place) -> ast.AST | None:
    """The innermost loop that takes no gradients; else the outermost. An attack walks along the
    gradients of a net in `eval()` mode, for whatever is around its loop: TRADES for a training."""
    loops = [one for one in place.around() if isinstance(one, LOOPS)]
    calm = [one for one in loops if not _takes_gradients(one)]
    return calm[0] if calm else loops[-1] if len(loops) > 1 else None


def _takes_gradients(loop: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) and name_of(one.func) == "grad" for one in ast.walk(loop))


def turns_gradients_off(context: ast.AST) -> bool:
    """The context of a `with` does, as `torch.no_grad()`."""
    return isinstance(context, ast.Call) and _without_grad(context)


def is_validation(place: Place) -> bool:
    """A function that is decorated without gradients and sets a net to `eval()`: nothing else
    does both."""
    scope = place.scope
    if isinstance(scope, ast.Module) or not any(map(_without_grad, scope.decorator_list)):
        return False
    return any(one.evaluates for one in modes_set(scope))


def loops_around(way: Sequence[Place]) -> Iterator[Mark]:
    """The innermost loop of each function on the way up to what trains. In one of them an
    evaluation's batches are fetched, or an environment acts, though gradients are not off there; a
    net's own loop over its layers may lie below it."""
    for place in way:
        loop = next((one for one in place.around() if isinstance(one, LOOPS)), None)
        if loop is not None and learns(loop):
            return
        if loop is not None:
            yield place.mark(loop)
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return


def loop_of_actions(way: Sequence[Place]) -> Mark | None:
    """That in which an environment is called; None where none is."""
    inner = frames_of_environment(way)
    return next(loops_around(way[inner:]), None) if inner else None


def is_off(place: Place, calls_net: bool = False) -> bool:
    """Gradients are off at the line, or the net that it calls was set to `eval()` last before it.
    A function that is called there may call any net, unless it is told which; `calls_net`: the line
    itself calls one."""
    if (without := _without_gradients(place)) is not None:
        return without
    modes = [one for one in modes_set(place.scope) if one.line < place.line]
    last = {one.net: one.evaluates for one in modes}
    nets = [net for net in last if asks(place, net, calls_net)]
    if nets:
        return all(last[net] for net in nets)
    return bool(modes) and not calls_net and modes[-1].evaluates


def _without_gradients(place: Place) -> bool | None:
    """None where neither a `with` nor a decorator says so."""
    if isinstance(place.scope, Function) and any(map(_without_grad, place.scope.decorator_list)):
        return True
    for one in place.around():
        if isinstance(one, (ast.With, ast.AsyncWith)):
            for item in one.items:
                called = item.context_expr
                if isinstance(called, ast.Call) and name_of(called.func) in WITHOUT_GRAD:
                    return _without_grad(called)
    return None


def turns_gradients_on(scope: ast.AST) -> bool:
    """A function's decorators do, whatever calls it."""
    return isinstance(scope, Function) and any(map(_with_grad, scope.decorator_list))


def _with_grad(decorator: ast.expr) -> bool:
    """With or without its brackets."""
    if not isinstance(decorator, ast.Call):
        return name_of(decorator) == "enable_grad"
    return name_of(decorator.func) == "enable_grad" or _turned_on(decorator)


def _without_grad(context: ast.expr) -> bool:
    """A context or a decorator, with or without its brackets, that turns gradients off."""
    if not isinstance(context, ast.Call):
        return name_of(context) in WITHOUT_GRAD
    return name_of(context.func) in WITHOUT_GRAD and not _turned_on(context)


def _turned_on(called: ast.Call) -> bool:
    """`set_grad_enabled(True)`, or by a value that only the run knows."""
    if name_of(called.func) != "set_grad_enabled":
        return False
    given = called.args[0] if called.args else None
    return not (isinstance(given, ast.Constant) and given.value is False)
