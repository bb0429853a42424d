"""Where a frame of the user's lies in the text of its file: the function, the loops and the blocks
around a line."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...model.frames import place_of
from ...verdict.syntax import name_of
from .syntax_trees import Mark, mark_of, once_of_each

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
Loop = ast.For | ast.AsyncFor | ast.While | Comprehension
LOOPS: Final = (
    *(ast.For, ast.AsyncFor, ast.While),
    *(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp),
)
LEARNS: Final = frozenset(("backward", "zero_grad", "manual_backward", "training_step"))
"""Names of calls that make the loop around them, or the function, one that trains."""
NO_OPTIMIZER: Final = re.compile(
    r"scheduler|sched(ule)?s?\b|sched_|\blr_|_lr\b|prof(iler)?\b|warm_?up|anneal|\bema\b|tracker|meter"
    r"|logger|progress|\bp?bar\b|timer|stopper|stopping",
    re.IGNORECASE,
)
"""What a `step` without arguments is called of that updates no weights."""


@dataclass(frozen=True, slots=True)
class Place:
    """A frame of the user's, innermost first in a way."""

    frame: str
    line: int
    scope: Function | ast.Module
    """The function that holds the line, or the whole script."""
    tree: ast.Module
    """Of its file."""

    def around(self) -> list[ast.AST]:
        """What encloses the line within the function, innermost first."""
        return [one for one in reversed(list(enclosing(self.scope, self.line)))]

    @property
    def marked(self) -> Mark:
        """The function, or the whole script."""
        return self.mark(self.scope)

    def mark(self, node: ast.AST) -> Mark:
        """Of a node of the same file."""
        return mark_of(place_of(self.frame)[0], node)

    def region(self) -> ast.AST:
        """The innermost loop around it, or the whole function."""
        return next((one for one in self.around() if isinstance(one, LOOPS)), self.scope)


def scope_of(tree: ast.Module, line: int) -> Function | ast.Module:
    """The innermost function that holds a line, or the whole script."""
    scope: Function | ast.Module = tree
    for one in enclosing(tree, line):
        if isinstance(one, Function):
            scope = one
    return scope


def enclosing(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """The nodes below `node` that hold a line, outermost first."""
    for child in ast.iter_child_nodes(node):
        if holds(child, line):
            yield child
            yield from enclosing(child, line)


def holds(node: ast.AST, line: int) -> bool:
    """The node's text goes over this line; a decorated function begins with its decorators."""
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if isinstance(node, Function) and node.decorator_list:
        first = min(one.lineno for one in node.decorator_list)
    if first is None or last is None:
        # A comprehension's `for` has no lines of its own.
        return any(holds(child, line) for child in ast.iter_child_nodes(node))
    return int(first) <= line <= int(last)


def learns(node: ast.AST, nested: bool = True) -> bool:
    """It holds a call that trains; what functions within it do is their own. Without `nested` one
    that lies in no further loop."""
    for one in ast.walk(node) if nested else nodes_outside(node, LOOPS):
        if isinstance(one, ast.Call) and (name_of(one.func) in LEARNS or updates(one)):
            return True
    return False


def nodes_outside(scope: ast.AST, kinds: tuple[type[ast.AST], ...]) -> Iterator[ast.AST]:
    """The nodes below `scope` without what lies within nodes of these kinds."""
    left = list(ast.iter_child_nodes(scope))
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, kinds):
            left.extend(ast.iter_child_nodes(node))


def heads(loop: ast.AST) -> Sequence[ast.For | ast.AsyncFor | ast.comprehension]:
    """Its `for`s: what a turn binds, and what it goes over."""
    if isinstance(loop, Comprehension):
        return loop.generators
    return [loop] if isinstance(loop, (ast.For, ast.AsyncFor)) else []


def sources(loop: ast.AST) -> list[ast.expr]:
    """What it goes over."""
    return [one.iter for one in heads(loop)]


@once_of_each
def functions_in(tree: ast.Module) -> list[Function]:
    """All of a file, methods and those within others too; the outer ones first."""
    return [one for one in ast.walk(tree) if isinstance(one, Function)]


def called_in(loop: ast.AST, tree: ast.Module) -> list[Function]:
    """The functions of the same file that it calls, by their names."""
    called = {name_of(one.func) for one in ast.walk(loop) if isinstance(one, ast.Call)}
    return [one for one in functions_in(tree) if one.name in called]


def updates(call: ast.Call) -> bool:
    """`optimizer.step()` does; `env.step(action)` acts, and `scheduler.step(metrics=loss)`, or one
    without a value, sets a rate."""
    if name_of(call.func) != "step" or call.args or call.keywords:
        return False
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    return of is None or not NO_OPTIMIZER.search(ast.unparse(of))
