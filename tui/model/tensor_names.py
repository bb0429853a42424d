"""Which names of a function are tensors: what PyTorch gave, and what it is given. Lists of numbers
that become a tensor at the end are none."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from ..verdict.syntax import parsed

_NUMBER: Final = ("int", "float", "bool", "str", "len", "range", "list", "dict", "tuple", "sorted")
"""What a call of these gives is Python's own."""
_COUNTS: Final = ("len", "range", "int", "float", "str")
_PYTORCH: Final = ("torch", "F", "nn", "functional")
_NETS: Final = ("model", "net", "network", "criterion", "loss_fn")
_MODULES: Final = (*_PYTORCH, "math")
_NO_TENSORS: Final = frozenset(("self", "cls", "device"))
_SETTINGS: Final = frozenset(
    ("lr", "gamma", "lam", "lambda_", "lmbda", "gae_lambda", "eps", "epsilon", "tau", "momentum")
)
"""Numbers by their names, where a call of PyTorch's takes them."""
_CONVERTS: Final = re.compile(r"torch\.(as_tensor|from_numpy|frombuffer|(\w+\.)?\w*[tT]ensor)")
"""Makes a tensor of what is none."""
_MAKES: Final = re.compile(
    r"torch\.(zeros|ones|empty|full|eye|arange|linspace|logspace|rand|randn|randint|randperm"
    r"|device|Generator|Size|cuda\.\w+)"
)
"""Takes numbers."""
_METHODS: Final = re.compile(
    r"\w*[a-z0-9]_|to|cuda|matmul|mm|bmm|softmax|mean|sum|norm|view|reshape|transpose|permute|argmax"
    r"|exp|log|sqrt|rsqrt|pow|clamp|abs|var|std|dot|outer|topk|amax|amin|logsumexp|log_softmax"
    r"|sigmoid|tanh|relu|cumsum|gather|scatter|index_select|unbind|chunk|flatten|squeeze|unsqueeze"
    r"|expand|contiguous|detach|float|half|bfloat16|long|masked_fill"
)
"""Of a tensor; these take another one:"""
_WITH_ANOTHER: Final = ("matmul", "mm", "bmm", "dot", "outer")
_SAME: Final = ("T", "mT", "H", "data", "grad")
"""Attributes that are tensors as well."""
_INDEX: Final = "[]"
_BEFORE: Final = 2
"""The number of a function's first line, as it is parsed here, which counts as 0."""


class _Use(NamedTuple):
    """A name in an expression, or what a call of its own is of."""

    name: str
    """Dotted."""
    line: int
    around: tuple[str, ...]
    """The functions whose arguments it is in, the outermost first, and `[]` for an index."""
    method: str
    """That is called of it; "" where it stands for itself."""
    indexed: ast.expr | None
    """What follows in brackets."""
    gradient: bool


class _Statement(NamedTuple):
    """Without the statements in it; its lines are counted from 0."""

    lines: range
    targets: frozenset[str]
    """That it gives a value; none where that is surely Python's own."""
    uses: tuple[_Use, ...]
    converts: bool
    """It makes a tensor of what may be none."""


class Lines(NamedTuple):
    """Lines of a function by what their text shows, counted from 0."""

    computing: frozenset[int]
    """They call PyTorch."""
    shared: frozenset[int]
    """They call but methods that NumPy's arrays have too."""
    waiting: frozenset[int]
    """They hand out Python's numbers."""
    arithmetic: frozenset[int]
    """They give a tensor where they work on one."""


def works_on_tensors(function: Sequence[str], lines: Lines, here: int) -> bool:
    """Line `here` of a function works on a tensor itself: a method may only ask for its size. False
    where the function cannot be parsed."""
    # A method is indented.
    first = "if True:" if function and function[0][:1].isspace() else ""
    tree = parsed("\n".join((first, *function)))
    try:
        return tree is not None and _works(tree, lines, here)
    except RecursionError:
        return False  # an expression of thousands of terms


def _works(tree: ast.Module, lines: Lines, here: int) -> bool:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno > 1]
    statements = [_statement(node) for node in sorted(nodes, key=lambda node: node.lineno)]
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension)]
    tensors = _tensors(statements, loops, lines, here)
    return any(_is_of(tensors, use) for one in statements for use in one.uses if use.line == here)


def _tensors(
    statements: Sequence[_Statement],
    loops: Sequence[ast.For | ast.comprehension],
    lines: Lines,
    here: int,
) -> set[str]:
    """By what is computed anywhere in the function, and at line `here`."""
    given, lists = set[str](), set[str]()
    for one in statements:
        if lines.computing.isdisjoint(one.lines):
            continue
        names = one.targets if lines.waiting.isdisjoint(one.lines) else frozenset()
        converted = {use.name for use in one.uses if use.around and _converts(use.around[-1])}
        if one.converts and here in range(one.lines.stop):
            lists |= converted | names
        else:
            given |= names
            lists |= converted - names
    counted = {name for loop in loops for name in _names(loop.target)}
    uses = [use for one in statements[1:] for use in one.uses]
    operands = {use.name for use in uses if use.line not in lines.shared and _is_operand(use)}
    whole = {use.name for use in uses if not _is_element(use, counted)}
    tensors = (given | ((operands & whole) - counted - _SETTINGS)) - lists
    for loop in loops:
        if any(_is_of(tensors, use) for use in _use(_dotted(loop.iter), _BEFORE, ())):
            tensors |= _names(loop.target)
    for one in statements:
        works = not lines.arithmetic.isdisjoint(one.lines)
        asks = not lines.shared.isdisjoint(one.lines)
        if any(
            (works and _is_of(tensors, use)) or (asks and use.name in tensors) for use in one.uses
        ):
            tensors |= one.targets - lists
    return tensors


def _is_of(tensors: Collection[str], use: _Use) -> bool:
    return use.name in tensors and not use.method


def _is_operand(use: _Use) -> bool:
    """By the call that it is in, or that is made of it."""
    if use.gradient:
        return True
    if any(map(_takes_numbers, use.around)):
        return False
    if use.method:
        return _METHODS.fullmatch(use.method) is not None
    return any(map(_takes_tensors, use.around))


def _takes_numbers(function: str) -> bool:
    own = function in (_INDEX, *_COUNTS)
    return own or _converts(function) or _MAKES.fullmatch(function) is not None


def _takes_tensors(function: str) -> bool:
    """A layer is made of numbers."""
    first, last = function.partition(".")[0], function.rpartition(".")[2]
    takes = first in _PYTORCH and not last[:1].isupper()
    return takes or last in _NETS or last in _WITH_ANOTHER


def _converts(function: str) -> bool:
    return _CONVERTS.fullmatch(function) is not None


def _is_element(use: _Use, counted: Collection[str]) -> bool:
    """One number of a list, as a loop walks through it."""
    if use.indexed is None or isinstance(use.indexed, ast.Slice | ast.Tuple):
        return False
    return not _names(use.indexed).isdisjoint(counted)


def _statement(node: ast.stmt) -> _Statement:
    own = [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.stmt)]
    ends = [part.end_lineno or part.lineno for part in own if isinstance(part, ast.expr)]
    targets = (use.name for part in _targets(node) for use in _uses(part) if not use.around)
    calls = (one for part in own for one in ast.walk(part) if isinstance(one, ast.Call))
    return _Statement(
        range(node.lineno - _BEFORE, max(ends, default=node.lineno) - _BEFORE + 1),
        frozenset(targets),
        tuple(use for part in own for use in _uses(part)),
        any(_converts(_dotted(call.func)) for call in calls),
    )


def _targets(node: ast.stmt) -> Sequence[ast.expr]:
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) or node.value is None:
        return ()
    if isinstance(node.value, ast.Call) and _dotted(node.value.func) in _NUMBER:
        return ()
    return node.targets if isinstance(node, ast.Assign) else (node.target,)


def _uses(node: ast.AST, around: tuple[str, ...] = ()) -> Iterator[_Use]:
    """All names below a node; those of functions, and of arguments that have one, are none."""
    match node:
        case ast.Name() | ast.Attribute() if dotted := _dotted(node):
            yield from _use(dotted, node.lineno, around)
        case ast.Call(func=function, args=given, keywords=named):
            called = _dotted(function)
            of, _, method = called.rpartition(".")
            if called:
                yield from _use(of, node.lineno, around, method=method)
            else:
                yield from _uses(function, around)
            inside = (*around, called or getattr(function, "attr", ""))
            for argument in (*given, *(one.value for one in named)):
                yield from _uses(argument, inside)
        case ast.Subscript(value=of, slice=index):
            if dotted := _dotted(of):
                yield from _use(dotted, node.lineno, around, index=index)
            else:
                yield from _uses(of, around)
            yield from _uses(index, (*around, _INDEX))
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            for side in (left, right):
                yield from _uses(side, (*around, "matmul"))
        case _:
            for part in ast.iter_child_nodes(node):
                yield from _uses(part, around)


def _use(
    dotted: str,
    line: int,
    around: tuple[str, ...],
    method: str = "",
    index: ast.expr | None = None,
) -> Iterator[_Use]:
    """None of what is no tensor."""
    parts = dotted.split(".")
    gradient = parts[-1] == "grad"
    while len(parts) > 1 and parts[-1] in _SAME:
        del parts[-1]
    if dotted and dotted not in _NO_TENSORS and parts[0] not in _MODULES and parts[-1] != "device":
        yield _Use(".".join(parts), line - _BEFORE, around, method, index, gradient)


def _dotted(node: ast.AST) -> str:
    """A name with its attributes; "" of all else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=of, attr=name) if before := _dotted(of):
            return f"{before}.{name}"
    return ""


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - _NO_TENSORS
