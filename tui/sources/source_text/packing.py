"""Whether the source on the way to a net packs the texts of a batch, or hands on their lengths:
then the net may not compute on all the padding that its loader's batches have."""

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...verdict.code_origin import MACHINERY
from ...verdict.syntax import name_of
from .places import FUNCTIONS, LOOPS, Place, holds, learns, nodes_outside
from .value_flow import Names, Values, reached, read

PACKS: Final = re.compile(
    r"pack_(padded_)?sequence|PackedSequence|EmbeddingBag|nested|unpad|varlen|trim_(batch|pad)"
)
"""Names in a program whose nets may not compute on padding…"""
LIBRARY_PACKS: Final = re.compile(
    r"pack_(padded_)?sequence|PackedSequence|EmbeddingBag|nested_tensor|unpad_|varlen"
)
"""…and words in a library's file: those are large, and are not parsed."""
PYTORCH: Final = "torch/"
LENGTHS: Final = re.compile(r"(^|_)(lengths|lens|seqlens?|seq_?lens?|sequence_lengths?)$")
MANY_LENGTHS: Final = re.compile(r"(^|_)(lengths|lens|seqlens|seq_?lens)$")
"""By name; `seq_len` may be a number of the net's own, as in `x.view(-1, seq_len, 8)`."""
ON: Final = frozenset(("to", "cpu", "cuda", "long", "int", "tolist"))
"""Methods of lengths that are still these."""
CHOOSES: Final = re.compile(r"sampler|bucket|loader|dataset", re.IGNORECASE)
"""In names of what is handed the lengths of all texts, to put batches together: it is no net."""
UNPACKS: Final = "pad_packed_sequence"
POOLS: Final = re.compile(
    r"(mean|sum|max|min|gather|select|masked_\w+|index_\w+|logsumexp|\w*pool\w*|\w*attention\w*)$",
    re.IGNORECASE,
)
"""Calls whose result has other positions than what they are given."""
PICKS: Final = re.compile(r"mask|len|last|keep|valid")
"""In the name of an index: it takes some of the positions, or rows without their padding."""
BUILT_IN: Final = frozenset(("len", "max", "min", "sum", "range", "int", "list", "zip", "print"))


def is_another_library(path: str) -> bool:
    """Whether a file that is not the user's may pack, or keep a state: not PyTorch's own, nor
    Python's."""
    top = path.partition("/")[0].removesuffix(".py")
    return not (path.startswith((PYTORCH, "<", *MACHINERY)) or top in sys.stdlib_module_names)


def hands_lengths(way: Sequence[Place]) -> bool:
    """A function on the way hands a call the lengths of its texts. Of one that trains it is the
    loop that does: what stands before that, or calls it, has no batch yet."""
    for place in way:
        loops = [one for one in place.around() if isinstance(one, LOOPS)]
        step = next(filter(learns, reversed(loops)), None)
        region = step or _with_batch(place, loops)
        if any(isinstance(node, ast.Call) and _has_lengths(node) for node in ast.walk(region)):
            return True
        if step is not None:
            return False
    return False


def _with_batch(place: Place, loops: Sequence[ast.AST]) -> ast.AST:
    """The function; of a script the loop around the line, or the statement alone, for what it
    begins may make the batches."""
    if isinstance(place.scope, FUNCTIONS):
        return place.scope
    statements = [one for one in place.around() if isinstance(one, ast.stmt)]
    return next(iter((*loops, *statements)), place.scope)


def is_padded_again(place: Place) -> bool:
    """Its line computes, position by position, what `pad_packed_sequence` has given in the same
    function."""
    if not isinstance(place.scope, FUNCTIONS):
        return False
    calls = (
        one
        for one in nodes_outside(place.scope, FUNCTIONS)
        if isinstance(one, ast.Call) and name_of(one.func) == UNPACKS
    )
    computed = Values(
        ends=lambda one, _, known: bool(known) and holds(one, place.line),
        reads=_at_positions,
        returns=False,
    )
    return any(reached([replace(place, line=one.lineno)], computed) for one in calls)


def _at_positions(node: ast.AST, _: Place) -> Names:
    """What a statement reads, unless it makes something without these positions of it."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and POOLS.match(name_of(one.func)):
            return set()
        if isinstance(one, ast.Subscript) and _picks(one):
            return set()
    return read(node)


def _picks(taken: ast.Subscript) -> bool:
    """`out[:, -1]`, `out[rows, lengths - 1]`, `out[mask]`; neither slices, nor an order of the
    rows, `out[order]`, nor one of what a call gives."""
    index = taken.slice
    if isinstance(index, ast.Name):
        return PICKS.search(index.id) is not None
    if isinstance(index, ast.Constant) and isinstance(taken.value, ast.Call):
        return False
    each = index.elts if isinstance(index, ast.Tuple) else [index]
    return not all(isinstance(one, ast.Slice) for one in each)


def _has_lengths(call: ast.Call) -> bool:
    if CHOOSES.search(name_of(call.func)):
        return False
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
