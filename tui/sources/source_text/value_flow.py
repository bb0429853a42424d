"""Where what a line makes goes: through the rest of its turn and the next one, and with what its
function returns on to the line that called it. By names, as a reader would follow them."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...verdict.syntax import name_of, root_of
from .places import FUNCTIONS, Function, Place, enclosing

Names = set[str]
Ends = Callable[[ast.stmt, Place, Names], bool]
"""Whether a statement that reads the value, by these names, is what is looked for; by none where it
holds the line that makes it."""
Reads = Callable[[ast.AST, Place], Names]
Makes = Callable[[ast.AST, Place], Names | None]
"""Names that hold the value behind the statement, or the loop, that makes it; None where what it
makes is no such value."""
Reached = tuple[Place, ast.stmt]
"""The statement, and the frame in which it is."""
FOR: Final = (ast.For, ast.AsyncFor)
LOOP_STATEMENTS: Final = (*FOR, ast.While)
WITH: Final = (ast.With, ast.AsyncWith)
DEFINITIONS: Final = (*FUNCTIONS, ast.ClassDef)
TURNS: Final = 2
"""What the next turn makes of it may be read in the one after that."""


@dataclass(frozen=True, slots=True)
class Values:
    """What is looked for, and what counts as reading the value and as making it."""

    ends: Ends
    reads: Reads = lambda node, _: read(node)
    makes: Makes = lambda node, _: gathered(node)
    returns: bool = True
    """A `return` hands it on, and ends the search here."""


def reached(way: Sequence[Place], values: Values, loop: ast.AST | None = None) -> Reached | None:
    """The first statement that `ends`, of those that read what the innermost line makes, or all
    that `loop` around it makes. What is stored in an object is followed within one function."""
    called = ""
    for at, place in enumerate(way):
        found = _within(place, values, None if at else loop, called)
        called = place.scope.name if isinstance(place.scope, Function) else ""
        if found is None or not hands_out(found):
            return None if found is None else (place, found)
    return None


def _within(place: Place, values: Values, loop: ast.AST | None, called: str) -> ast.stmt | None:
    """In one frame: what is looked for, or what hands the value out of it. On a line of several
    statements, `x = net(x); states.append(x)`, what calls the function that makes it comes before
    the others."""
    around = [one for one in enclosing(place.scope, place.line) if isinstance(one, ast.stmt)]
    if loop in around:
        around = around[: around.index(loop) + 1]
    if not around:
        return None
    simple = [one for one in around if not any(blocks(one))] or around[-1:]
    outer = [one for one in around if one not in simple]
    makes = [one for one in simple if _calls(one, called)] if len(simple) > 1 else simple
    for made in makes or simple:
        if (found := _from(made, outer, place, values, loop, bool(makes))) is not None:
            return found
    return None


def _calls(statement: ast.stmt, called: str) -> bool:
    calls = (one for one in ast.walk(statement) if isinstance(one, ast.Call))
    return bool(called) and any(name_of(one.func) == called for one in calls)


def _from(
    made: ast.stmt,
    outer: Sequence[ast.stmt],
    place: Place,
    values: Values,
    loop: ast.AST | None,
    surely: bool,
) -> ast.stmt | None:
    """From this statement, which `surely` makes the value, or may."""
    known: Names | None
    if isinstance(made, FOR) and made is not loop:
        known = stored(made.target)
        if (found := through(made.body, known, place, values)) is not None:
            return found
    elif made is not loop and list(blocks(made)):
        return None  # asked for a condition
    elif made is not loop and surely and values.ends(made, place, set()):
        return made
    elif (known := values.makes(made, place)) is None or hands_out(made):
        return None if known is None else made
    around = zip((place.scope, *outer), (*outer, made), strict=True)
    for parent, child in reversed(list(around)):
        if (found := _after(parent, child, known, place, values)) is not None:
            return found
    return None


def _after(
    parent: ast.AST, child: ast.stmt, known: set[str], place: Place, values: Values
) -> ast.stmt | None:
    """Behind `child` in its block, and in a loop before it in the next turn."""
    block = next((one for one in blocks(parent) if child in one), [])
    at = block.index(child) if block else 0
    found = through(block[at + 1 :], known, place, values)
    if found is None and isinstance(parent, LOOP_STATEMENTS):
        known -= stored(parent.target) if isinstance(parent, FOR) else set()
        found = through(block[: at + 1], known, place, values)
    return found


def through(
    statements: Sequence[ast.stmt], known: set[str], place: Place, values: Values
) -> ast.stmt | None:
    """Along statements, and into those that hold others; `known` names hold the value, or what
    comes of it."""
    for one in statements:
        if isinstance(one, FOR):
            reads = not known.isdisjoint(values.reads(one.iter, place))
            change = known.update if reads else known.difference_update
            change(stored(one.target))
        inside = () if isinstance(one, DEFINITIONS) else tuple(blocks(one))
        if inside:
            branches = [set(known) for _ in inside]
            turns = TURNS if isinstance(one, LOOP_STATEMENTS) else 1
            for block, branch in zip(inside, branches, strict=True):
                for _ in range(turns):
                    if (found := through(block, branch, place, values)) is not None:
                        return found
            if isinstance(one, WITH):
                known.clear()
            known.update(*branches)
        elif not values.reads(one, place) & known:
            known -= rebound(one)
        elif values.ends(one, place, known) or (values.returns and hands_out(one)):
            return one
        else:
            known |= gathered(one)
    return None


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements that it holds, without those of functions within it."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block:
            yield block
    for one in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield one.body


def hands_out(statement: ast.stmt) -> bool:
    """A `return`, or a `yield` for which nothing is done with its answer."""
    yields = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)
    return yields or isinstance(statement, ast.Return)


# Names that a statement reads and makes.


def read(node: ast.AST) -> set[str]:
    """Names that it reads."""
    return {name for one in ast.walk(node) if (name := name_used(one, ast.Load))}


def stored(node: ast.AST) -> set[str]:
    """Names that it binds."""
    return {name for one in ast.walk(node) if (name := name_used(one, ast.Store))}


def name_used(node: ast.AST, context: type[ast.expr_context] = ast.Load) -> str:
    """ "loss" and "self.loss" of such a name; "" of all else."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, context):
        return ""
    if isinstance(node, ast.Name):
        return node.id
    own = isinstance(node.value, ast.Name) and node.value.id == "self"
    return f"self.{node.attr}" if own else ""


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
    return set[str]().union(*map(stored, targets_of(statement)))


def targets_of(statement: ast.stmt) -> list[ast.expr]:
    """What an assignment binds anew; nothing of another statement."""
    if isinstance(statement, ast.AnnAssign):
        return [statement.target]
    return statement.targets if isinstance(statement, ast.Assign) else []
