"""What a traced step has shown, as it is sent."""

from collections import defaultdict
from typing import Any, Final, NamedTuple

from .early_gathers import EarlyGathers, early_gathers
from .functions import functions_of
from .inverses import inverses
from .loops import Loop, largest_loop
from .multiplied_out import multiplied_out
from .needless import Needless, by_zeros, sorted_for_few
from .new_memory import new_memory
from .one_hot import one_hot
from .one_time import one_time
from .operation import NOWHERE, Step, Work, is_all_on_host
from .picked import picked
from .product_order import costly_order
from .slow_forms import Transforms, castable_ns, full_products, slow_transforms
from .zeroed import zeroed

MOST_FUNCTIONS: Final = 6
LEAST_PART: Final = 0.02
"""Of all operations' time, of a function that is named."""
_FILLERS: Final = """
    zeros zero_ ones full fill_ arange eye linspace zeros_like ones_like rand randn randint randperm
    normal_ uniform_ bernoulli_"""
FILLERS: Final = frozenset(_FILLERS.split())
"""They bring no data of the program's into a tensor."""


Row = tuple[Any, ...]
"""The fields of one of its structures."""


class HostCopies(NamedTuple):
    """Of one step."""

    copies: int
    bytes: int
    made_bytes: int
    """Of these, what holds no data, but zeros, numbers in order or at random."""
    made_at: int
    """Where most of that is copied."""


class Found(NamedTuple):
    """Operations that need not be, as `settings.StepOperations` has them."""

    constant: Needless | None
    repeated: Needless | None
    unread: Needless | None
    scattered: Needless | None


class Summary(NamedTuple):
    """The fields of `settings.StepOperations` behind the first, as they are sent."""

    operations: int
    us: int
    host_us: int
    functions: tuple[Row, ...] = ()
    constant: Row | None = None
    repeated: Row | None = None
    unread: Row | None = None
    scattered: Row | None = None
    zeros: Row | None = None
    host_copies: Row | None = None
    loop: Row | None = None
    gathered: Row | None = None
    on_host: Row | None = None
    wall_us: int | None = None
    """From its beginning to its end, without what taking it down has cost."""
    multiplied_out: Row | None = None
    costly_order: Row | None = None
    full_products: Row | None = None
    transforms: Row | None = None
    zeroed: Row | None = None
    castable_us: int | None = None
    picked: Row | None = None
    one_time: Row | None = None
    new_memory: Row | None = None
    one_hot: Row | None = None
    few_sorted: Row | None = None
    inverses: Row | None = None


def host_copies(step: Step) -> HostCopies:
    """Those in forward and loss, and what lies between the phases."""
    filled: dict[int, str] = {}
    """What was last put into a storage, by the operation's name."""
    count = held = made = most = 0
    made_at = NOWHERE
    for one in step.operations:
        source = one.brings
        if source is not None:
            count += 1
            held += source.bytes
            if filled.get(source.storage) in FILLERS:
                made += source.bytes
                if source.bytes > most:
                    most, made_at = source.bytes, one.place
        read = {each.storage for each in one.reads}
        for storage in {
            each.storage for each in one.makes if each.storage not in read
        } | one.writes:
            filled[storage] = one.name
    return HostCopies(count, held, made, made_at)


def on_host(step: Step) -> Needless | None:
    """What a step on a device computes from tensors on the host, before it copies any."""
    if is_all_on_host(step.operations):
        return None
    own = [one for one in step.operations if one.work is not Work.VIEW and one.is_on_host]
    if not own:
        return None
    lines: dict[int, int] = defaultdict(int)
    for one in own:
        lines[one.place] += one.host_ns
    whole = sum(lines.values())
    return Needless(whole, whole, len(own), max(lines, key=lines.__getitem__))


def summary_of_forward(step: Step) -> Summary:
    """Of a step whose backward was not traced: what lies on the host. That it took no time says
    so."""
    return Summary(len(step.operations), us=0, host_us=0, **_beside_device(step))


def summary_of(step: Step, found: Found, wall_ns: int) -> Summary:
    """Of one step, which took so long but for taking it down."""
    whole = sum(one.ns for one in step.operations)
    functions = tuple(
        (
            *(_place(step, one.place), one.ns // 1000, one.host_ns // 1000),
            *(one.backward_ns // 1000, one.unlearned_ns // 1000, one.fusible_ns // 1000),
            *(one.fused_ns // 1000, one.operations, one.operation, one.operation_ns // 1000),
        )
        for one in functions_of(step)[:MOST_FUNCTIONS]
        if one.ns >= LEAST_PART * whole
    )
    zeros, loop = by_zeros(step), largest_loop(step)
    early = early_gathers(step)
    of_step = multiplied_out(step), costly_order(step), full_products(step), zeroed(step)
    of_few = picked(step), one_time(step), one_hot(step), sorted_for_few(step), inverses(step)
    constant, repeated, unread, scattered, *of_products, chosen, once, rows, few, inverse = (
        None if one is None else _needless(step, one) for one in (*found, *of_step, *of_few)
    )
    narrow, ordered, full, zero = of_products
    slow, memory = slow_transforms(step), new_memory(step)
    return Summary(
        operations=len(step.operations),
        us=whole // 1000,
        host_us=sum(one.host_ns for one in step.operations) // 1000,
        functions=functions,
        constant=constant,
        repeated=repeated,
        unread=unread,
        scattered=scattered,
        zeros=None if zeros is None else (*_needless(step, zeros[0]), round(1e6 * zeros[1])),
        loop=None if loop is None else (*_needless(step, loop), loop.turns),
        gathered=None if early is None else (*_needless(step, early), *early.layer),
        wall_us=wall_ns // 1000,
        multiplied_out=narrow,
        costly_order=ordered,
        full_products=full,
        zeroed=zero,
        castable_us=castable_ns(step) // 1000,
        transforms=None if slow is None else (*_needless(step, slow), slow.length),
        picked=chosen,
        one_time=once,
        one_hot=rows,
        few_sorted=few,
        inverses=inverse,
        new_memory=None if memory is None else (_place(step, memory.place), *memory[1:]),
        **_beside_device(step),
    )


def _beside_device(step: Step) -> dict[str, Any]:
    copied, computed = host_copies(step), on_host(step)
    return {
        "host_copies": (*copied[:3], _place(step, copied.made_at)),
        "on_host": None if computed is None else _needless(step, computed),
    }


def _needless(step: Step, one: Needless | Loop | EarlyGathers | Transforms) -> Row:
    return _place(step, one.place), one.ns // 1000, one.host_ns // 1000, one.operations


def _place(step: Step, place: int) -> str:
    """ "Net.forward (/home/me/train.py:12)", as samples have it."""
    if place == NOWHERE:
        return ""
    one = step.places[place]
    return f"{one.function} ({one.file}:{one.line})"
