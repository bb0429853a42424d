"""Products of a forward that were computed before, of the same two operands: those of a net that is
called twice for one input.

A node of the backward's graph keeps its operands for the gradient, so what they hold can be
compared. On the host some of their elements, and all of those that seem to be the same; on a device
some, which arrive later, of products that share their weight.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from .autocast import is_leaf, name_of
from .device_reads import Answers, DeviceReads
from .graph_rows import OPERANDS, ROW_BY_ROW, Product, rows_of
from .repeated import TRANSPOSED

DEEPEST: Final = 1_000
"""Operations along the rows of a product, at the most."""
FEWEST_VALUES: Final = 8
"""Of the elements that are compared, those that must be neither 0 nor alike: a mask, a one-hot row
or a state that begins with zeros is the same twice by its kind."""
MOST_COMPARED: Final = 1 << 22
"""Elements of a graph's operands that are compared."""
CAST: Final = "ToCopyBackward0"
Same = tuple[float, int, int]
"""The fields of `settings.SameProducts`."""
Later = Callable[[Answers], Same | None]
_Group = tuple[list[int], list[tuple[int, ...]] | None]
"""The arithmetic of each of some products, and the questions about each; None where not all of them
could be asked."""


def same_among(products: list[Product], whole: int) -> Same | None:
    """The part of all arithmetic that computes again what was computed, how many products there
    are, and how many different ones: as far as they were compared, those with most of it first."""
    torch = sys.modules["torch"]
    groups: dict[Any, list[Product]] = {}
    depths: dict[Any, int] = {}
    for one in products:
        if not one.flops:
            return None  # what it has kept was put away
        if one.first is None:
            continue
        first = _looks(one.first)
        second = _weight_of(one.node) if one.second is None else _looks(one.second)
        if first is not None and second is not None:
            key = (name_of(one.node), _how(one.node, depths), first, second)
            groups.setdefault(key, []).append(one)
    again, left = 0, MOST_COMPARED
    saved = 0
    for group in sorted(groups.values(), key=_flops_again, reverse=True):
        different: list[Product] = []
        for one in group:
            equal = False
            for other in different:
                equal, left = _are_same(other, one, left, torch)
                if equal or left < 0:
                    break
            again += equal
            saved += one.flops * equal
            different += [] if equal else [one]
    return (saved / whole, len(products), len(products) - again) if again else None


def same_on_device(products: list[Product], whole: int, reads: DeviceReads) -> Later | None:
    """The same of products on a device, once what was asked for has arrived. Products that share no
    weight (of attention) are asked for beside some that do."""
    groups: dict[Any, list[Product]] = {}
    depths: dict[Any, int] = {}
    for one in products:
        if not one.flops:
            return None  # what it has kept was put away
        weight = _weight_of(one.node)
        if one.first is not None and (weight is not None or one.second is not None):
            second = tuple(one.second.shape) if weight is None else weight
            key = name_of(one.node), _how(one.node, depths), tuple(one.first.shape), second
            groups.setdefault(key, []).append(one)
    shared = {key: group for key, group in groups.items() if len(group) > 1}
    if not any(_is_weight(key[-1]) for key in shared):
        return None
    groups_asked: list[_Group] = []
    for (*_, second), group in sorted(
        shared.items(), key=lambda each: _flops_again(each[1]), reverse=True
    ):
        numbers = [_asked(one, _is_weight(second), reads) for one in group]
        known = [one for one in numbers if one is not None]
        flops = [one.flops for one in group]
        groups_asked.append((flops, known if len(known) == len(group) else None))
    count = len(products)
    return lambda answers: _same_by(answers, groups_asked, whole, count)


def _asked(one: Product, has_weight: bool, reads: DeviceReads) -> tuple[int, ...] | None:
    operands = (one.first,) if has_weight else (one.first, one.second)
    numbers = [reads.some_of(operand) for operand in operands]
    known = tuple(number for number in numbers if number is not None)
    return known if len(known) == len(operands) else None


def _is_weight(second: Any) -> bool:
    """Not the shape of an operand."""
    return not isinstance(second, tuple)


def _same_by(answers: Answers, groups: Sequence[_Group], whole: int, count: int) -> Same | None:
    """Of one memory the operands are surely the same. Others, of which some elements were read, are
    so in all layers of a net that is called again: inputs that differ in one place alone make the
    next layers' differ more. So the least of all groups of as many products counts, and counts for
    those that could not be asked for."""
    asked = [(flops, _repeated(answers, numbers)) for flops, numbers in groups if numbers]
    least: dict[int, int] = {}
    for flops, repeated in asked:
        calls = len(flops)
        least[calls] = min(least.get(calls, calls), len(repeated))
    saved = again = 0.0
    for flops, repeated in asked:
        sure = [at for at, is_sure in repeated.items() if is_sure]
        others = [at for at, is_sure in repeated.items() if not is_sure]
        counts = (*sure, *others[: max(0, least[len(flops)] - len(sure))])
        saved += sum(flops[at] for at in counts)
        again += len(counts)
    for flops, numbers in groups:
        if not numbers:
            calls, known = len(flops), least.get(len(flops), 0)
            saved += known / calls * sum(flops)
            again += known
    return (saved / whole, count, count - round(again)) if again else None


def _repeated(answers: Answers, numbers: Iterable[tuple[int, ...]]) -> dict[int, bool]:
    """Places of those whose operands another one before them has, and whether they are the very
    same memory."""
    places: dict[Any, list[int]] = {}
    operands = list(numbers)
    for at, asked in enumerate(operands):
        places.setdefault(tuple(map(answers.bytes_of, asked)), []).append(at)
    alike = (each for each in places.values() if len(each) > 1)
    return {
        at: operands[at] in operands[:at]
        for first, *others in alike
        if all(_is_varied(answers.values_of(one)) for one in operands[first])
        for at in others
    }


def _is_varied(values: Iterable[float]) -> bool:
    return len({value for value in values if value}) >= FEWEST_VALUES


def _how(node: Any, depths: dict[Any, int]) -> Any:
    """What beside the operands makes a product another one: how a convolution goes over its input,
    and how far a gradient goes on to what its first operand is made of. Of a net that is asked
    about `h` and about `h.detach()` neither answer can be left out."""
    fields = ("stride", "padding", "dilation", "groups", "transposed", "output_padding")
    how = tuple(str(getattr(node, f"_saved_{one}", None)) for one in fields)
    return (*how, _depth_of(_rows_below(node), depths))


def _rows_below(node: Any) -> Any:
    if name_of(node) in ROW_BY_ROW:
        return rows_of(node)
    if name_of(node) in OPERANDS:
        return node.next_functions[0][0]
    return next((below for below, _ in node.next_functions if below is not None), None)


def _depth_of(node: Any, depths: dict[Any, int]) -> int:
    """Operations below, along the rows."""
    way: list[Any] = []
    while node is not None and node not in depths and not is_leaf(node) and len(way) < DEEPEST:
        way.append(node)
        node = _rows_below(node)
    depth = depths.get(node, 0)
    for one in reversed(way):
        depth += 1
        depths[one] = depth
    return depth


def _weight_of(node: Any) -> Any:
    """The leaf of a product's second operand; None of what is computed."""
    is_convolution = name_of(node).startswith("Convolution")
    below = node.next_functions[1 if is_convolution else -1][0]
    while below is not None and name_of(below) in (TRANSPOSED, CAST):
        below = below.next_functions[0][0]
    return below if below is not None and is_leaf(below) else None


def _flops_again(group: list[Product]) -> int:
    return sum(one.flops for one in group[1:])


def _looks(tensor: Any) -> Any:
    """Its shape and some elements, spread over it; None where these may be alike by their kind."""
    shape = tuple(tensor.shape)
    most = 8 if len(shape) <= 2 else 3
    part = tensor.detach()[tuple(slice(None, None, max(1, size // most)) for size in shape)]
    values = tuple(part.flatten().tolist())
    return (shape, values) if _is_varied(values) else None


def _are_same(one: Product, other: Product, left: int, torch: Any) -> tuple[bool, int]:
    """Whether all their elements are; and how many more may be compared. What is too large for that
    is not taken as the same."""
    for mine, its in ((one.first, other.first), (one.second, other.second)):
        if mine is None or its is None or mine.data_ptr() == its.data_ptr():
            continue
        left -= mine.numel()
        if left < 0 or not torch.equal(mine.detach(), its.detach()):
            return False, left
    return True, left
