"""Where the source turns gradients off, and on again: `with torch.no_grad()`, and decorators."""

import ast
from collections.abc import Iterable
from typing import Final

from .source_places import name_of

WITHOUT_GRAD: Final = frozenset(("no_grad", "inference_mode", "set_grad_enabled"))
Block = ast.With | ast.AsyncWith


def block_of(around: Iterable[ast.AST]) -> Block | None:
    """The innermost `with` that turns gradients off, or on, among the nodes around a line, which
    come innermost first."""
    for one in around:
        if isinstance(one, Block) and _switches(one):
            return one
    return None


def turns_off(block: Block) -> bool:
    """Such a `with` turns them off."""
    return without_grad(_switches(block)[0])


def without_grad(context: ast.expr) -> bool:
    """A context or a decorator, with or without its brackets, that turns gradients off."""
    if not isinstance(context, ast.Call):
        return name_of(context) in WITHOUT_GRAD
    return name_of(context.func) in WITHOUT_GRAD and not _turned_on(context)


def _switches(block: Block) -> list[ast.Call]:
    contexts = (item.context_expr for item in block.items)
    return [
        one for one in contexts if isinstance(one, ast.Call) and name_of(one.func) in WITHOUT_GRAD
    ]


def _turned_on(called: ast.Call) -> bool:
    """`set_grad_enabled(True)`, or by a value that only the run knows."""
    if name_of(called.func) != "set_grad_enabled":
        return False
    given = called.args[0] if called.args else None
    return not (isinstance(given, ast.Constant) and given.value is False)
