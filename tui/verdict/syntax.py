"""The text of a program as syntax: of files, of functions, and of sampled lines."""

import ast
import warnings
from functools import lru_cache


def parsed(text: str) -> ast.Module | None:
    """None of what is no Python, or nested too deeply."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the user's code, which Python has shown them
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


@lru_cache(maxsize=256)
def statements_in(line: str) -> tuple[ast.stmt, ...]:
    """Of a line that is a statement by itself; nothing of one that begins or continues another."""
    tree = parsed(line.strip())
    return () if tree is None else tuple(tree.body)


def nodes_in(line: str) -> tuple[ast.AST, ...]:
    """All of them."""
    return tuple(node for statement in statements_in(line) for node in ast.walk(statement))


def root_of(node: ast.AST) -> str:
    """ "mask" of `mask[i].narrow(0, 1, n)`; "" of what begins with no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def name_of(node: ast.AST) -> str:
    """The last part of a dotted name; "" of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=1_024)
def compares_elements(line: str) -> bool:
    """A comprehension asks of element after element what it is: `[i for i in range(n) if x[i] ==
    0]`."""
    return any(
        isinstance(one, ast.comprehension) and any(_tests_one(test, one) for test in one.ifs)
        for one in nodes_in(line)
    )


def _tests_one(test: ast.expr, loop: ast.comprehension) -> bool:
    """`x[i] == 0`, of a loop over `i`."""
    match test, loop.target:
        case (
            ast.Compare(
                left=ast.Subscript(slice=ast.Name(id=at)),
                ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()],
                comparators=[ast.Constant(value=int() | float())],
            ),
            ast.Name(id=index),
        ):
            return at == index
    return False
