"""What a traced step has shown, as it is sent."""

from typing import Any, Final

from .functions import functions_of
from .host_copies import host_copies
from .loops import largest_loop
from .needless import Needless, by_zeros
from .operation import NOWHERE, Step

MOST_FUNCTIONS: Final = 6
LEAST_PART: Final = 0.02
"""Of all operations' time, of a function that is named."""
CONSTANT: Final = 4
"""Where that stands among them."""


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
