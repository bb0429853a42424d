"""What the layers of a traced step take for rows that were gathered, repeated or made larger
before them, and not behind: a layer computes row by row, and single pixels as sums with weights,
so that either may come first. `settings.gathered` finds such layers by the graph."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import prod
from typing import Final, NamedTuple

from .operation import Operation, Step, Value, Work

LEAST_WIDTH: Final = 16
MOST_WIDER: Final = 2
"""As of `settings.gathered`."""
INDEXED: Final = ("index_select", "index", "embedding")
UPSAMPLES: Final = ("upsample_", "_upsample_")
"""Names begin with it; of the backward too, which is told by its node."""
CASTS: Final = ("_to_copy", "clone")
BY_ELEMENT: Final = frozenset(
    {"relu", "gelu", "silu", "elu", "leaky_relu", "hardtanh", "softplus", "tanh", "sigmoid"}
    | {"mul", "div", "add", "sub", "neg", "exp", "sin", "cos"}
)
"""With one tensor: done to each number by itself."""
CAT: Final = "cat"
REPEAT: Final = "repeat"
CONVOLUTION: Final = "convolution"
OPERAND: Final = {"mm": 0, "addmm": 1, CONVOLUTION: 0}
"""Which of what a product reads has the rows."""
STRIDED: Final = 4
"""Parts of the view of a strided tensor."""


class EarlyGathers(NamedTuple):
    """Operations of a step, and the layer that takes most of what could go."""

    ns: int
    """What could go: of the layers, of what makes rows that are not needed as many or as wide."""
    host_ns: int
    operations: int
    place: int
    layer: tuple[int, int, int, int]
    """Its rows or pixels, how many of them differ, and the widths of its inputs and outputs."""


class _Rows(NamedTuple):
    """What a storage holds."""

    part: float
    """Of the rows, those that differ: 0 to 1."""
    sizes: tuple[int, ...]
    """Of a tensor of them."""
    made_by: tuple[Operation, ...]
    """From the gather on."""
    is_larger: bool = False
    """A picture that was made larger, and no rows."""
    is_apart: bool = False
    """Side by side with others, which a layer puts together."""


class _Spared(NamedTuple):
    one: Operation
    ns: float
    host_ns: float
    rows: _Rows
    sizes: tuple[int, int, int]
    """Rows, and the widths of inputs and outputs."""


def early_gathers(step: Step) -> EarlyGathers | None:
    """None without any."""
    back = _backwards(step)
    readers = _readers(step)
    found = [
        _Spared(one, *_of_layer(one, rows, back), rows, sizes) for one, rows, sizes in _layers(step)
    ]
    if not found:
        return None
    gathers = {id(op): (op, each) for each in found for op in each.rows.made_by}
    ns, host_ns = sum(each.ns for each in found), sum(each.host_ns for each in found)
    layers = {id(each.one) for each in found}
    for op, each in gathers.values():
        own = _of_gather(op, each, back) if _is_for_layers(each, readers, layers) else (0.0, 0.0)
        ns, host_ns = ns + own[0], host_ns + own[1]
    places = Counter[int]()
    for each in found:
        places[each.one.place] += round(each.ns)
    most = max(found, key=lambda each: each.ns)
    rows, inputs, outputs = most.sizes
    layer = rows, round(rows * most.rows.part), inputs, outputs
    place, count = places.most_common(1)[0][0], len(found) + len(gathers)
    return EarlyGathers(round(ns), round(host_ns), count, place, layer)


def _layers(step: Step) -> Iterable[tuple[Operation, _Rows, tuple[int, int, int]]]:
    """Products of a forward on such rows."""
    held: dict[int, _Rows] = {}
    for one in step.operations:
        for written in one.writes:
            held.pop(written, None)
        if one.in_backward or not one.makes:
            continue
        rows = held.get(one.reads[0].storage) if one.reads else None
        made = _made(one, rows, held)
        if made is not None and made.part < 1.0:
            held[one.makes[0].storage] = made
        elif one.work is not Work.VIEW:
            held.pop(one.makes[0].storage, None)
        operand = OPERAND.get(one.name)
        if operand is None or len(one.reads) <= operand:
            continue
        source = held.get(one.reads[operand].storage)
        sizes = None if source is None else _sizes(one, one.reads[operand], source)
        if source is not None and sizes is not None:
            yield one, source, sizes
            if not (source.is_larger or source.is_apart):
                behind = source._replace(sizes=one.makes[0].view[1], made_by=())
                held[one.makes[0].storage] = behind


def _made(one: Operation, rows: _Rows | None, held: dict[int, _Rows]) -> _Rows | None:
    """What an operation puts into the storage that it makes; None of rows of their own."""
    source, made = one.reads[:1], one.makes[0]
    if not source or not _is_strided(made) or not _is_strided(source[0]):
        return None
    if one.name in INDEXED:
        return _indexed(one)
    if one.name.startswith(UPSAMPLES):
        sizes, before = made.view[1], source[0].view[1]
        is_picture = len(sizes) == len(before) and sizes[:2] == before[:2]
        part = prod(before) / max(1, prod(sizes))
        return _Rows(min(1.0, part), sizes, (one,), is_larger=True) if is_picture else None
    if one.name == CAT:
        return _put_together(one, held)
    if rows is not None and made.view[1] == source[0].view[1] and _keeps_rows(one, rows):
        return rows._replace(made_by=(*rows.made_by, one))
    if (one.name in CASTS or one.name == REPEAT) and source[0].bytes:
        return _repeated(one)
    return None


def _indexed(one: Operation) -> _Rows | None:
    """Rows of a table."""
    if len(one.reads) != len(("table", "index")):
        return None
    table, made = one.reads[0].view[1], one.makes[0].view[1]
    if len(table) != len(("rows", "width")) or made[-1:] != table[-1:]:
        return None
    return _Rows(min(1.0, table[0] / max(1, prod(made[:-1]))), made, (one,))


def _repeated(one: Operation) -> _Rows | None:
    """Of an expanded tensor whose rows are whole, each as often as it is written down."""
    source, made = one.reads[0], one.makes[0]
    sizes, strides = source.view[1:3]
    if one.name == REPEAT:
        alike = made.view[1][-1:] == sizes[-1:]
        part = prod(sizes) / max(1, prod(made.view[1]))
    else:
        alike = bool(sizes) and (strides[-1] != 0 or sizes[-1] == 1)
        part = prod(n for n, stride in zip(sizes, strides, strict=True) if stride) / prod(sizes)
    return _Rows(min(1.0, part), made.view[1], (one,)) if alike and sizes else None


def _put_together(one: Operation, held: dict[int, _Rows]) -> _Rows | None:
    """Of rows that are put side by side a product is the sum of those of each part."""
    sizes = one.makes[0].view[1]
    parts = [each.view[1] for each in one.reads if _is_strided(each)]
    if len(sizes) < 2 or len(parts) != len(one.reads):
        return None
    if any(part[:-1] != sizes[:-1] for part in parts):
        return None
    known = [held.get(each.storage) for each in one.reads]
    if any(each is not None and each.is_larger for each in known):
        return None
    expanded = [_expanded(each) for each in one.reads]
    shares = [
        min(own, rows.part if rows is not None else 1.0) * part[-1]
        for rows, part, own in zip(known, parts, expanded, strict=True)
        if part[-1] >= LEAST_WIDTH
    ]
    narrow = sum(part[-1] for part in parts if part[-1] < LEAST_WIDTH)
    return _Rows((sum(shares) + narrow) / max(1, sizes[-1]), sizes, (), is_apart=True)


def _expanded(value: Value) -> float:
    """Of a tensor's rows, those that it holds."""
    sizes, strides = value.view[1:3]
    if not sizes or not strides[-1]:
        return 1.0
    held = prod(n for n, stride in zip(sizes, strides, strict=True) if stride)
    return float(held / max(1, prod(sizes)))


def _keeps_rows(one: Operation, rows: _Rows) -> bool:
    """A change of type; of rows also what is done to each number by itself."""
    if one.name in CASTS:
        return True
    return not rows.is_larger and one.name in BY_ELEMENT and len(one.reads) == 1


def _sizes(one: Operation, operand: Value, rows: _Rows) -> tuple[int, int, int] | None:
    """Rows, inputs and outputs of a layer that could come first; None of one that could not."""
    sizes, made = operand.view[1], one.makes[0].view[1]
    if rows.is_larger != (one.name == CONVOLUTION) or len(sizes) < 2:
        return None
    if rows.is_larger and sizes != rows.sizes:
        return None
    if rows.is_larger:
        weight = one.reads[1].view[1]
        if max(weight[2:], default=0) != 1 or made[2:] != sizes[2:] or weight[1] != sizes[1]:
            return None
        inputs, outputs, widest = sizes[1], made[1], 1
        count = sizes[0] * prod(sizes[2:])
    elif operand.view[2][-1] != 1 or rows.sizes[-1] % sizes[-1]:
        return None  # on its side, or several rows in one
    else:
        inputs, outputs, widest = sizes[-1], made[-1], MOST_WIDER
        count = prod(sizes[:-1])
    return (
        (count, inputs, outputs) if inputs >= LEAST_WIDTH and outputs <= widest * inputs else None
    )


def _of_layer(one: Operation, rows: _Rows, back: dict[int, tuple[int, int]]) -> tuple[float, float]:
    goes, behind = 1.0 - rows.part, back.get(one.node, (0, 0))
    return goes * (one.ns + behind[0]), goes * (one.host_ns + behind[1])


def _of_gather(
    op: Operation, each: _Spared, back: dict[int, tuple[int, int]]
) -> tuple[float, float]:
    """What changes every number goes as the layer does; a gather stays, of the layer's results."""
    _, inputs, outputs = each.sizes
    is_first = op is each.rows.made_by[0]
    goes = 1.0 - outputs / max(1, inputs) if is_first else 1.0 - each.rows.part
    behind = back.get(op.node, (0, 0))
    return goes * (op.ns + behind[0]), goes * (op.host_ns + behind[1]) if not is_first else 0.0


def _is_for_layers(each: _Spared, readers: dict[int, set[int]], layers: set[int]) -> bool:
    """Nothing but such layers, and what is on the way to them, reads what the gather makes."""
    way = {id(op) for op in each.rows.made_by} | layers
    return all(readers[op.makes[0].storage] <= way for op in each.rows.made_by)


def _readers(step: Step) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for one in step.operations:
        if one.work is not Work.VIEW and not one.in_backward:
            for each in one.reads:
                found[each.storage].add(id(one))
    return found


def _backwards(step: Step) -> dict[int, tuple[int, int]]:
    """What goes back through each node, on the device and on the host."""
    found: dict[int, tuple[int, int]] = {}
    for one in step.operations:
        if one.in_backward:
            ns, host_ns = found.get(one.of_node, (0, 0))
            found[one.of_node] = ns + one.ns, host_ns + one.host_ns
    return found


def _is_strided(value: Value) -> bool:
    return len(value.view) == STRIDED
