"""Whether a training learns from what a net answers, by the source."""

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from ...verdict.thresholds.samples import ENVIRONMENT_METHODS
from .environments import asks_environment
from .places import Function, Place, holds, learns, name_of
from .value_flow import Reached, reached

KEPT_FILES: Final = 8
"""As many as their trees are kept."""


def learned_from(way: Sequence[Place], loop: ast.AST | None = None) -> Reached | None:
    """Where a training learns from what the innermost line makes, or all that `loop` around it
    makes: tokens that a policy samples, outputs of several teachers."""
    return reached(way, _trains, loop)


def feeds_training(way: Sequence[Place], loop: ast.AST, inner: Place | None) -> bool:
    """What a loop without gradients makes is learned from, in its own function or in one that
    called it. Not said of a rollout, in which an environment steps, nor of a net's own `step`."""
    own = inner is not None and isinstance(inner.scope, Function) and inner.scope.name == "step"
    place = way[0]
    for one in _statements(loop, place.tree):
        if asks_environment(one) and not (own and holds(one, place.line)):
            return False
    return learned_from(way, loop) is not None


def _statements(loop: ast.AST, tree: ast.Module) -> Iterator[ast.stmt]:
    """In a loop, and in the functions of the same file that it calls."""
    called = {name_of(one.func) for one in ast.walk(loop) if isinstance(one, ast.Call)}
    functions = (one for one in ast.walk(tree) if isinstance(one, Function) and one.name in called)
    for node in (loop, *functions):
        yield from (one for one in ast.walk(node) if isinstance(one, ast.stmt))


def _trains(statement: ast.stmt, place: Place) -> bool:
    """It learns, or calls a function of the same file that does."""
    calls = (one.func for one in ast.walk(statement) if isinstance(one, ast.Call))
    called = {name_of(one) for one in calls if isinstance(one, ast.Name) or _is_own(one)}
    return learns(statement) or not called.isdisjoint(_learners(place.tree))


def _is_own(called: ast.expr) -> bool:
    """A method of the same object; `meter.update(loss)` has but the name of the agent's."""
    return isinstance(called, ast.Attribute) and name_of(called.value) == "self"


@lru_cache(maxsize=KEPT_FILES)
def _learners(tree: ast.Module) -> frozenset[str]:
    functions = (one for one in ast.walk(tree) if isinstance(one, Function))
    return frozenset(one.name for one in functions if learns(one)) - {*ENVIRONMENT_METHODS}
