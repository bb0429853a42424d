"""The text of a sampled line as syntax."""

import ast
from functools import lru_cache


@lru_cache(maxsize=256)
def statements_in(line: str) -> tuple[ast.stmt, ...]:
    """Of a line that is a statement by itself; nothing of one that begins or continues another."""
    try:
        return tuple(ast.parse(line.strip()).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def nodes_in(line: str) -> tuple[ast.AST, ...]:
    """All of them."""
    return tuple(node for statement in statements_in(line) for node in ast.walk(statement))


def root_of(value: ast.expr) -> str:
    """ "mask" of `mask[i].narrow(0, 1, n)`; "" of what begins with no name."""
    while isinstance(value, (ast.Attribute, ast.Subscript, ast.Call)):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else ""
