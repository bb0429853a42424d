"""The text of a program as syntax: of files, of functions, and of sampled lines."""

import ast
import re
import warnings
from functools import lru_cache
from typing import Final

MASK: Final = re.compile(r"mask\d*$|^(is_)?valid$|_valid$|^keep$", re.IGNORECASE)
"""Names of tensors that say of each element whether it counts."""
BY_VALUE: Final = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
"""Comparisons that tensors have."""


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
                ops=[how],
                comparators=[ast.Constant(value=int() | float())],
            ),
            ast.Name(id=index),
        ):
            return at == index and isinstance(how, BY_VALUE)
    return False


@lru_cache(maxsize=1_024)
def selects_by_mask(line: str) -> bool:
    """It takes the elements that a mask says, whose number nobody knows before: `x[mask]`, `x[y !=
    0]`, `x[~padding] = y`. What is filled with one number, `x[mask] = 0`, is as large as before."""
    filled = {
        id(target)
        for statement in statements_in(line)
        if isinstance(statement, ast.Assign) and _is_number(statement.value)
        for target in statement.targets
    }
    return any(
        isinstance(one, ast.Subscript) and id(one) not in filled and _is_mask(one.slice)
        for one in nodes_in(line)
    )


def _is_number(value: ast.expr) -> bool:
    """`-1e9`, `float("-inf")`, `-math.inf`."""
    names = {root_of(one) for one in ast.walk(value)}
    return names <= {"", "float", "math", "np", "numpy"}


def _is_mask(index: ast.expr) -> bool:
    match index:
        case ast.Compare(ops=[how]):
            return isinstance(how, BY_VALUE)
        case ast.UnaryOp(op=ast.Invert()):
            return True
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return _is_mask(left) and _is_mask(right)
        case ast.Tuple(elts=each):
            return any(map(_is_mask, each))
    return MASK.search(name_of(index)) is not None
