"""What the layers of a traced step take for rows that were gathered, repeated or made larger
before them: a layer computes row by row, and single pixels as sums with weights, so that it may
come first, and its results be gathered. `settings.gathered` finds such layers by the graph."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import prod
from typing import Final, NamedTuple

from ..settings.gathered import DEEPEST, LEAST_WIDTH, MOST_WIDER
from .operation import NOWHERE, TENSOR, Operation, Step, Value, Work, readers_of

INDEXED: Final = ("index_select", "index", "embedding")
UPSAMPLES: Final = ("upsample_", "_upsample_")
"""Names begin with it; of the backward too, which is known by its node."""
CASTS: Final = ("_to_copy", "clone")
BY_ELEMENT: Final = frozenset(
    {"relu", "gelu", "silu", "elu", "leaky_relu", "hardtanh", "softplus", "tanh", "sigmoid"}
    | {"mul", "div", "add", "sub", "neg", "exp", "sin", "cos"}
)
"""With one tensor: done to each number by itself."""
CAT: Final = "cat"
REPEAT: Final = "repeat"
CONVOLUTION: Final = "convolution"
ADDMM: Final = "addmm"
OPERAND: Final = {"mm": 0, ADDMM: 1, CONVOLUTION: 0}
"""Which of what a product reads has the rows."""
BACK: Final = 2.0
"""Times as long as a gather the sum of its gradients takes, which a table without one spares."""


class EarlyGathers(NamedTuple):
    """Operations of a step, and the layer that takes most of what could go."""

    ns: int
    """What could go: of the layers, less what gathering their results takes instead."""
    host_ns: int
    operations: int
    place: int
    layer: tuple[int, int, int, int]
    """Its rows or pixels, how many of them differ, and the widths of its inputs and outputs."""


class _Rows(NamedTuple):
    """What a storage holds."""

    distinct: float
    """How many rows, or pixels, differ."""
    sizes: tuple[int, ...]
    """Of a tensor of all."""
    gather: Operation | None = None
    """Which made them; None of what is put together."""
    width: int = 1
    """Of a row as it was gathered…"""
    gathered: int = 0
    """…and of a layer's results, where one that could come first has made these of it."""
    way: tuple[Operation, ...] = ()
    """From there on."""
    is_larger: bool = False
    """A picture that was made larger, and no rows."""
    is_apart: bool = False
    """Side by side with others, which a layer puts together."""


class _Layer(NamedTuple):
    """One that could come first."""

    one: Operation
    rows: _Rows
    part: float
    """Of its rows, those that differ: 0 to 1."""
    size: int
    """Rows, or pixels."""
    inputs: int
    outputs: int


Times = tuple[float, float]
"""On the device and on the host, ns."""


def early_gathers(step: Step) -> EarlyGathers | None:
    """None where nothing would be gained."""
    back = _backwards(step)
    readers = readers_of(one for one in step.operations if not one.in_backward)
    groups: dict[int, list[_Layer]] = defaultdict(list)
    for each in _layers(step):
        groups[id(each.one if each.rows.gather is None else each.rows.gather)].append(each)
    gained = [(_gain_of(group, back, readers), group) for group in groups.values()]
    gained = [(times, group) for times, group in gained if times[0] > 0]
    if not gained:
        return None
    found = [each for _, group in gained for each in group]
    most = max(found, key=lambda each: _of_layer(each, back)[0])
    places = Counter[int]()
    for each in found:
        places[each.one.place] += round(_of_layer(each, back)[0])
    return EarlyGathers(
        round(sum(times[0] for times, _ in gained)),
        round(sum(times[1] for times, _ in gained)),
        len(found) + len(gained),
        places.most_common(1)[0][0],
        (most.size, round(most.size * most.part), most.inputs, most.outputs),
    )


def _gain_of(group: list[_Layer], back: dict[int, Times], readers: dict[int, set[int]]) -> Times:
    """Of layers behind one gather: what they and what is done on the way to them would take less,
    and the gather itself, where nothing else reads it; less a gather of each one's results."""
    rows = group[0].rows
    every = {id(each.one) for each in group} | {id(op) for each in group for op in each.rows.way}
    ns, host_ns = 0.0, 0.0
    for each in group:
        own = _of_layer(each, back)
        ns, host_ns = ns + own[0], host_ns + own[1]
    parts = {id(op): (op, each.part) for each in group for op in each.rows.way}
    for op, part in parts.values():
        if readers[op.makes[0].storage] <= every:
            ns += (1.0 - part) * _with_back(op, back)[0]
            host_ns += (1.0 - part) * _with_back(op, back)[1]
    gather = rows.gather
    if gather is None:
        return ns, host_ns
    took, _ = _with_back(gather, back)
    again = took
    if gather.node == NOWHERE and any(each.one.node != NOWHERE for each in group):
        again += BACK * gather.ns
    ns -= sum(each.outputs - each.rows.gathered for each in group) / max(1, rows.width) * again
    if readers[gather.makes[0].storage] <= every:
        ns += took
    return ns, host_ns


def _layers(step: Step) -> Iterable[_Layer]:
    """Products of a forward on such rows."""
    held: dict[int, _Rows] = {}
    for one in step.operations:
        for written in one.writes:
            held.pop(written, None)
        if one.in_backward or not one.makes:
            continue
        rows = held.get(one.reads[0].storage) if one.reads else None
        made = _made(one, rows, held)
        if made is not None:
            held[one.makes[0].storage] = made
        elif one.work is not Work.VIEW:
            held.pop(one.makes[0].storage, None)
        layer = _layer_of(one, held)
        if layer is None or one.place in step.closed:
            continue
        yield layer
        source = layer.rows
        if not (source.is_larger or source.is_apart) and _has_plain_bias(one):
            held[one.makes[0].storage] = source._replace(
                distinct=layer.part * layer.size,
                sizes=one.makes[0].view[1],
                gathered=layer.outputs,
                way=(),
            )


def _has_plain_bias(one: Operation) -> bool:
    """Or none: a sum with rows of its own has as many that differ."""
    return one.name != ADDMM or len(one.reads[0].view[1]) == 1


def _made(one: Operation, rows: _Rows | None, held: dict[int, _Rows]) -> _Rows | None:
    """What an operation puts into the storage that it makes; None of rows of their own."""
    source, made = one.reads[:1], one.makes[0]
    if not source or not (made.is_strided and source[0].is_strided):
        return None
    if one.name in INDEXED:
        return _indexed(one)
    if one.name.startswith(UPSAMPLES):
        sizes, before = made.view[1], source[0].view[1]
        is_picture = 2 < len(sizes) == len(before) and sizes[:2] == before[:2]
        distinct = before[0] * prod(before[2:])
        return _Rows(distinct, sizes, one, sizes[1], is_larger=True) if is_picture else None
    if one.name == CAT:
        return _put_together(one, held)
    if rows is not None and made.view[1] == source[0].view[1] and _keeps_rows(one, rows):
        return rows._replace(way=(*rows.way, one)) if len(rows.way) < DEEPEST else None
    return _repeated(one) if one.name in CASTS or one.name == REPEAT else None


def _indexed(one: Operation) -> _Rows | None:
    """Rows of a table."""
    if len(one.reads) != len(("table", "index")):
        return None
    table, index, made = one.reads[0].view[1], one.reads[1].view[1], one.makes[0].view[1]
    if len(table) != len(("rows", "width")) or made[-1:] != table[-1:]:
        return None
    if one.name == "index" and one.arguments[2:3] != ((TENSOR,),):
        return None  # columns, or some rows of some columns
    if one.name == "index_select" and one.arguments[2:3] != (("int", 0),):
        return None
    return _Rows(table[0], made, one, made[-1]) if made[:-1] == index else None


def _repeated(one: Operation) -> _Rows | None:
    """Of an expanded tensor whose rows are whole, each as often as it is written down."""
    source, made = one.reads[0].view, one.makes[0].view[1]
    sizes = source[1]
    if not sizes or not prod(sizes) or made[-1:] != sizes[-1:]:
        return None
    distinct = prod(sizes[:-1]) if one.name == REPEAT else _held(one.reads[0])
    return _Rows(distinct, made, one, made[-1]) if distinct < prod(made[:-1]) else None


def _put_together(one: Operation, held: dict[int, _Rows]) -> _Rows | None:
    """Of rows that are put side by side a product is the sum of those of each part."""
    sizes = one.makes[0].view[1]
    parts = [each.view[1] for each in one.reads if each.is_strided]
    if len(sizes) < len(("rows", "width")) or len(parts) != len(one.reads):
        return None
    if any(part[:-1] != sizes[:-1] for part in parts):
        return None
    known = [held.get(each.storage) for each in one.reads]
    if any(each is not None and (each.is_larger or each.is_apart) for each in known):
        return None
    count, together = prod(sizes[:-1]), 0.0
    for value, rows, part in zip(one.reads, known, parts, strict=True):
        distinct = float(min(count, _held(value)))
        if rows is not None and rows.sizes == part:
            distinct = min(distinct, rows.distinct)
        together += (count if part[-1] < LEAST_WIDTH else distinct) * part[-1]
    distinct = together / max(1, sizes[-1])
    return _Rows(distinct, sizes, None, sizes[-1], is_apart=True) if distinct < count else None


def _held(value: Value) -> int:
    """Of a tensor's rows, those that it holds: of an expanded one each once. All where a row has
    fewer numbers than its width."""
    sizes, strides = value.view[1:3]
    if not strides[-1] and sizes[-1] > 1:
        return prod(sizes[:-1])
    return prod(n for n, stride in zip(sizes[:-1], strides[:-1], strict=True) if stride)


def _keeps_rows(one: Operation, rows: _Rows) -> bool:
    """A change of type, or a copy of rows that lie in a row; of rows also what is done to each
    number by itself."""
    if one.name in CASTS:
        return rows.is_larger or one.reads[0].view[2][-1:] == (1,)
    return not rows.is_larger and one.name in BY_ELEMENT and len(one.reads) == 1


def _layer_of(one: Operation, held: dict[int, _Rows]) -> _Layer | None:
    """None of one that could not come first, or whose rows all differ."""
    at = OPERAND.get(one.name)
    if at is None or len(one.reads) <= at or not one.reads[at].is_strided:
        return None
    operand, rows = one.reads[at], held.get(one.reads[at].storage)
    if rows is None or rows.is_larger != (one.name == CONVOLUTION):
        return None
    sizes, made, distinct = operand.view[1], one.makes[0].view[1], rows.distinct
    if rows.is_larger:
        weight = one.reads[1].view[1]
        if max(weight[2:], default=0) != 1 or made[2:] != sizes[2:] or weight[1] != sizes[1]:
            return None
        inputs, outputs, widest, count = sizes[1], made[1], 1, sizes[0] * prod(sizes[2:])
    else:
        inputs, outputs, widest, count = sizes[-1], made[-1], MOST_WIDER, prod(sizes[:-1])
        if not inputs or operand.view[2][-1] != 1 or rows.sizes[-1] % inputs:
            return None  # on its side, or several rows in one
        distinct *= rows.sizes[-1] // inputs
    is_whole = sizes == rows.sizes or (
        not rows.is_larger and inputs == rows.sizes[-1] and prod(sizes) == prod(rows.sizes)
    )
    if (rows.is_larger or rows.is_apart) and not is_whole:
        return None
    if inputs < LEAST_WIDTH or outputs > widest * inputs or distinct >= count:
        return None
    return _Layer(one, rows, distinct / count, count, inputs, outputs)


def _of_layer(each: _Layer, back: dict[int, Times]) -> Times:
    ns, host_ns = _with_back(each.one, back)
    return (1.0 - each.part) * ns, (1.0 - each.part) * host_ns


def _with_back(one: Operation, back: dict[int, Times]) -> Times:
    behind = back.get(one.node, (0.0, 0.0)) if one.node != NOWHERE else (0.0, 0.0)
    return one.ns + behind[0], one.host_ns + behind[1]


def _backwards(step: Step) -> dict[int, Times]:
    """What goes back through each node. What a checkpoint computes again there makes nodes."""
    found: dict[int, Times] = {}
    for one in step.operations:
        if one.in_backward and one.node == NOWHERE and one.work is not Work.VIEW:
            ns, host_ns = found.get(one.of_node, (0.0, 0.0))
            found[one.of_node] = ns + one.ns, host_ns + one.host_ns
    return found
