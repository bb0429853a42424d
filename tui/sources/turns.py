"""What a turn of a loop makes of its part, and what it hands to the next turn, by its text."""

import ast
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .source_places import Function

CHANGES: Final = frozenset((*dir(list), *dir(deque), *dir(dict), *dir(set)))
"""What is called of a container changes it; of a tensor what ends in "_"."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Of a loop: names of what changes from turn to turn, and of what a turn hands to the next."""

    names: set[str]
    carried: set[str]


@dataclass(frozen=True, slots=True)
class Made:
    """Of a statement: what it binds, and from what, by their names: `h`, `self.h`."""

    names: set[str]
    read: set[str]
    keeps: bool = False
    """What was there stays a part of it: `x += …`, `states.append(…)`."""


def made_from(body: Sequence[ast.AST], parts: set[str]) -> set[str]:
    """What is made from a part is a part."""
    known = set(parts)
    for one in _statements(body):
        if one.read & known and not one.keeps:
            known |= one.names
    return known


def carried_to_next(body: Sequence[ast.AST], parts: set[str]) -> set[str]:
    """Names that a turn reads before it has bound them, and binds for the next, with all that is
    made of them; `parts` are bound as it begins. What sums up, as `loss = loss + …` does, is read
    by nobody."""
    made = _statements(body)
    every = set[str]().union(*(one.names for one in made))
    fresh = set(parts)
    carried: set[str] = set()
    for one in made:
        carried |= (one.read & every) - fresh
        if one.keeps:
            carried |= one.names - fresh
        else:
            fresh |= one.names
    for _ in made:
        more = {name for one in made if one.read & carried and not one.keeps for name in one.names}
        if more <= carried:
            break
        carried |= more
    return carried


def keeps_state(scope: Function | ast.Module) -> bool:
    """A function that reads an attribute and binds it for its next call: `self.h = f(x, self.h)`.
    Counters, and what is only gathered, are not read."""
    if isinstance(scope, ast.Module):
        return False
    read = set[str]().union(*(one.read for one in _statements(scope.body)))
    return any(name.startswith("self.") for name in carried_to_next(scope.body, set()) & read)


def names_in(node: ast.AST) -> set[str]:
    """What it reads: `self.h.data` reads "self", "self.h" and "self.h.data"."""
    loaded = (
        one
        for one in ast.walk(node)
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load)
    )
    return {_path(one) for one in loaded} - {""}


def read_by(statement: ast.AST) -> set[str]:
    """`loss = loss + …` reads what it adds alone, as `loss += …` does, and `losses.append(…)`."""
    if isinstance(statement, ast.AugAssign):
        return names_in(statement.value)
    if (changed := _changed_by(statement)) is not None:
        return set[str]().union(*map(names_in, (*changed.args, *changed.keywords)))
    if not isinstance(statement, ast.Assign):
        return names_in(statement)
    sums = statement.value
    if isinstance(sums, ast.BinOp) and isinstance(sums.op, (ast.Add, ast.Sub)):
        to = [ast.unparse(one) for one in statement.targets]
        for one, other in ((sums.left, sums.right), (sums.right, sums.left)):
            if [ast.unparse(one)] == to and _path(one) not in names_in(other):
                return names_in(other)
    return names_in(sums)


def _statements(body: Sequence[ast.AST]) -> list[Made]:
    """Those that bind or change something, in their order; `count += 1` is known in advance."""
    inner = [one for each in body for one in ast.walk(each) if isinstance(one, ast.stmt)]
    found = []
    for one in sorted(inner, key=lambda each: (each.lineno, each.col_offset)):
        if isinstance(one, ast.Assign):
            found.append(Made(set[str]().union(*map(_bound, one.targets)), read_by(one)))
        elif isinstance(one, ast.AnnAssign) and one.value is not None:
            found.append(Made(_bound(one.target), names_in(one.value)))
        elif isinstance(one, ast.AugAssign) and not isinstance(one.value, ast.Constant):
            found.append(Made(_bound(one.target), read_by(one), keeps=True))
        elif (changed := _changed_by(one)) is not None and isinstance(changed.func, ast.Attribute):
            found.append(Made({_path(changed.func.value)} - {""}, read_by(one), keeps=True))
    return found


def _changed_by(statement: ast.AST) -> ast.Call | None:
    """The call, where it changes what it is called of."""
    called = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute):
        name = called.func.attr
        if name in CHANGES or (name.endswith("_") and not name.startswith("_")):
            return called
    return None


def _bound(target: ast.expr) -> set[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return set[str]().union(*map(_bound, target.elts))
    return {_path(target.value if isinstance(target, ast.Starred) else target)} - {""}


def _path(node: ast.AST) -> str:
    """ "self.h" of `self.h[0]`; "" of what is no name."""
    names: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(names))) if isinstance(node, ast.Name) else ""
