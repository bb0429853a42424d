"""Self-play, by the source: moves are made in a game, or what is met is kept where a training draws
its batches from; and a net that is asked for one state at a time."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...verdict.syntax import name_of
from .environments import NAMED
from .places import Function, Place, enclosing, functions_in, holds
from .training_values import LEARNING, is_own, learners
from .updates_elsewhere import trains_by_name
from .value_flow import Names, hands_out, name_used, reached, read, stored, through

KEEPS: Final = frozenset(("append", "appendleft", "extend", "push", "add", "store", "put"))
STORES: Final = re.compile(
    r"replay|memory|buffer|experience|transition|trajector|episode|rollout|self_?play|play_data",
    re.IGNORECASE,
)
"""What is called so keeps what was met; a training may draw from labels that a net gave as well."""
GAMES: Final = re.compile(rf"{NAMED.pattern}|(?<![a-z])board", re.IGNORECASE)
MOVES: Final = re.compile(
    r"(get_?)?next_?state|((make|do|apply|take|push)_?)?(move|action)|play(_?(move|action))?",
    re.IGNORECASE,
)
"""Whole names of what a game is asked for, by a move."""
NUMBERS: Final = frozenset(("item", "int", "float"))


def plays(way: Sequence[Place]) -> bool:
    """One of the functions below the one that trains does either. A validation keeps numbers, or
    what no training draws from."""
    for at, place in enumerate(way):
        scope = place.scope
        if not isinstance(scope, Function) or scope.name in learners(place.tree):
            return False
        if trains_by_name(scope):
            return False
        for call in _calls_in(scope):
            if _is_move(call) or (_keeps_parts(call) and _is_drawn_from(call, way[at:])):
                return True
    return False


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _is_move(call: ast.Call) -> bool:
    if not (isinstance(call.func, ast.Attribute) and call.args):
        return False
    game = name_of(call.func.value)
    return MOVES.fullmatch(call.func.attr) is not None and GAMES.search(game) is not None


def _keeps_parts(call: ast.Call) -> bool:
    """More than one thing, as a state, an action and a reward are."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in KEEPS and call.args):
        return False
    first = call.args[0]
    parts = isinstance(first, (ast.Tuple, ast.List)) and len(first.elts) > 1
    made = isinstance(first, ast.Call) and len(first.args) + len(first.keywords) > 1
    return parts or made or len(call.args) > 1 or call.func.attr == "extend"


def _is_drawn_from(call: ast.Call, way: Sequence[Place]) -> bool:
    """By a training, from what the call keeps it in: a name of the innermost function, which those
    around it may have handed in."""
    assert isinstance(call.func, ast.Attribute)
    name = name_used(call.func.value)
    named = False
    for place, outer in zip(way, (*way[1:], None), strict=True):
        named = named or STORES.search(name) is not None
        if named and _trains_on(name, place):
            return True
        name = "" if outer is None or name.startswith("self.") else _given(name, place, outer)
        if not name:
            return False
    return False


def _trains_on(name: str, place: Place) -> bool:
    """On what that name holds there: further on in the function, in another of the file that knows
    the name, or in one that is handed what this one draws."""

    def makes(_: ast.AST, __: Place) -> Names:
        return {name}

    if (
        not name.startswith("self.")
        and reached((place,), replace(LEARNING, makes=makes)) is not None
    ):
        return True
    for function in functions_in(place.tree):
        if name not in read(function):
            continue
        inside = replace(place, scope=function)
        found = through(function.body, {name}, inside, LEARNING)
        if found is not None and (not hands_out(found) or _is_learned_from(function, place)):
            return True
    return False


def _is_learned_from(function: Function, place: Place) -> bool:
    """What it returns to another function of the file."""
    return any(
        reached((replace(place, scope=caller, line=call.lineno),), LEARNING) is not None
        for caller in functions_in(place.tree)
        for call in _calls_in(caller)
        if name_of(call.func) == function.name
        and (isinstance(call.func, ast.Name) or is_own(call.func))
    )


def _given(name: str, place: Place, outer: Place) -> str:
    """What the caller calls the same: the parameter of that name, or what is no name of the
    function's own; "" of others."""
    if not isinstance(place.scope, Function):
        return ""
    own = [one.arg for one in (*place.scope.args.posonlyargs, *place.scope.args.args)]
    if name not in own:
        return "" if name in stored(place.scope) else name
    for call in _calls_in(outer.scope):
        if name_of(call.func) != place.scope.name or not holds(call, outer.line):
            continue
        of_object = isinstance(call.func, ast.Attribute) and own[:1] == ["self"]
        at = own.index(name) - of_object
        named = (one.value for one in call.keywords if one.arg == name)
        given = next(named, call.args[at] if 0 <= at < len(call.args) else None)
        return "" if given is None else name_used(given)
    return ""


def asks_for_one(place: Place) -> bool:
    """The net is given a batch of one there, and one number is read of what it says. (Of time steps
    a first dimension of one says nothing.)"""
    around = [one for one in enclosing(place.scope, place.line) if isinstance(one, ast.stmt)]
    if not around:
        return False
    asks = around[-1]
    assigned = (one for one in ast.walk(place.scope) if isinstance(one, ast.Assign))
    before = [one for one in assigned if one.lineno < place.line and _holds_row(one)]
    rows = set[str]().union(*map(stored, before)) & read(asks)
    behind = (one for one in _calls_in(place.scope) if one.lineno >= place.line)
    return bool(rows or _holds_row(asks)) and any(name_of(one.func) in NUMBERS for one in behind)


def _holds_row(node: ast.AST) -> bool:
    return any(map(_is_row, ast.walk(node)))


def _is_row(node: ast.AST) -> bool:
    """`x.unsqueeze(0)`, `x[None]`, `np.expand_dims(x, 0)`, `torch.tensor([x])`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=[ast.Constant(value=0)]):
            return True
        case ast.Call(args=[_, ast.Constant(value=0)]) if name_of(node.func) == "expand_dims":
            return True
        case ast.Call(args=[ast.List(elts=[_]), *_]):
            return name_of(node.func) in ("tensor", "as_tensor", "FloatTensor", "array", "asarray")
        case ast.Subscript(slice=ast.Constant(value=None)):
            return True
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Constant(value=None), *_])):
            return True
    return False
