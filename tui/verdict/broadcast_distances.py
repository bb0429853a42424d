"""Distances between the vectors of two sets that are summed of all their differences, by the text
of their function: of N and K vectors with D numbers that is a tensor of N x K x D, some times over,
where a product of matrices needs none."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from .code_places import BETWEEN, within
from .place_names import users_function
from .stack_samples import FrameShare
from .syntax import name_of, root_of, statements_in

Made = Literal["differences", "squares", "distances"]
SQUARES: Final = ("pow", "square")
SUMS: Final = ("sum", "mean")
NORMS: Final = ("norm", "vector_norm")
OF_TWO: Final = "pairwise_distance"
"""PyTorch's own, which makes the differences as well."""
VIEWS: Final = ("view", "reshape")
SAME: Final = ("expand", "expand_as", "repeat", "detach", "float", "contiguous", "to")
"""What is called on a tensor that has got a dimension, and leaves it where it is."""
OF_MODULES: Final = ("torch", "F", "functional", "nn", "linalg")
ARRAYS: Final = ("np", "numpy")
DEEPEST: Final = 4
"""Names from the differences to what is summed."""


def by_all_differences(places: Sequence[FrameShare]) -> list[FrameShare]:
    """Lines in which such distances are made, and lines before them that make the differences; by
    the lines that were sampled where the source was not read."""
    functions: dict[tuple[str, str], list[FrameShare]] = {}
    for one in within(places, BETWEEN):
        if one.in_net or one.computes or one.phase == "forward":
            functions.setdefault(users_function(one), []).append(one)
    return [one for held in functions.values() for one in _in_function(held)]


def of_all_differences(statements: Iterable[ast.stmt]) -> list[ast.stmt | ast.expr]:
    """Of all simple statements of a function those that make the differences for such distances,
    and the calls that sum them."""
    return _Function(tuple(statements)).of_distances


def _in_function(places: Sequence[FrameShare]) -> Iterator[FrameShare]:
    by_line = {one.line: statements_in(one.line) for one in places}
    found = of_all_differences(one for each in by_line.values() for one in each)
    for one in places:
        by_text = any(node in found for each in by_line[one.line] for node in ast.walk(each))
        if by_text if one.pairs is None else one.pairs:
            yield one


@dataclass(frozen=True)
class _Function:
    """One, by its simple statements that are known."""

    statements: tuple[ast.stmt, ...]

    @cached_property
    def of_distances(self) -> list[ast.stmt | ast.expr]:
        """Not where the differences are used for something else as well."""
        found, names = list[ast.stmt | ast.expr](), set[str]()
        for statement in self.statements:
            for node in _expressions(statement):
                if isinstance(node, ast.Call) and self._made(node) == "distances":
                    found.append(node)
                    names |= self._names_below(node)
        if any(self._is_used_otherwise(name) for name in names):
            return []
        return found + [one for one in self.statements if _bound_in(one) in names]

    @cached_property
    def _bound(self) -> dict[str, ast.expr | None]:
        """By their names the values that lines bind; None of a name that several do."""
        found: dict[str, ast.expr | None] = {}
        for one in self.statements:
            if isinstance(one, ast.Assign) and (name := _bound_in(one)) is not None:
                found[name] = None if name in found else one.value
        return found

    def _made(self, value: ast.expr, depth: int = 0) -> Made | None:
        """What an expression makes, of the names that lines bind."""
        if isinstance(value, ast.Name):
            bound = self._bound.get(value.id) if depth < DEEPEST else None
            made = None if bound is None else self._made(bound, depth + 1)
            return None if made == "distances" else made
        if self._differs(value):
            return "differences"
        if (of := _squared(value)) is not None:
            return "squares" if self._made(of, depth) == "differences" else None
        if (summed := _summed(value)) is not None:
            of, dimension, is_norm = summed
            wanted = "differences" if is_norm else "squares"
            if self._made(of, depth) != wanted:
                return None
            is_last = all(dimension == -1 or dimension > at >= 0 for at in self._axes(of, depth))
            return "distances" if is_last else None
        return "distances" if self._is_of_two(value) else None

    def _axes(self, value: ast.expr, depth: int) -> list[int]:
        """Where the two tensors got their dimensions."""
        for one in ast.walk(value):
            if isinstance(one, ast.Name) and depth < DEEPEST:
                bound = self._bound.get(one.id)
                if bound is not None and (axes := self._axes(bound, depth + 1)):
                    return axes
            elif isinstance(one, ast.expr) and (pair := self._differs(one)):
                return list(pair)
        return []

    def _names_below(self, node: ast.expr) -> set[str]:
        """Names of the differences, or their squares, that an expression is made of."""
        found, left = set[str](), [node]
        while left:
            for one in ast.walk(left.pop()):
                if isinstance(one, ast.Name) and one.id not in found and self._made(one):
                    found.add(one.id)
                    left += [bound for bound in [self._bound[one.id]] if bound is not None]
        return found

    def _is_used_otherwise(self, name: str) -> bool:
        """Behind the differences something else needs them."""
        every = {
            id(one)
            for statement in self.statements
            for one in _expressions(statement)
            if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        }
        squared = {
            id(inner)
            for statement in self.statements
            for one in _expressions(statement)
            if self._made(one) in ("squares", "distances") and not isinstance(one, ast.Name)
            for inner in ast.walk(one)
        }
        return not every <= squared

    def _differs(self, value: ast.expr) -> tuple[int, int] | tuple[()]:
        """`a.unsqueeze(1) - b.unsqueeze(0)`, `a[:, None] - b[None]`: where each has got a
        dimension; () of any other difference. What a net keeps (`x[:, None] - self.centers`) has
        none to get."""
        if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)):
            return ()
        return self._pair(value.left, value.right)

    def _pair(self, left: ast.expr, right: ast.expr) -> tuple[int, int] | tuple[()]:
        if any(root_of(one) in ARRAYS for one in (left, right)):
            return ()
        first, second = self._axis(left), self._axis(right)
        first, second = _or_in_front(first, second, left), _or_in_front(second, first, right)
        if first is None or second is None or first == second or -1 in (first, second):
            return ()
        return (first, second) if (first < 0) == (second < 0) else ()

    def _axis(self, value: ast.expr, depth: int = 0) -> int | None:
        """Where a tensor has got a dimension of one."""
        match value:
            case ast.Name(id=name) if depth < DEEPEST:
                bound = self._bound.get(name)
                return None if bound is None else self._axis(bound, depth + 1)
            case ast.Call(func=ast.Attribute(value=of, attr=name), args=given):
                if name == "unsqueeze":
                    return _number(given[-1]) if given else None
                if name in VIEWS:
                    ones = [at for at, one in enumerate(given) if _number(one) == 1]
                    return ones[0] if len(ones) == 1 else None
                return self._axis(of, depth) if name in SAME else None
            case ast.Subscript(slice=ast.Constant(value=None)):
                return 0
            case ast.Subscript(slice=ast.Tuple(elts=parts)):
                at = [
                    n for n, one in enumerate(parts) if ast.unparse(one) in ("None", "np.newaxis")
                ]
                if len(at) != 1:
                    return None
                behind = any(ast.unparse(one) in ("...", "Ellipsis") for one in parts[: at[0]])
                return at[0] - len(parts) if behind else at[0]
        return None

    def _is_of_two(self, value: ast.expr) -> bool:
        """`F.pairwise_distance(a.unsqueeze(1), b.unsqueeze(0))`."""
        if not isinstance(value, ast.Call) or name_of(value.func) != OF_TWO:
            return False
        return len(value.args) >= 2 and bool(self._pair(value.args[0], value.args[1]))


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    return (one for one in ast.walk(statement) if isinstance(one, ast.expr))


def _bound_in(statement: ast.stmt) -> str | None:
    """Of an assignment to one name."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


def _or_in_front(axis: int | None, other: int | None, value: ast.expr) -> int | None:
    """`self.codes`, `self.embed.weight`: K x D."""
    if axis is not None or other is None or other <= 0:
        return axis
    while isinstance(value, ast.Attribute):
        if isinstance(value.value, ast.Name):
            return 0 if value.value.id == "self" else None
        value = value.value
    return None


def _squared(value: ast.expr) -> ast.expr | None:
    match value:
        case ast.BinOp(left=of, op=ast.Pow(), right=ast.Constant(value=2)):
            return of
        case ast.BinOp(left=of, op=ast.Mult(), right=other) if _same(of, other):
            return of
        case ast.Call(func=called) if name_of(called) in SQUARES:
            of, *power = _given(value)
            of_two = name_of(called) == "square" or [_number(one) for one in power] == [2]
            return of if of_two else None
    return None


def _summed(value: ast.expr) -> tuple[ast.expr, int, bool] | None:
    """What is summed, over which dimension, and whether that is a norm."""
    if not isinstance(value, ast.Call) or name_of(value.func) not in (*SUMS, *NORMS):
        return None
    if root_of(value.func) in ARRAYS:
        return None
    of, *given = _given(value)
    is_norm = name_of(value.func) in NORMS
    named = {one.arg: one.value for one in value.keywords}
    power = named.get("p", named.get("ord", given[0] if is_norm and given else None))
    if power is not None and _number(power) != 2:
        return None
    at = given[1:] if is_norm else given
    side = named.get("dim", named.get("axis", at[0] if at else None))
    dimension = None if side is None else _number(side)
    return None if dimension is None else (of, dimension, is_norm)


def _given(call: ast.Call) -> list[ast.expr]:
    """What a function of PyTorch's is given, or a tensor whose method it is, and the rest."""
    called = call.func
    of_module = not isinstance(called, ast.Attribute) or name_of(called.value) in OF_MODULES
    if of_module or not isinstance(called, ast.Attribute):
        return list(call.args) or [call]
    return [called.value, *call.args]


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)


def _number(value: ast.expr) -> int | None:
    match value:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
        case ast.Tuple(elts=[one]) | ast.List(elts=[one]):
            return _number(one)
    return None
