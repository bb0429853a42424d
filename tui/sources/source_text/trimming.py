"""Whether a file cuts off the padding of its batches: takes as many columns as the data need."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...verdict.syntax import name_of
from .flattening import FOUND, flattens, is_lengths
from .packing import MANY_LENGTHS
from .places import FUNCTIONS, Function

SHAPES: Final = frozenset(("size", "len", "dim", "ndimension", "numel"))
OF_SHAPES: Final = SHAPES | {
    *("min", "int", "slice", "range", "list", "tuple"),
    *("ceil", "floor", "round", "abs", "sqrt", "log2"),
    *("arange", "randperm", "triu_indices", "tril_indices", "tensor"),
}
"""Calls in a bound that show no texts' lengths by themselves: `table[:, : x.size(1)]` trims no
batch."""
LOADED: Final = "loaded"
"""Stands for a call: `for ids, longest in loader`."""
COMPUTED: Final = "computed"
"""Stands for all other calls, and for `ids[0] != 0` and `~mask`."""
EACH: Final = "each"
"""Stands for the length of one text: `for row, n in zip(rows, lengths)`."""
SETTINGS: Final = frozenset(("parse_args", "get", "getattr"))
"""Calls that give what a person has set."""
RESULTS: Final = frozenset(("values", "indices", "data", "T", "mT"))
"""Attributes of what was computed that are still this; others may be settings."""
TABLES: Final = frozenset(("arange", "ones", "tril", "triu"))
"""Calls that make what is no batch."""
CUTS: Final = {"narrow": 3, "index_select": 2}
"""Methods that cut, with how many of their arguments begin at the dimension."""
OF_PANDAS: Final = frozenset(("loc", "iloc"))
"""Attributes whose columns are no positions."""
LONGEST: Final = frozenset(("max", "amax"))
Names = dict[str, frozenset[str]]
"""What names stand for: the calls that have computed it."""


def trims(tree: ast.Module) -> bool:
    """A text is cut where it was computed: `ids[:, : int((ids != 0).sum(1).max())]`, `ids[:, keep]`
    of a mask, `ids.narrow(1, 0, longest)`, or `ids[: lengths.max()]` of texts that lie the other
    way; or each to its own length, or a mask puts them together without their padding. An attribute
    of the net's that is cut is no batch but a table, as of positions:
    `self.places[:, : x.size(1)]`."""
    everywhere = _computed([*_bindings(ast.walk(tree)), *_given(tree)], {})
    scopes = [tree, *(one for one in ast.walk(tree) if isinstance(one, FUNCTIONS))]
    return any(_trims_in(scope, everywhere) for scope in scopes)


def _trims_in(scope: ast.Module | Function, everywhere: Names) -> bool:
    """What a name stands for is asked of its function, and of the whole file for what this is
    given."""
    given = set[str]()
    if isinstance(scope, FUNCTIONS):
        given = {one.arg for one in ast.walk(scope.args) if isinstance(one, ast.arg)}
    nodes = list(_own(scope))
    bindings = [one for one in _bindings(nodes) if one[0] not in given]
    names = everywhere | _computed(bindings, everywhere)
    others = {name for name, value in bindings if not _is_table(value, frozenset())}
    tables = frozenset({name for name, _ in bindings} - others)
    plain = {name: calls - {EACH} for name, calls in names.items()}
    copied = _copied(nodes)
    if any(_cuts(node, plain if id(node) in copied else names, tables) for node in nodes):
        return True
    return flattens(nodes, lambda one: _calls_in(one, names))


def _copied(nodes: Iterable[ast.AST]) -> set[int]:
    """Nodes of what is written into a batch: `padded[i, :n] = row[:n]` pads it."""
    return {
        id(one)
        for statement in nodes
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Subscript) for target in statement.targets)
        for one in ast.walk(statement.value)
    }


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What lies in it, without the functions within."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, FUNCTIONS):
            yield from _own(child)


def _cuts(node: ast.AST, names: Names, tables: frozenset[str]) -> bool:
    if isinstance(node, ast.Subscript):
        if not isinstance(node.ctx, ast.Load) or name_of(node.value) in OF_PANDAS:
            return False
        return not _is_table(node.value, tables) and _is_cut(node.slice, names)
    if not isinstance(node, ast.Call) or (count := CUTS.get(name_of(node.func))) is None:
        return False
    given = [*node.args, *(one.value for one in node.keywords)][-count:]
    if len(given) < count or not isinstance(node.func, ast.Attribute):
        return False
    if _is_table(node.func.value, tables):
        return False
    found = frozenset[str]().union(*(_calls_in(one, names) for one in given[1:]))
    first = isinstance(given[0], ast.Constant) and given[0].value == 0
    return not LONGEST.isdisjoint(found) if first else bool(found)


def _is_table(value: ast.expr, tables: frozenset[str]) -> bool:
    """The net's own, or made of numbers; not `self.words(ids)`."""
    while isinstance(value, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(value, ast.Call):
            if name_of(value.func) in TABLES:
                return True
            if _is_of_self(value.func) and value.args:
                return False
            value = value.func
        else:
            value = value.value
    return isinstance(value, ast.Name) and (value.id == "self" or value.id in tables)


def _is_of_self(called: ast.expr) -> bool:
    """`self.words`, not `self.words.detach`."""
    return (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id == "self"
    )


def _bindings(nodes: Iterable[ast.AST]) -> list[tuple[str, ast.expr]]:
    """Names with what they are bound to: `n, longest = len(ids), max(lengths)` binds each."""
    found: list[tuple[str, ast.expr]] = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found += _pairs(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            if node.value is not None:
                found += _pairs(node.target, node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            found += _turns(node.target, node.iter)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        target = target.value if isinstance(target, ast.Starred) else target
        return [(target.id, value)] if isinstance(target, ast.Name) else []
    parts = [value] * len(target.elts)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(parts):
        parts = value.elts
    return [
        pair for one, part in zip(target.elts, parts, strict=True) for pair in _pairs(one, part)
    ]


def _turns(target: ast.expr, over: ast.expr) -> list[tuple[str, ast.expr]]:
    """A counter goes as far as its range; what a loader gives is not known in advance."""
    called = name_of(over.func) if isinstance(over, ast.Call) else ""
    inner = over.args[0] if isinstance(over, ast.Call) and over.args else over
    if called in ("enumerate", "tqdm"):
        if called == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            counter, target = target.elts
            return [*_pairs(counter, ast.Constant(0)), *_turns(target, inner)]
        return _turns(target, inner)
    if called == "range":
        return _pairs(target, over)
    if called == "zip" and isinstance(over, ast.Call) and isinstance(target, (ast.Tuple, ast.List)):
        both = zip(target.elts, over.args, strict=False)
        return [pair for one, each in both for pair in _turns(one, each)]
    if is_lengths(over):
        return _pairs(target, ast.Name(EACH))
    known = called in ("zip", "items") or _is_table(over, frozenset())
    loaded = isinstance(target, ast.Tuple) and not known
    return _pairs(target, ast.Name(LOADED) if loaded else ast.Constant(0))


def _given(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    """What the parameters of the file's functions are given in it: `cut(ids, lengths.max())`."""
    functions = {
        one.name: [each.arg for each in one.args.args if each.arg != "self"]
        for one in ast.walk(tree)
        if isinstance(one, FUNCTIONS)
    }
    found: list[tuple[str, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) in functions:
            found += zip(functions[name_of(node.func)], node.args, strict=False)
            found += [(one.arg, one.value) for one in node.keywords if one.arg is not None]
    return found


def _computed(bindings: Sequence[tuple[str, ast.expr]], known: Names) -> Names:
    """Of these names, and of what they are made of."""
    made = [(name, _read(value)) for name, value in bindings]
    found: Names = {name: frozenset() for name, _ in made}
    changed = True
    while changed:
        changed = False
        for name, read in made:
            calls = found[name] | read.calls
            for other in read.names:
                calls |= found.get(other, known.get(other, frozenset()))
            for other in read.shapes:
                seen = found.get(other, known.get(other, frozenset()))
                calls |= seen if seen & FOUND else frozenset()
            changed = changed or calls != found[name]
            found[name] = calls
    return found


@dataclass(frozen=True, slots=True)
class _Read:
    """Of an expression: the calls in it, the names whose values it reads, and those of which it
    asks for a shape, or for a setting."""

    calls: frozenset[str]
    names: frozenset[str]
    shapes: frozenset[str]


def _read(value: ast.expr) -> _Read:
    calls, names, shapes = set[str](), set[str](), set[str]()

    def see(node: ast.AST, shape: bool) -> None:
        if isinstance(node, ast.Name):
            (calls if node.id in (LOADED, EACH) else shapes if shape else names).add(node.id)
        elif isinstance(node, ast.Call):
            if (name := name_of(node.func)) in SETTINGS:
                return
            if name not in OF_SHAPES and not name[:1].isupper():
                calls.add(name if name in LONGEST | FOUND else COMPUTED)
            of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            for one in (*of, *node.args, *(each.value for each in node.keywords)):
                see(one, shape or name in SHAPES)
        elif isinstance(node, ast.Attribute):
            see(node.value, shape or node.attr not in RESULTS)
        elif isinstance(node, ast.Subscript):
            if isinstance(node.value, ast.Name) and MANY_LENGTHS.search(node.value.id):
                calls.add(COMPUTED)  # of sorted texts: `lengths[0]`
            key = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
            see(node.value, shape or key)
            see(node.slice, shape)
        elif isinstance(node, ast.IfExp):
            see(node.body, shape)
            see(node.orelse, shape)
        else:
            inverts = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
            if (inverts or isinstance(node, ast.Compare)) and not shape:
                calls.add(COMPUTED)
            for child in ast.iter_child_nodes(node):
                see(child, shape)

    see(value, False)
    return _Read(frozenset(calls), frozenset(names), frozenset(shapes))


def _is_cut(cut: ast.expr, names: Names) -> bool:
    if not isinstance(cut, ast.Tuple):
        found = _bounds(cut, names) if isinstance(cut, ast.Slice) else frozenset[str]()
        return EACH in found or not LONGEST.isdisjoint(found)
    taken = [one for one in cut.elts if not isinstance(one, ast.Slice) and not _is_whole(one)]
    if any(isinstance(one, ast.Slice) and _bounds(one, names) for one in cut.elts[1:]):
        return True
    # Of several it takes elements, as of `scores[rows, targets]`.
    columns = len(taken) == 1 and taken[0] is not cut.elts[0]
    return columns and bool(_calls_in(taken[0], names) - {LOADED})


def _is_whole(one: ast.expr) -> bool:
    return isinstance(one, ast.Constant) and one.value in (None, ...)


def _bounds(cut: ast.Slice, names: Names) -> frozenset[str]:
    """Calls of which a slice's ends are made."""
    ends = [one for one in (cut.lower, cut.upper) if one is not None]
    return frozenset[str]().union(*(_calls_in(one, names) for one in ends))


def _calls_in(value: ast.expr, names: Names) -> frozenset[str]:
    """Of the data: what only a shape is asked for is none."""
    read = _read(value)
    known = (names.get(one, frozenset()) for one in (*read.names, *read.shapes))
    return read.calls.union(*known)
