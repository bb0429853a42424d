"""A loop in the user's source that calls the net for one part of a batch after the other."""

import ast
import builtins
from collections.abc import Sequence
from typing import Final

from .source_tree import LOOPS, Comprehension, Place, holds, learns, name_of

NO_NETS: Final = frozenset((*dir(builtins), *dir(dict), *dir(list)))
"""What is called so in a list beside the net's call, `net(x, [int(one) for one in nodes])`, is not
the net."""


def in_parts(way: Sequence[Place]) -> str:
    """The innermost frame with such a loop; "" once a frame on the way there trains."""
    for place in way:
        for loop in place.around():
            if isinstance(loop, LOOPS) and not learns(loop) and _one_by_one(loop, place.line):
                function, _, where = place.frame.partition(" (")
                return f"{function.partition('.<locals>')[0]} ({where}"
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return ""
    return ""


def _one_by_one(loop: ast.AST, line: int) -> bool:
    """Something is called there that does not change from turn to turn, with what does, and with
    nothing that an earlier turn has made: the turns could be one call."""
    if isinstance(loop, Comprehension):
        parts = {name for one in loop.generators for name in _bound(one.target)}
        body: Sequence[ast.AST] = [loop]
        carried: set[str] = set()
    elif isinstance(loop, (ast.For, ast.AsyncFor)):
        if not any(holds(one, line) for one in loop.body):
            return False
        parts, body = _bound(loop.target), loop.body
        carried = _carried(body, parts)
        parts = _following(body, parts)
    else:
        return False
    for each in body:
        for one in ast.walk(each):
            if isinstance(one, ast.Call) and holds(one, line) and name_of(one.func) not in NO_NETS:
                given = set[str]().union(*map(_read, (*one.args, *one.keywords)))
                if given & parts and not _read(one.func) & parts and not given & carried:
                    return True
    return False


def _bound(target: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}


def _read(node: ast.AST) -> set[str]:
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }


def _assigned(body: Sequence[ast.AST]) -> list[tuple[set[str], set[str]]]:
    """Of each assignment, in order: what it binds, and from what."""
    found = []
    for each in body:
        for one in ast.walk(each):
            if isinstance(one, ast.Assign):
                found.append((set[str]().union(*map(_bound, one.targets)), _read(one.value)))
            elif isinstance(one, ast.AnnAssign) and one.value is not None:
                found.append((_bound(one.target), _read(one.value)))
    return found


def _following(body: Sequence[ast.AST], parts: set[str]) -> set[str]:
    """What is made from a part is a part."""
    known = set(parts)
    for bound, read in _assigned(body):
        if read & known:
            known |= bound
    return known


def _carried(body: Sequence[ast.AST], parts: set[str]) -> set[str]:
    """Names that a turn reads before it has bound them, and binds for the next; `parts` are bound
    as it begins. What sums up, as `loss += …`, is read by nobody."""
    fresh = set(parts)
    carried: set[str] = set()
    every = set[str]().union(*(bound for bound, _ in _assigned(body)))
    for bound, read in _assigned(body):
        carried |= (read & every) - fresh
        fresh |= bound
    return carried
