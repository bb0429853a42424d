"""Recurrent layers that go both ways, of whose results one time is used: at the last one, the
direction that comes from there has read a single input."""

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any, Final, NamedTuple

from .needless import Needless
from .operation import Operation, Step, Value, Work, forward_readings
from .products import Parts, sum_in_parts

ONE_WAY: Final = "mkldnn_rnn_layer"
"""On a CPU: one direction of one layer, with times first…"""
REVERSE: Final = 8
"""…and whether it goes from the last: its argument, behind the operator's name."""
BOTH_WAYS: Final = "_cudnn_rnn"
"""On a GPU: all layers, in both directions…"""
LAYERS, BATCH_FIRST, BIDIRECTIONAL, BATCH_SIZES = 10, 11, 14, 15
JOINS: Final = frozenset({"cat", "stack"})
FEWEST_TIMES: Final = 8


class _Directions(NamedTuple):
    """The last layer's results, both ways side by side."""

    times: int
    operations: tuple[Operation, ...]
    """On a CPU forward and reverse; on a GPU one for both."""
    part: float
    """Of those of an operation that one direction takes."""
    results: Value
    states: tuple[int, ...]
    """Storages of the last states, which are of all times."""


def one_time(step: Step) -> Needless | None:
    """What the direction takes that ends where the program looks, with its backward, but for its
    first time."""
    return sum_in_parts(step, _needless_parts(step))


def _needless_parts(step: Step) -> Iterator[Parts]:
    readers = forward_readings(step)
    for both in _directions(step, readers):
        if any(storage in readers for storage in both.states):
            continue
        at = _only_time(both, (each for _, each in readers.get(both.results.storage, ())))
        if at is not None:
            # The reverse one begins at the last time, the other at the first.
            first = both.operations[-1 if at else 0]
            yield both.part * (1.0 - 1.0 / both.times), (first,)


def _directions(
    step: Step, readers: Mapping[int, list[tuple[Operation, Value]]]
) -> Iterator[_Directions]:
    made: dict[int, Operation] = {}
    for one in step.operations:
        if one.in_backward or one.work is Work.VIEW or not one.makes:
            continue
        made[one.makes[0].storage] = one
        known = len(one.arguments) > BATCH_SIZES  # else some are given by name
        if one.name == BOTH_WAYS and known and _is_set(one, BIDIRECTIONAL):
            layers = max(1, one.arguments[LAYERS][1])
            if one.arguments[BATCH_SIZES]:
                continue  # packed: what is last differs by the sequence
            times = one.makes[0].view[1][1 if _is_set(one, BATCH_FIRST) else 0]
            states = tuple(each.storage for each in one.makes[1:3])
            yield _Directions(times, (one,), 0.5 / layers, one.makes[0], states)
        if one.name == "cat" and len(one.reads) == len(("forward", "reverse")):
            ways = (made.get(each.storage) for each in one.reads)
            both = tuple(way for way in ways if way is not None and way.name == ONE_WAY)
            if [_is_set(way, REVERSE) for way in both] != [False, True]:
                continue
            if any(len(readers.get(way.makes[0].storage, ())) > 1 for way in both):
                continue
            last = [each.storage for way in both for each in way.makes[1:3]]
            joined = [
                reader
                for storage in last
                for reader, _ in readers.get(storage, ())
                if reader is not one
            ]
            if any(reader.name not in JOINS for reader in joined):
                continue
            states = tuple(each.storage for reader in joined for each in reader.makes)
            yield _Directions(one.makes[0].view[1][0], both, 1.0, one.makes[0], states)


def _is_set(one: Operation, argument: int) -> bool:
    given: tuple[Any, ...] = one.arguments[argument : argument + 1]
    return given == (("bool", True),)


def _only_time(both: _Directions, read: Iterable[Value]) -> int | None:
    """The time that all of these lie in, if it is the first or the last."""
    if both.times < FEWEST_TIMES:
        return None
    each_time = prod(both.results.view[1]) // both.times
    seen = set[int]()
    for each in read:
        if not each.is_strided:
            return None
        offset, sizes, strides = each.view[:3]
        last = offset + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))
        if not each_time or offset // each_time != last // each_time:
            return None
        seen.add(offset // each_time)
    if len(seen) != 1 or not seen <= {0, both.times - 1}:
        return None
    return seen.pop()
