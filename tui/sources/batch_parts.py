"""A loop over the parts of a batch that could be one call: by the text of the user's functions."""

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from .source_places import Comprehension, Place, enclosing, holds, learns, name_of

NO_NETS: Final = frozenset((*dir(builtins), *dir(dict), *dir(list)))
"""What is called so in a list beside the net's call, `net(x, [int(one) for one in nodes])`, is not
the net."""
OF_A_NET: Final = frozenset(
    (
        *("parameters", "named_parameters", "buffers", "named_buffers", "state_dict"),
        *("param_groups", "children", "modules", "named_modules"),
    )
)
"""Names of what a net or an optimizer is made of: its parts differ in shape, or in what they do."""


def in_parts(way: Sequence[Place], one_by_one: "Callable[[ast.AST, Parts, int], bool]") -> str:
    """The innermost frame with such a loop; "" once a frame on the way there trains."""
    for place in way:
        for loop in place.around():
            parts = _parts_of(loop, place.line)
            if parts is not None and not learns(loop) and one_by_one(loop, parts, place.line):
                function, _, where = place.frame.partition(" (")
                return f"{function.partition('.<locals>')[0]} ({where}"
        if isinstance(place.scope, ast.Module) or learns(place.scope):
            return ""
    return ""


@dataclass(frozen=True, slots=True)
class Parts:
    """Of a loop: names of what changes from turn to turn, and of what a turn hands to the next."""

    names: set[str]
    carried: set[str]


def _parts_of(loop: ast.AST, line: int) -> Parts | None:
    """None where the line is in no loop over something."""
    if isinstance(loop, Comprehension):
        return Parts({name for one in loop.generators for name in _bound(one.target)}, set())
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return None
    if not any(holds(one, line) for one in loop.body):
        return None
    parts = _bound(loop.target)
    return Parts(_following(loop.body, parts), _carried(loop.body, parts))


def calls_with_part(loop: ast.AST, parts: Parts, line: int) -> bool:
    """Something is called there that does not change from turn to turn, with what does, and with
    nothing that an earlier turn has made: the turns could be one call."""
    body = loop.body if isinstance(loop, (ast.For, ast.AsyncFor)) else [loop]
    for one in (one for each in body for one in ast.walk(each)):
        if isinstance(one, ast.Call) and holds(one, line) and name_of(one.func) not in NO_NETS:
            given = set[str]().union(*map(_read, (*one.args, *one.keywords)))
            fixed = not _read(one.func) & parts.names
            if fixed and given & parts.names and not given & parts.carried:
                return True
    return False


def reads_part(loop: ast.AST, parts: Parts, line: int) -> bool:
    """What is computed there is of a part, and of nothing that an earlier turn has made: the turns
    could be one expression of tensors. A part that is called, as the layers of a list are, is
    another function in each turn."""
    within = [one for one in enclosing(loop, line) if isinstance(one, ast.stmt)]
    at = within[-1] if within else loop
    if any(isinstance(one, ast.Call) and _is_part(one.func, parts) for one in ast.walk(at)):
        return False
    if any(name_of(one) in OF_A_NET for each in _sources(loop) for one in ast.walk(each)):
        return False
    read = _read_by(at)
    return bool(read & parts.names) and not read & parts.carried


def _sources(loop: ast.AST) -> list[ast.expr]:
    """What it goes over."""
    if isinstance(loop, Comprehension):
        return [one.iter for one in loop.generators]
    return [loop.iter] if isinstance(loop, (ast.For, ast.AsyncFor)) else []


def _is_part(called: ast.expr, parts: Parts) -> bool:
    if isinstance(called, (ast.Subscript, ast.Call)):
        return bool(_read(called) & parts.names)
    return isinstance(called, ast.Name) and called.id in parts.names


def _bound(target: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}


def _read(node: ast.AST) -> set[str]:
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }


def _read_by(statement: ast.AST) -> set[str]:
    """`loss = loss + …` reads what it adds alone, as `loss += …` does."""
    if not isinstance(statement, ast.Assign):
        return _read(statement)
    sums = statement.value
    if isinstance(sums, ast.BinOp) and isinstance(sums.op, (ast.Add, ast.Sub)):
        to = [ast.unparse(one) for one in statement.targets]
        for one, other in ((sums.left, sums.right), (sums.right, sums.left)):
            if [ast.unparse(one)] == to and not _read(one) & _read(other):
                return _read(other)
    return _read(sums)


def _assigned(body: Sequence[ast.AST]) -> list[tuple[set[str], set[str]]]:
    """Of each assignment, in order: what it binds, and from what."""
    found = []
    for each in body:
        for one in ast.walk(each):
            if isinstance(one, ast.Assign):
                found.append((set[str]().union(*map(_bound, one.targets)), _read_by(one)))
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
    as it begins. What sums up, as `loss += …` does, is read by nobody."""
    fresh = set(parts)
    carried: set[str] = set()
    every = set[str]().union(*(bound for bound, _ in _assigned(body)))
    for bound, read in _assigned(body):
        carried |= (read & every) - fresh
        fresh |= bound
    return carried
