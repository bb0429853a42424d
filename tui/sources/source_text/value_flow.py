"""Where what a line makes goes: through the rest of its turn and the next one, and with what its
function returns on to the line that called it. By names, as a reader would follow them."""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ...verdict.syntax import root_of
from .places import FUNCTIONS, Place, enclosing, name_of

Ends = Callable[[ast.stmt, Place], bool]
"""Whether a statement that reads the value is what is looked for."""
Reached = tuple[Place, ast.stmt]
"""The statement, and the frame in which it is."""
FOR: Final = (ast.For, ast.AsyncFor)
LOOP_STATEMENTS: Final = (*FOR, ast.While)
WITH: Final = (ast.With, ast.AsyncWith)
DEFINITIONS: Final = (*FUNCTIONS, ast.ClassDef)
TURNS: Final = 2
"""What the next turn makes of it may be read in the one after that."""


def reached(way: Sequence[Place], ends: Ends, loop: ast.AST | None = None) -> Reached | None:
    """The first statement that `ends`, of those that read what the innermost line makes, or all
    that `loop` around it makes. What is stored in an object is not followed."""
    for at, place in enumerate(way):
        found = _within(place, ends, None if at else loop)
        if found is None or not _hands_out(found):
            return None if found is None else (place, found)
    return None


def _within(place: Place, ends: Ends, loop: ast.AST | None) -> ast.stmt | None:
    """In one frame: what is looked for, or what hands the value out of it."""
    around = [one for one in enclosing(place.scope, place.line) if isinstance(one, ast.stmt)]
    if loop in around:
        around = around[: around.index(loop) + 1]
    if not around:
        return None
    made = around[-1]
    if made is loop:
        known = gathered(made)
    elif isinstance(made, FOR):
        known = stored(made.target)
        if (found := _through(made.body, known, place, ends)) is not None:
            return found
    elif list(_blocks(made)):
        return None  # asked for a condition
    elif ends(made, place) or _hands_out(made):
        return made
    else:
        known = gathered(made)
    outer = [place.scope, *around[:-1]]
    for parent, child in reversed(list(zip(outer, around, strict=True))):
        if (found := _after(parent, child, known, place, ends)) is not None:
            return found
    return None


def _after(
    parent: ast.AST, child: ast.stmt, known: set[str], place: Place, ends: Ends
) -> ast.stmt | None:
    """Behind `child` in its block, and in a loop before it in the next turn."""
    block = next((one for one in _blocks(parent) if child in one), [])
    at = block.index(child) if block else 0
    found = _through(block[at + 1 :], known, place, ends)
    if found is None and isinstance(parent, LOOP_STATEMENTS):
        known -= stored(parent.target) if isinstance(parent, FOR) else set()
        found = _through(block[: at + 1], known, place, ends)
    return found


def _through(
    statements: Sequence[ast.stmt], known: set[str], place: Place, ends: Ends
) -> ast.stmt | None:
    """Along statements, and into those that hold others; `known` names hold the value, or what
    comes of it."""
    for one in statements:
        if isinstance(one, FOR):
            change = known.update if read(one.iter) & known else known.difference_update
            change(stored(one.target))
        inside = () if isinstance(one, DEFINITIONS) else tuple(_blocks(one))
        if inside:
            branches = [set(known) for _ in inside]
            turns = TURNS if isinstance(one, LOOP_STATEMENTS) else 1
            for block, branch in zip(inside, branches, strict=True):
                for _ in range(turns):
                    if (found := _through(block, branch, place, ends)) is not None:
                        return found
            if isinstance(one, WITH):
                known.clear()
            known.update(*branches)
        elif not read(one) & known:
            known -= rebound(one)
        elif ends(one, place) or _hands_out(one):
            return one
        else:
            known |= gathered(one)
    return None


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements that it holds, without those of functions within it."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block:
            yield block
    for one in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield one.body


def _hands_out(statement: ast.stmt) -> bool:
    """A `return`, or a `yield` for which nothing is done with its answer."""
    yields = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)
    return yields or isinstance(statement, ast.Return)


# Names that a statement reads and makes.


def read(node: ast.AST) -> set[str]:
    """Names that it reads."""
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }


def stored(node: ast.AST) -> set[str]:
    """Names that it binds."""
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def gathered(node: ast.AST) -> set[str]:
    """Names that it binds, writes into or appends to; what it logs to is none of them."""
    found = stored(node)
    for one in ast.walk(node):
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store):
            found.add(root_of(one))
        elif isinstance(one, ast.Call) and name_of(one.func) in ("append", "extend"):
            found.add(root_of(one.func))
        elif isinstance(one, FUNCTIONS):
            found.add(one.name)
    return found - {"", "self"}


def rebound(statement: ast.stmt) -> set[str]:
    """Names that have another value afterwards, whatever happens."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return set[str]().union(*map(rebound, statement.body))
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return set[str]().union(*map(stored, targets))
