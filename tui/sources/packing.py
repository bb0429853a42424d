"""Whether the source on the way to a net packs the texts of a batch, or trims it: then the net may
not compute on all the padding that its loader's batches have."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..verdict.code_origin import MACHINERY
from .source_places import FUNCTIONS, Function, Place, name_of

PACKS: Final = re.compile(
    r"pack_(padded_)?sequence|PackedSequence|EmbeddingBag|nested|unpad|varlen"
)
"""Names in a program whose nets may not compute on padding…"""
LIBRARY_PACKS: Final = re.compile(
    r"pack_(padded_)?sequence|PackedSequence|EmbeddingBag|nested_tensor|unpad_|varlen"
)
"""…and words in a library's file: those are large, and are not parsed."""
PYTORCH: Final = "torch/"
SHAPES: Final = frozenset(("size", "len", "dim", "ndimension", "numel"))
OF_SHAPES: Final = SHAPES | {
    *("min", "int", "slice", "range", "list", "tuple"),
    *("ceil", "floor", "round", "abs", "sqrt", "log2"),
    *("arange", "randperm", "triu_indices", "tril_indices", "tensor"),
}
"""Calls in a bound that show no texts' lengths by themselves: `table[:, : x.size(1)]` trims no
batch."""
FOUND: Final = frozenset(("nonzero", "argwhere", "flatnonzero", "masked_select"))
"""How much of it there is depends on the data."""
LOADED: Final = "loaded"
"""Stands for a call: `for ids, longest in loader`."""
COMPUTED: Final = "computed"
"""Stands for all other calls, and for `ids[0] != 0`."""
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
LENGTHS: Final = re.compile(r"(^|_)(lengths|lens|seqlens?|seq_?lens?|sequence_lengths?)$")
MANY_LENGTHS: Final = re.compile(r"(^|_)(lengths|lens|seqlens|seq_?lens)$")
"""By name; `seq_len` may be a number of the net's own, as in `x.view(-1, seq_len, 8)`."""
ON: Final = frozenset(("to", "cpu", "cuda", "long", "int", "tolist"))
"""Methods of lengths that are still these."""
BUILT_IN: Final = frozenset(("len", "max", "min", "sum", "range", "int", "list", "zip", "print"))

Names = dict[str, frozenset[str]]
"""What names stand for: the calls that have computed it."""


def is_another_library(path: str) -> bool:
    """Whether a file that is not the user's may pack, or keep a state: not PyTorch's own, nor
    Python's."""
    top = path.partition("/")[0].removesuffix(".py")
    return not (path.startswith((PYTORCH, "<", *MACHINERY)) or top in sys.stdlib_module_names)


def trims(tree: ast.Module) -> bool:
    """A text is cut where it was computed: `ids[:, : int((ids != 0).sum(1).max())]`, `ids[:, keep]`
    of a mask, `ids.narrow(1, 0, longest)`, or `ids[: lengths.max()]` of texts that lie the other
    way. An attribute of the net's that is cut is no batch but a table, as of positions:
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
    return any(_cuts(node, names, tables) for node in nodes)


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


def hands_lengths(way: Sequence[Place]) -> bool:
    """A function on the way, or the loop of a script, hands a call the lengths of its texts."""
    return any(
        isinstance(node, ast.Call) and _has_lengths(node)
        for place in way
        for node in ast.walk(place.scope if isinstance(place.scope, FUNCTIONS) else place.region())
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
class Read:
    """Of an expression: the calls in it, the names whose values it reads, and those of which it
    asks for a shape, or for a setting."""

    calls: frozenset[str]
    names: frozenset[str]
    shapes: frozenset[str]


def _read(value: ast.expr) -> Read:
    calls, names, shapes = set[str](), set[str](), set[str]()

    def see(node: ast.AST, shape: bool) -> None:
        if isinstance(node, ast.Name):
            (calls if node.id == LOADED else shapes if shape else names).add(node.id)
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
            key = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
            see(node.value, shape or key)
            see(node.slice, shape)
        elif isinstance(node, ast.IfExp):
            see(node.body, shape)
            see(node.orelse, shape)
        else:
            if isinstance(node, ast.Compare) and not shape:
                calls.add(COMPUTED)
            for child in ast.iter_child_nodes(node):
                see(child, shape)

    see(value, False)
    return Read(frozenset(calls), frozenset(names), frozenset(shapes))


def _is_cut(cut: ast.expr, names: Names) -> bool:
    if not isinstance(cut, ast.Tuple):
        return isinstance(cut, ast.Slice) and not LONGEST.isdisjoint(_bounds(cut, names))
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


def _has_lengths(call: ast.Call) -> bool:
    if any(
        one.arg is not None and LENGTHS.search(one.arg) and _is_of_batch(one.value)
        for one in call.keywords
    ):
        return True
    if isinstance(call.func, ast.Name) and call.func.id in BUILT_IN:
        return False
    own = isinstance(call.func, ast.Name) or (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "self"
    )
    wanted = LENGTHS if own else MANY_LENGTHS
    return any(wanted.search(_name_in(one)) and _is_of_batch(one) for one in call.args)


def _name_in(value: ast.expr) -> str:
    """ "lengths" of `lengths`, `batch.lengths`, `batch["lengths"]` and `lengths.cpu()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in ON:
            return ""
        value = value.func.value
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return str(value.slice.value)
    return name_of(value)


def _is_of_batch(value: ast.expr) -> bool:
    """Neither a number nor the net's own setting."""
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        return value.value.id != "self"
    return not isinstance(value, ast.Constant)
