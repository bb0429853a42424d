"""What a traced step has shown, as it is sent."""

from collections import Counter, defaultdict
from typing import Any, Final, NamedTuple

from .costly_operators import few_sorted, inverse, one_hot
from .early_gathers import EarlyGathers, early_gathers
from .functions import functions_of
from .loops import Loop, largest_loop
from .multiplied_out import multiplied_out
from .needless import Needless, by_zeros
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
LARGE: Final = 131_072
"""Bytes from which glibc first maps a block apart (M_MMAP_THRESHOLD); smaller ones stay in the
heap."""


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


class NewMemory(NamedTuple):
    """Of the function that makes most of it, with what goes back through its operations."""

    place: int
    """The line that makes most of that."""
    bytes: int
    of_bytes: int
    """Of all functions."""


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
    inverse: Row | None = None


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


def new_memory(step: Step) -> NewMemory | None:
    """Large tensors that a step makes anew on a CPU: glibc's allocator gives their memory back to
    the kernel as they are freed. None where a step has a device, or makes nothing so large."""
    if not is_all_on_host(step.operations):
        return None
    lines, functions = Counter[int](), Counter[tuple[str, str]]()
    whole = 0
    for one in step.operations:
        held = {each.storage for each in one.reads} | one.writes
        new = sum(
            {
                each.storage: each.bytes
                for each in one.makes
                if each.bytes >= LARGE and each.storage not in held
            }.values()
        )
        whole += new
        if new and one.place != NOWHERE:
            lines[one.place] += new
            functions[step.places[one.place][:2]] += new
    if not functions:
        return None
    function, held_bytes = functions.most_common(1)[0]
    place = next(place for place, _ in lines.most_common() if step.places[place][:2] == function)
    return NewMemory(place, held_bytes, whole)


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
    slow, memory = slow_transforms(step), new_memory(step)
    needless = {
        **found._asdict(),
        "multiplied_out": multiplied_out(step),
        "costly_order": costly_order(step),
        "full_products": full_products(step),
        "zeroed": zeroed(step),
        "picked": picked(step),
        "one_time": one_time(step),
        "one_hot": one_hot(step),
        "few_sorted": few_sorted(step),
        "inverse": inverse(step),
    }
    rows: dict[str, Any] = {
        name: None if one is None else _needless(step, one) for name, one in needless.items()
    }
    return Summary(
        operations=len(step.operations),
        us=whole // 1000,
        host_us=sum(one.host_ns for one in step.operations) // 1000,
        functions=functions,
        zeros=None if zeros is None else (*_needless(step, zeros[0]), round(1e6 * zeros[1])),
        loop=None if loop is None else (*_needless(step, loop), loop.turns),
        gathered=None if early is None else (*_needless(step, early), *early.layer),
        wall_us=wall_ns // 1000,
        castable_us=castable_ns(step) // 1000,
        transforms=None if slow is None else (*_needless(step, slow), slow.length),
        new_memory=None if memory is None else (_place(step, memory.place), *memory[1:]),
        **rows,
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
