"""Distances between the vectors of two sets that are summed of all their differences, by the text
of sampled lines: of N and K vectors with D numbers that is a tensor of N x K x D, some times over,
where a product of matrices needs none."""

import ast
from collections.abc import Iterator, Sequence
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
    """Lines in which such distances are made, and lines before them that make the differences. Not
    where the differences are used for something else as well, by the lines that were sampled."""
    functions: dict[tuple[str, str], list[FrameShare]] = {}
    for one in within(places, BETWEEN):
        if one.in_net or one.computes or one.phase == "forward":
            functions.setdefault(users_function(one), []).append(one)
    return [one for held in functions.values() for one in _in_function(held)]


def _in_function(places: Sequence[FrameShare]) -> Iterator[FrameShare]:
    function = _Function(tuple(dict.fromkeys(one.line for one in places)))
    lines = function.lines_of_distances
    return (one for one in places if one.line in lines)


@dataclass(frozen=True)
class _Function:
    """One, by its sampled lines that are whole statements."""

    lines: tuple[str, ...]

    @cached_property
    def lines_of_distances(self) -> set[str]:
        found, names = set[str](), set[str]()
        for line in self.lines:
            for node in self._nodes(line):
                if self._made(node) == "distances":
                    found.add(line)
                    names |= self._names_below(node)
        if any(self._is_used_otherwise(name) for name in names):
            return set()
        return found | {line for line in self.lines for name in names if self._binds(line, name)}

    def _nodes(self, line: str) -> Iterator[ast.expr]:
        for statement in statements_in(line):
            yield from (one for one in ast.walk(statement) if isinstance(one, ast.expr))

    def _bound(self, name: str) -> Iterator[ast.expr]:
        for line in self.lines:
            for statement in statements_in(line):
                match statement:
                    case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                        yield value

    def _binds(self, line: str, name: str) -> bool:
        return any(
            isinstance(one, ast.Assign) and name in map(name_of, one.targets)
            for one in statements_in(line)
        )

    def _made(self, value: ast.expr, depth: int = 0) -> Made | None:
        """What an expression makes, of the names that lines bind."""
        if isinstance(value, ast.Name):
            if depth >= DEEPEST:
                return None
            made = {self._made(one, depth + 1) for one in self._bound(value.id)}
            return made.pop() if len(made) == 1 and "distances" not in made else None
        if _differs(value):
            return "differences"
        if (of := _squared(value)) is not None:
            return "squares" if self._made(of, depth) == "differences" else None
        if (summed := _summed(value)) is not None:
            of, dimension, is_norm = summed
            wanted = "differences" if is_norm else "squares"
            is_last = all(dimension == -1 or dimension > at >= 0 for at in self._axes(of, depth))
            return "distances" if is_last and self._made(of, depth) == wanted else None
        return "distances" if _is_of_two(value) else None

    def _axes(self, value: ast.expr, depth: int) -> list[int]:
        """Where the two tensors got their dimensions."""
        for one in ast.walk(value):
            if isinstance(one, ast.Name) and depth < DEEPEST:
                for bound in self._bound(one.id):
                    if axes := self._axes(bound, depth + 1):
                        return axes
            elif isinstance(one, ast.expr) and (pair := _differs(one)):
                return list(pair)
        return []

    def _names_below(self, node: ast.expr) -> set[str]:
        """Names of the differences, or their squares, that an expression is made of."""
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        own = {one for one in names if self._made(ast.Name(id=one)) is not None}
        for one in set(own):
            for bound in self._bound(one):
                own |= self._names_below(bound)
        return own

    def _is_used_otherwise(self, name: str) -> bool:
        """Behind the differences something else needs them."""
        every = {
            id(one)
            for line in self.lines
            for one in self._nodes(line)
            if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        }
        squared = {
            id(inner)
            for line in self.lines
            for one in self._nodes(line)
            if self._made(one) in ("squares", "distances") and not isinstance(one, ast.Name)
            for inner in ast.walk(one)
        }
        return not every <= squared


def _differs(value: ast.expr) -> tuple[int, int] | tuple[()]:
    """`a.unsqueeze(1) - b.unsqueeze(0)`, `a[:, None] - b[None]`: where each has got a dimension; ()
    of any other difference. A parameter of a net (`x[:, None] - self.centers`) has none to get."""
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)):
        return ()
    return _pair(value.left, value.right)


def _pair(left: ast.expr, right: ast.expr) -> tuple[int, int] | tuple[()]:
    if any(root_of(one) in ARRAYS for one in (left, right)):
        return ()
    first, second = _axis(left), _axis(right)
    first, second = _or_in_front(first, second, left), _or_in_front(second, first, right)
    if first is None or second is None or first == second or -1 in (first, second):
        return ()
    return (first, second) if (first < 0) == (second < 0) else ()


def _or_in_front(axis: int | None, other: int | None, value: ast.expr) -> int | None:
    """`self.codes`, `self.embed.weight`: K x D."""
    if axis is not None or other is None or other <= 0:
        return axis
    while isinstance(value, ast.Attribute):
        if isinstance(value.value, ast.Name):
            return 0 if value.value.id == "self" else None
        value = value.value
    return None


def _axis(value: ast.expr) -> int | None:
    """Where a tensor has got a dimension of one."""
    match value:
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=given):
            if name == "unsqueeze":
                return _number(given[-1]) if given else None
            if name in VIEWS:
                ones = [at for at, one in enumerate(given) if _number(one) == 1]
                return ones[0] if len(ones) == 1 else None
            return _axis(of) if name in SAME else None
        case ast.Subscript(slice=ast.Constant(value=None)):
            return 0
        case ast.Subscript(slice=ast.Tuple(elts=parts)):
            at = [n for n, one in enumerate(parts) if ast.unparse(one) in ("None", "np.newaxis")]
            if len(at) != 1:
                return None
            behind = any(ast.unparse(one) in ("...", "Ellipsis") for one in parts[: at[0]])
            return at[0] - len(parts) if behind else at[0]
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


def _is_of_two(value: ast.expr) -> bool:
    """`F.pairwise_distance(a.unsqueeze(1), b.unsqueeze(0))`."""
    if not isinstance(value, ast.Call) or name_of(value.func) != OF_TWO:
        return False
    return len(value.args) >= 2 and bool(_pair(value.args[0], value.args[1]))


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
