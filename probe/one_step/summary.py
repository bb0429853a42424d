"""What a traced step has shown, as it is sent."""

from typing import Any, Final, NamedTuple

from .functions import functions_of
from .loops import largest_loop
from .needless import Needless, by_zeros
from .operation import NOWHERE, Operation, Step

MOST_FUNCTIONS: Final = 6
LEAST_PART: Final = 0.02
"""Of all operations' time, of a function that is named."""
CONSTANT: Final = 4
"""Where that stands among the fields."""
COPIES: Final = ("_to_copy", "copy_")
_FILLERS: Final = """
    zeros zero_ ones full fill_ arange eye linspace zeros_like ones_like rand randn randint randperm
    normal_ uniform_ bernoulli_"""
FILLERS: Final = frozenset(_FILLERS.split())
"""They bring no data of the program's into a tensor."""


class HostCopies(NamedTuple):
    """Of one step."""

    copies: int
    bytes: int
    made_bytes: int
    """Of these, what holds no data, but zeros, numbers in order or at random."""
    made_at: int
    """Where most of that is copied."""


def host_copies(step: Step) -> HostCopies:
    """Those in forward and loss, and what lies between the phases."""
    filled: dict[int, str] = {}
    """What was last put into a storage, by the operation's name."""
    count = held = made = most = 0
    made_at = -1
    for one in step.operations:
        source = _copied(one)
        if source is not None:
            count += 1
            held += source[1]
            if filled.get(source[0]) in FILLERS:
                made += source[1]
                if source[1] > most:
                    most, made_at = source[1], one.place
        read = {each.storage for each in one.reads}
        for storage in {
            each.storage for each in one.makes if each.storage not in read
        } | one.writes:
            filled[storage] = one.name
    return HostCopies(count, held, made, made_at)


def _copied(one: Operation) -> tuple[int, int] | None:
    """The storage that is copied to a device, and its bytes."""
    if one.name not in COPIES or not one.reads or not one.makes or one.makes[0].on_host:
        return None
    source = one.reads[-1]
    return (source.storage, source.bytes) if source.on_host else None


def summary_of(step: Step, found: tuple[Needless | None, ...]) -> tuple[Any, ...]:
    """The fields of `settings.StepOperations` behind the first."""
    whole = sum(one.ns for one in step.operations)
    host = sum(one.host_ns for one in step.operations)
    functions = tuple(
        (
            *(_place(step, one.place), one.ns // 1000, one.host_ns // 1000),
            *(one.backward_ns // 1000, one.unlearned_ns // 1000, one.fusible_ns // 1000),
            *(one.fused_ns // 1000, one.operations, one.operation, one.operation_ns // 1000),
        )
        for one in functions_of(step)[:MOST_FUNCTIONS]
        if one.ns >= LEAST_PART * whole
    )
    needless = (None if one is None else _needless(step, one) for one in found)
    zeros = by_zeros(step)
    empty = None if zeros is None else (*_needless(step, zeros[0]), round(1e6 * zeros[1]))
    totals = len(step.operations), whole // 1000, host // 1000
    copied = host_copies(step)
    to_device = *copied[:3], _place(step, copied.made_at)
    loop = largest_loop(step)
    turning = (
        None if loop is None else (_place(step, loop.place), *_us(loop.ns, loop.host_ns), *loop[3:])
    )
    return *totals, functions, *needless, empty, to_device, turning


def _needless(step: Step, one: Needless) -> tuple[Any, ...]:
    return _place(step, one.place), *_us(one.ns, one.host_ns), one.operations


def _us(*ns: int) -> tuple[int, ...]:
    return tuple(each // 1000 for each in ns)


def _place(step: Step, place: int) -> str:
    """ "Net.forward (/home/me/train.py:12)", as samples have it."""
    if place == NOWHERE:
        return ""
    one = step.places[place]
    return f"{one.function} ({one.file}:{one.line})"
