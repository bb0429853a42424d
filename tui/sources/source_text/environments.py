"""Environments in which a policy acts, by the source."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from ...verdict.syntax import name_of
from ...verdict.thresholds.samples import ENVIRONMENT_METHODS
from .places import Function, Place, holds
from .syntax_trees import Mark, once_of_each
from .value_flow import LOOP_STATEMENTS, Names, Values, gathered, reached, read, targets_of

NAMED: Final = re.compile(r"env(?!elope)|world(?!_?model)|game|gym|simulat|arena", re.IGNORECASE)
"""What an environment is called."""
ANSWERS: Final = re.compile(r"(\w+_)?(rewards?|rews?|obs|observations?)(_\w+)?|r(_t)?")
"""Whole names of what nothing else answers…"""
ENDS: Final = re.compile(r"(\w+_)?(rewards?|dones?|terminat\w+|truncat\w+)(_\w+)?")
"""…and of what a class of environments has."""
NO_ACTIONS: Final = re.compile(r"batch|logit|loss|noise|\beps|sample|output|grad")
"""What a validator, a decoder or a solver steps by."""
NETS: Final = re.compile(r"(\w+_)?(model|net|network|unet|encoder|decoder|policy|actor|critic)")


def asks_environment(statement: ast.stmt, tree: ast.Module) -> bool:
    """`obs, reward = env.step(action)`: one argument, and an answer. An optimizer's has none, that
    of a scheduler of noise, or of a decoder, more. A solver's, a beam's and a trainer's look the
    same: it is called an environment, answers as one, or was reset for what it answers then."""
    targets = targets_of(statement)
    answers = any(ANSWERS.fullmatch(name_of(one)) for each in targets for one in ast.walk(each))
    return bool(targets) and any(
        answers or NAMED.search(of) or of in _reset_for_an_answer(tree)
        for one in ast.walk(statement)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == "step"
        and len(one.args) + len(one.keywords) == 1
        for of in [ast.unparse(one.func.value)]
    )


@once_of_each
def _reset_for_an_answer(tree: ast.Module) -> frozenset[str]:
    """Names of what answers a `reset()`: `state = machine.reset()`, `states = [one.reset() …]`."""
    bound = (one for one in ast.walk(tree) if isinstance(one, (ast.Assign, ast.AnnAssign)))
    return frozenset(
        ast.unparse(one.func.value)
        for statement in bound
        for one in ast.walk(statement)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == "reset"
    ) - {"", "self"}


def frames_of_environment(way: Sequence[Place]) -> int:
    """How many of the innermost frames are an environment's own, up to the outermost function of
    its interface: these may loop too, as over the pipes to many environments."""
    found = (at for at, place in enumerate(way, 1) if _name(place) in ENVIRONMENT_METHODS)
    return max(found, default=0)


def turns_around(way: Sequence[Place]) -> set[Mark]:
    """The loop in which a stack is, and the functions up to it; an environment's own are none."""
    found = set[Mark]()
    for place in way[frames_of_environment(way) :]:
        loops = (one for one in place.around() if isinstance(one, LOOP_STATEMENTS))
        if (loop := next(loops, None)) is not None:
            return found | {place.mark(loop)}
        found.add(place.marked)
    return found


class Acting(NamedTuple):
    """A policy at work in an environment."""

    turn: Mark
    """The loop, or else the function, in which an environment answers what the net makes of its
    last answer."""
    asks: tuple[Mark, Mark] | None
    """The function that is asked for an action there, which may plan in loops of its own, and the
    one that asks: a validation may ask the same one."""


def acting(way: Sequence[Place]) -> Acting | None:
    """None where no environment answers what the innermost line makes."""
    steps = {outer for inner, outer in pairwise(way) if _name(inner) == "step"}

    def asks(statement: ast.stmt, place: Place, _: Names) -> bool:
        own = place in steps and holds(statement, place.line)
        asking = asks_environment(statement, place.tree)
        return asking and not own and not _steps_a_net(place.tree)

    found = reached(way, Values(asks))
    if found is None or not _goes_on(*found):
        return None
    place, statement = found
    loops = (one for one in place.around() if isinstance(one, LOOP_STATEMENTS))
    turn = next((one for one in loops if holds(one, statement.lineno)), place.scope)
    inner = next((one.marked for one, outer in pairwise(way) if outer is place), None)
    asked = None if inner in (None, place.marked) else (inner, place.marked)
    return Acting(place.mark(turn), asked)


def _goes_on(place: Place, asks: ast.stmt) -> bool:
    """The answer has several parts, as an observation and a reward, or the net reads it next. That
    of a counter that may end the training is neither."""
    if any(isinstance(one, (ast.Tuple, ast.List)) for one in targets_of(asks)):
        return True
    if holds(asks, place.line):
        return bool(read(asks) & gathered(asks))
    behind = (replace(place, line=asks.lineno),)
    values = Values(lambda one, *_: one is not asks and holds(one, place.line))
    return reached(behind, values) is not None


def class_of_environment(place: Place) -> Mark | None:
    """That of the method, where it answers a step by an action, can be reset, and is no net nor
    calls one, as a validator and a sampler do. It answers in several parts, or is called an
    environment, or knows rewards."""
    scope = place.scope
    if not isinstance(scope, Function) or scope.name not in ENVIRONMENT_METHODS:
        return None
    owner = next((one for one in _classes(place.tree) if scope in one.body), None)
    if owner is None or _is_net(owner) or _calls_a_net(owner):
        return None
    step = _method(owner, "step")
    if step is None or len(step.args.args) < 2 or _method(owner, "reset") is None:
        return None
    if NO_ACTIONS.search(step.args.args[1].arg):
        return None
    answers = [one.value for one in ast.walk(step) if isinstance(one, ast.Return) and one.value]
    parts = any(isinstance(one, (ast.Tuple, ast.Dict)) for one in answers)
    named = NAMED.search(owner.name) or any(map(ENDS.fullmatch, _names_in(owner)))
    return place.mark(owner) if answers and (parts or named) else None


def _calls_a_net(owner: ast.ClassDef) -> bool:
    """By the names of what it calls, as `self.model(x)`."""
    calls = (one.func for one in ast.walk(owner) if isinstance(one, ast.Call))
    return any(NETS.fullmatch(name_of(one)) for one in calls)


def _names_in(owner: ast.ClassDef) -> Iterator[str]:
    for one in ast.walk(owner):
        if isinstance(one, ast.arg):
            yield one.arg
        elif isinstance(one, (ast.Name, ast.Attribute)):
            yield name_of(one)


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
