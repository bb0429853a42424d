"""Environments in which a policy acts, by the source."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ...verdict.thresholds.samples import ENVIRONMENT_METHODS
from .places import Function, Place, holds, name_of
from .value_flow import LOOP_STATEMENTS, Names, Values, gathered, reached, read


def asks_environment(statement: ast.stmt) -> bool:
    """`obs, reward = env.step(action)`: one argument, and an answer. An optimizer's has none, that
    of a scheduler of noise, or of a decoder, more."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == "step"
        and len(one.args) + len(one.keywords) == 1
        for one in ast.walk(statement)
    )


def frames_of_environment(way: Sequence[Place]) -> int:
    """How many of the innermost frames are an environment's own, up to the outermost function of
    its interface: these may loop too, as over the pipes to many environments."""
    found = (at for at, place in enumerate(way, 1) if _name(place) in ENVIRONMENT_METHODS)
    return max(found, default=0)


def turns_around(way: Sequence[Place]) -> set[ast.AST]:
    """The loop in which a stack is, and the functions up to it; an environment's own are none."""
    found = set[ast.AST]()
    for place in way[frames_of_environment(way) :]:
        loops = (one for one in place.around() if isinstance(one, LOOP_STATEMENTS))
        if (loop := next(loops, None)) is not None:
            return found | {loop}
        found.add(place.scope)
    return found


def acting_turn(way: Sequence[Place]) -> ast.AST | None:
    """The loop, or else the function, in which an environment answers what the net makes of its
    last answer."""
    steps = {outer for inner, outer in pairwise(way) if _name(inner) == "step"}

    def asks(statement: ast.stmt, place: Place, _: Names) -> bool:
        own = place in steps and holds(statement, place.line)
        return asks_environment(statement) and not own and not _steps_a_net(place.tree)

    found = reached(way, Values(asks))
    if found is None or not _goes_on(*found):
        return None
    place, statement = found
    loops = (one for one in place.around() if isinstance(one, LOOP_STATEMENTS))
    return next((one for one in loops if holds(one, statement.lineno)), place.scope)


def _goes_on(place: Place, asks: ast.stmt) -> bool:
    """The answer has several parts, as an observation and a reward, or the net reads it next. That
    of a counter that may end the training is neither."""
    targets = asks.targets if isinstance(asks, ast.Assign) else []
    if any(isinstance(one, (ast.Tuple, ast.List)) for one in targets):
        return True
    if holds(asks, place.line):
        return bool(read(asks) & gathered(asks))
    behind = (replace(place, line=asks.lineno),)
    values = Values(lambda one, *_: one is not asks and holds(one, place.line))
    return reached(behind, values) is not None


def is_environment(place: Place) -> bool:
    """A method of a class that answers a step by an action and can be reset, and is no net."""
    scope = place.scope
    if not isinstance(scope, Function) or scope.name not in ENVIRONMENT_METHODS:
        return False
    owner = next((one for one in _classes(place.tree) if scope in one.body), None)
    if owner is None or _is_net(owner):
        return False
    step = _method(owner, "step")
    if step is None or len(step.args.args) < 2 or _method(owner, "reset") is None:
        return False
    return any(isinstance(one, ast.Return) and one.value for one in ast.walk(step))


def _name(place: Place) -> str:
    return place.scope.name if isinstance(place.scope, Function) else ""


def _steps_a_net(tree: ast.Module) -> bool:
    """All of the file's classes with such a method are nets, as a decoder."""
    owners = [one for one in _classes(tree) if _method(one, "step") is not None]
    return bool(owners) and all(map(_is_net, owners))


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (one for one in ast.walk(tree) if isinstance(one, ast.ClassDef))


def _is_net(owner: ast.ClassDef) -> bool:
    return any(name_of(base).endswith("Module") for base in owner.bases)


def _method(owner: ast.ClassDef, name: str) -> Function | None:
    methods = (one for one in owner.body if isinstance(one, Function))
    return next((one for one in methods if one.name == name), None)
