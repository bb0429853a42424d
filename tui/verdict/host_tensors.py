"""Tensors without data in them that are made on the host, and copied to the GPU then."""

import ast
import re
from collections.abc import Sequence
from typing import Final

from .code_places import calls, copies_to_gpu, waits_for_gpu
from .place_names import line_of, users_function
from .stack_samples import FrameShare
from .syntax import nodes_in, root_of, statements_in

_MAKERS: Final = frozenset(
    f"torch.{name}"
    for name in (
        *("zeros", "ones", "full", "empty", "eye", "arange", "linspace"),
        *("rand", "randn", "randint", "randperm"),
    )
)
_OF_A_TYPE: Final = re.compile(
    r"torch\.(Bool|Byte|Char|Short|Int|Long|Half|Float|Double|BFloat16)Tensor"
)
"""`torch.BoolTensor(x.size())` is on the host whatever the default device; one of values is a
batch."""
_ELSEWHERE: Final = ("device", "out", None)
"""Named arguments, `**` among them, by which such a call may make it on the GPU."""
_CHANGES: Final = frozenset(
    ("fill_", "zero_", "bool", "byte", "long", "int", "half", "float", "double", "requires_grad_")
)
"""Methods that bring no data into it."""
_WRAPPERS: Final = frozenset(("Variable", "autograd.Variable", "torch.autograd.Variable"))
"""Which old code puts around a tensor, to no effect since PyTorch 0.4."""
_MOVES: Final = ("to", "cuda")
_ASKS: Final = ("size", "dim", "numel", "is_cuda")
"""Methods that ask for a number of it."""
FILLED: Final = re.compile(r"torch\.\w+\(")
"""The call in a line that makes such a tensor, and nothing else."""


def copied_at_once(place: FrameShare) -> bool:
    """Its line makes such a tensor and copies it as it is: 123 MB of zeros a step in a public
    seq2seq. One that is given data first (`scatter_`) is no less a copy on the GPU."""
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _MOVES
        and not _is_type(call)
        and _is_made(call.func.value)
        for call in nodes_in(place.line)
    )


def filled_then_copied(
    places: Sequence[FrameShare],
) -> tuple[tuple[FrameShare, ...], tuple[FrameShare, ...]]:
    """Lines of a net that make such a tensor under a name which another line of the same function
    copies to the GPU, and the lines that copy it (DeepSpeech's masks: 7 % and 15 % of an H200's
    time). Beside a net a batch is padded so, and filled with the host's data."""
    copied = [one for one in places if copies_to_gpu(one)]
    filled: list[FrameShare] = []
    moved: list[FrameShare] = []
    for one in places:
        name = _name_filled(one)
        if not name:
            continue
        function = [here for here in places if users_function(here) == users_function(one)]
        if any(_writes(here.line, name) for here in function):
            continue
        along = [here for here in function if here in copied and _copies(here.line, name)]
        last = max((line_of(here)[1] for here in along), default=0)
        before = [here.line for here in function if line_of(here)[1] <= last]
        if along and not any(_may_write(line, name) for line in before):
            filled.append(one)
            moved += [here for here in along if here not in moved]
    return tuple(filled), tuple(moved)


def _name_filled(place: FrameShare) -> str:
    """ "mask" of `mask = torch.zeros(n, m)`, all on one line; "" of anything else."""
    if place.phase == "data" or not place.in_net or copies_to_gpu(place) or waits_for_gpu(place):
        return ""
    match statements_in(place.line):
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if _is_made(value):
            return name if calls(place, FILLED) else ""
    return ""


def _is_made(node: ast.expr) -> bool:
    """It is such a call, on the host, and what changes no more than its type or one number."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(attr=method, value=inner)) if method in _CHANGES:
                node = inner
            case ast.Call(func=func, args=[inner]) if ast.unparse(func) in _WRAPPERS:
                node = inner
            case _:
                break
    if not isinstance(node, ast.Call) or any(one.arg in _ELSEWHERE for one in node.keywords):
        return False
    made = ast.unparse(node.func)
    if made in _MAKERS:
        return True
    sized = any(
        isinstance(one, ast.Attribute) and one.attr in ("size", "shape")
        for argument in node.args
        for one in ast.walk(argument)
    )
    return sized and _OF_A_TYPE.fullmatch(made) is not None


def _is_type(call: ast.Call) -> bool:
    """`.to(torch.long)`, `.to(x.dtype)`, `.to(dtype=...)`."""
    given = [*call.args, *(one.value for one in call.keywords)]
    if len(given) != 1 or any(one.arg == "device" for one in call.keywords):
        return False
    named = ast.unparse(given[0])
    return bool(call.keywords) or named.startswith("torch.") or named.endswith(".dtype")


def _copies(line: str, name: str) -> bool:
    return any(
        isinstance(one, ast.Attribute)
        and one.attr in _MOVES
        and isinstance(one.value, ast.Name)
        and one.value.id == name
        for one in nodes_in(line)
    )


def _writes(line: str, name: str) -> bool:
    """`padded[i] = row`, `padded[i].copy_(row)`, `hot.scatter_(1, labels, 1)`, `padded += rows`.
    Numbers are no data: `mask[i].narrow(0, n, rest).fill_(1)`."""
    for one in nodes_in(line):
        match one:
            case ast.Subscript(value=value, ctx=ast.Store()) | ast.AugAssign(target=value):
                written = value
            case ast.Assign(targets=[ast.Name() as value], value=ast.BinOp()):
                written = value
            case ast.Call(func=ast.Attribute(attr=method, value=value)) if (
                method.endswith("_") and not method.startswith("_") and method not in _CHANGES
            ):
                written = value
            case ast.keyword(arg="out", value=value):
                written = value
            case _:
                continue
        if root_of(written) == name:
            return True
    return False


def _may_write(line: str, name: str) -> bool:
    """It hands the tensor to a call, or loops over it: `self.fill(padded, rows)`, `zip(rows,
    padded)`. The shape of it, and the copy itself, tell no one where it is."""
    text = line.strip()
    for one in nodes_in(f"{text} pass" if text.endswith(":") else text):
        match one:
            case ast.Call(args=given, keywords=named) if ast.unparse(one.func) != "len":
                handed = [*given, *(keyword.value for keyword in named)]
            case ast.For(iter=over) | ast.comprehension(iter=over):
                handed = [over]
            case _:
                continue
        if any(_holds(each, name) for each in handed):
            return True
    return False


def _holds(node: ast.AST, name: str) -> bool:
    """The tensor itself, or a part of it; not a copy on the GPU, nor a number of it."""
    match node:
        case ast.Name(id=found):
            return found == name
        case ast.Attribute(attr="shape" | "dtype" | "device") | ast.Call(func=ast.Name(id="len")):
            return False
        case ast.Call(func=ast.Attribute(attr=method)) if method in (*_MOVES, *_ASKS):
            return False
    return any(_holds(child, name) for child in ast.iter_child_nodes(node))
