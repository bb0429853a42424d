"""A net that is asked about what the program draws anew each time, by the source: noise at a random
time, words that are dropped. What it answers cannot be stored."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...verdict.syntax import name_of
from .places import Place, holds

DRAWS: Final = re.compile(
    r"(.*_)?(rand(n|int)?(_like)?|random|bernoulli|normal|uniform|beta|poisson|multinomial|rsample"
    r"|exponential|dropout\d?d?|aug(ment(ation|er)?)?|nois[ey]|mixup|cutmix|corrupt|perturb|jitter"
    r"|erase|erasing|mask_tokens|q_sample)(_.*)?",
    re.IGNORECASE,
)
"""Whole names of functions that draw values. What is chosen or shuffled are samples."""
DEEPEST: Final = 4
"""Names behind names."""


def is_redrawn(way: Sequence[Place]) -> bool:
    """By the functions on the way to the net, that which asks it first: an argument of the call is
    drawn there, or made of what is. What a sample is picked by is no part of it."""
    return any(_draws_for(place) for place in way)


def _draws_for(place: Place) -> bool:
    asked = {one for call in _calls_at(place) for one in _names_in_arguments(call)}
    known: set[str] = set()
    for _ in range(DEEPEST):
        known |= asked
        makes = [one for one in _statements(place) if _makes_any(one, asked)]
        if any(_draws(one) for one in makes) or _are_drawn(place, makes):
            return True
        asked = {name for one in makes for name in _names(one)} - known
    return any(_draws(one) for call in _calls_at(place) for one in _arguments(call))


def _calls_at(place: Place) -> Iterator[ast.Call]:
    for node in ast.walk(place.scope):
        if isinstance(node, ast.Call) and holds(node, place.line):
            yield node


def _arguments(call: ast.Call) -> Iterator[ast.AST]:
    yield from call.args
    yield from (one.value for one in call.keywords)


def _names_in_arguments(call: ast.Call) -> Iterator[str]:
    for argument in _arguments(call):
        yield from _names(argument)


def _names(node: ast.AST) -> Iterator[str]:
    """Those that are values: no function that is called, and nothing that picks a part."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield from _names(node.func.value)
        yield from _names_in_arguments(node)
    elif isinstance(node, ast.Subscript):
        yield from _names(node.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _names(child)


def _statements(place: Place) -> Iterator[ast.stmt]:
    """Of its function, those that come before the line."""
    for node in ast.walk(place.scope):
        if isinstance(node, ast.stmt) and node.lineno <= place.line:
            yield node


def _makes_any(node: ast.stmt, names: set[str]) -> bool:
    """An assignment gives one of the names its value, or its own method changes it in place."""
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        held = [one for target in targets for one in ast.walk(target)]
        given = {one.id for one in held if isinstance(one, ast.Name)}
        return bool(given & names) and node.value is not None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Attribute) and called.attr.endswith("_"):
            return bool(set(_names(called.value)) & names)
    return False


def _are_drawn(place: Place, makes: Sequence[ast.stmt]) -> bool:
    """Whether one of these is done is drawn: `if torch.rand(()) < 0.5: x = x.flip(-1)`."""
    chosen = [one for one in _statements(place) if isinstance(one, ast.If) and _draws(one.test)]
    return any(inner in makes for one in chosen for inner in ast.walk(one))


def _draws(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return _draws(node.value)
    if isinstance(node, ast.Call) and DRAWS.fullmatch(name_of(node.func)):
        return True
    return any(_draws(child) for child in ast.iter_child_nodes(node))
