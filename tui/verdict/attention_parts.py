"""Attention that is computed step by step, by the lines of its function: a product, its softmax,
and a product of that. What else has a softmax (a router, a pooling, attention that adds) PyTorch's
one kernel does not compute."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .code_places import ATTENTION_CALL, share_held
from .place_names import line_of, users_function
from .stack_samples import FrameShare
from .syntax import name_of, statements_in
from .thresholds.hysteresis import CONTRIBUTOR

PRODUCTS: Final = ("matmul", "bmm", "baddbmm", "einsum")
MODULES: Final = ("torch", "F", "nn.functional", "torch.nn.functional", "math")
THROUGH: Final = frozenset(
    (
        *("masked_fill", "masked_fill_", "where", "clamp", "nan_to_num"),
        *("mul", "mul_", "div", "div_", "add", "add_"),
        *("float", "half", "bfloat16", "to", "type", "type_as", "contiguous"),
        *("view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "expand"),
    )
)
"""Calls through which scores go, and weights…"""
THROUGH_NAMED: Final = ("drop", "mask")
"""…and parts of names of others: `self.attn_drop(att)`."""
OTHER_SIDES: Final = (0, -2)
"""Dimensions along which attention takes no softmax: experts share tokens, and linear attention
features."""
ADDS: Final = frozenset(("tanh", "relu", "leaky_relu", "leakyrelu"))
"""What attention that adds does with its sum."""


def attention_from_parts(places: Sequence[FrameShare]) -> FrameShare | None:
    """A softmax within the net, in a function of some share: what it is of is a product of two
    tensors, and its result is multiplied. By what the sampled lines hand on to each other."""
    for one in places:
        if not one.in_net or not ATTENTION_CALL.search(one.line):
            continue
        function = _of_function(places, one)
        if share_held(function) >= CONTRIBUTOR and _Lines.of(function).attend(one):
            return one
    return None


def share_of_function(places: Sequence[FrameShare], one: FrameShare) -> float:
    """Of all samples those in the function of one of the places, 0 to 1."""
    return share_held(_of_function(places, one))


def _of_function(places: Sequence[FrameShare], one: FrameShare) -> list[FrameShare]:
    return [here for here in places if users_function(here) == users_function(one)]


@dataclass(frozen=True, slots=True)
class _Lines:
    """Of one function: its statements with the numbers of their lines."""

    statements: tuple[tuple[int, ast.stmt], ...]

    @classmethod
    def of(cls, function: Sequence[FrameShare]) -> "_Lines":
        """By the sampled lines that are whole statements."""
        found = {(line_of(one)[1], each) for one in function for each in statements_in(one.line)}
        return cls(tuple(sorted(found, key=lambda numbered: numbered[0])))

    def attend(self, place: FrameShare) -> bool:
        """The softmax in a place is between two products."""
        at = line_of(place)[1]
        return any(
            self._is_of_product(given, at, frozenset()) and self._is_multiplied(softmax, at)
            for statement in statements_in(place.line)
            for softmax in ast.walk(statement)
            if isinstance(softmax, ast.Call) and (given := _given(softmax)) is not None
        )

    def _is_of_product(self, value: ast.expr, at: int, known: frozenset[str]) -> bool:
        """In a line before: a capsule's agreement comes after its softmax."""
        for one in _carried(value):
            if (factors := _factors(one)) and not any(self._is_own(each, at) for each in factors):
                return True
            name = ast.unparse(one)
            if name in known:
                continue
            for line, bound in self._bound(name):
                if line <= at and self._is_of_product(bound, line, known | {name}):
                    return True
        return False

    def _is_multiplied(self, softmax: ast.Call, at: int) -> bool:
        """There, or behind it."""
        names = set[str]()
        for line, statement in self.statements:
            if line < at:
                continue
            for one in ast.walk(statement):
                factors = _factors(one)
                carried = [each for factor in factors for each in _carried(factor)]
                own = any(self._is_own(each, line) for each in factors)
                if not own and any(_is(each, softmax, names) for each in carried):
                    return True
            for target, value in _bindings(statement):
                if any(_is(each, softmax, names) for each in _carried(value)):
                    names.add(target)
        return False

    def _bound(self, name: str) -> Iterator[tuple[int, ast.expr]]:
        for line, statement in self.statements:
            for target, value in _bindings(statement):
                if target == name:
                    yield line, value

    def _is_own(self, factor: ast.expr, at: int) -> bool:
        """A weight of the net's, or a sum that was bent, by what the lines before it show."""
        name = ast.unparse(factor)
        bound = [value for line, value in self._bound(name) if line < at]
        return any(_is_weight(one) or _is_bent(one) for one in (factor, *bound))


def _is(value: ast.expr, softmax: ast.Call, names: set[str]) -> bool:
    return ast.unparse(value) in {ast.unparse(softmax), *names}


def _given(call: ast.Call) -> ast.expr | None:
    """What a softmax is taken of, along the side of attention's; None of another call."""
    called = call.func
    if name_of(called) != "softmax":
        return None
    named = {one.arg: one.value for one in call.keywords}
    given = list(call.args)
    if isinstance(called, ast.Attribute) and not _is_module(called.value):
        given.insert(0, called.value)
    elif not given and "input" in named:
        given = [named["input"]]
    side = named.get("dim", given[1] if len(given) > 1 else None)
    if side is not None and ast.unparse(side) in map(str, OTHER_SIDES):
        return None
    return given[0] if given else None


def _is_module(value: ast.expr) -> bool:
    return ast.unparse(value) in (*MODULES, "self", "nn")


def _carried(value: ast.expr) -> Iterator[ast.expr]:
    """What an expression hands on: through scaling, masks, dropout, and another type or shape."""
    match value:
        case ast.BinOp(op=ast.MatMult()):
            yield value
        case ast.BinOp(left=left, right=right):
            yield from (*_carried(left), *_carried(right))
        case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
            yield from _carried(inner)
        case ast.IfExp(body=body, orelse=other):
            yield from (*_carried(body), *_carried(other))
        case ast.Call(func=called, args=given) if _goes_through(called):
            of = [called.value] if isinstance(called, ast.Attribute) else []
            for one in (*(each for each in of if not _is_module(each)), *given):
                yield from _carried(one)
        case _:
            yield value


def _goes_through(called: ast.expr) -> bool:
    name = name_of(called)
    return name in THROUGH or any(part in name.lower() for part in THROUGH_NAMED)


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=targets, value=value):
            for one in targets:
                yield ast.unparse(one), value
        case ast.AugAssign(target=target, value=value):
            yield ast.unparse(target), value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield ast.unparse(target), value


def _factors(node: ast.AST) -> list[ast.expr]:
    """Of a product; none of anything else."""
    match node:
        case ast.BinOp(op=ast.MatMult(), left=left, right=right):
            return [left, right]
        case ast.Call(func=called, args=given) if name_of(called) in PRODUCTS:
            if isinstance(called, ast.Attribute) and not _is_module(called.value):
                given = [called.value, *given]
            return [one for one in given if not isinstance(one, ast.Constant)]
    return []


def _is_bent(factor: ast.expr) -> bool:
    """`torch.tanh(a + b)`."""
    while isinstance(factor, ast.Call):
        called = factor.func
        if name_of(called) in ADDS:
            return True
        if not isinstance(called, ast.Attribute):
            return False
        factor = called.value
    return False


def _is_weight(factor: ast.expr) -> bool:
    """`self.w`, `self.w.t()`; not `self.keys(x)`."""
    while isinstance(factor, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(factor, ast.Call):
            called = factor.func
            if not isinstance(called, ast.Attribute) or isinstance(called.value, ast.Name):
                return False
            factor = called.value
        elif isinstance(factor.value, ast.Name):
            return isinstance(factor, ast.Attribute) and factor.value.id == "self"
        else:
            factor = factor.value
    return False
