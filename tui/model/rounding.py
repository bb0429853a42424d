"""What is kept of an observation: times to a microsecond, shares to a tenth of a percent.

A live session takes the rounded observations too, so a replay comes to the same verdicts, bit for
bit. Order and equality survive, and phases still add up to their step.
"""

from functools import cache
from itertools import accumulate
from math import isfinite
from operator import attrgetter, sub
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_origin

from msgspec import Struct
from msgspec.structs import astuple, fields, replace

from ...probe.wire.messages import GpuStep, Step

EXACT: Final = frozenset(
    {"mark_cost_ns", "gpu_clocks", "hello", "cores", "fraction", "power_limit_w"}
)
"""Fields that are not rounded: too small for it, or hardly ever different."""
PHASES: Final = (
    *("data_ns", "startup_ns", "forward_ns", "backward_ns", "optimizer_ns"),
    *("other_ns", "evaluation_ns", "checkpoint_ns", "compile_ns"),
)
"""They follow each other from the start of a step."""

_phases_of: Final = attrgetter(*PHASES)
_Record = TypeVar("_Record", bound=Struct)


class _Plan(NamedTuple):
    """Fields to round, by place and name, and those that hold records with their container."""

    times: list[tuple[int, str]]
    tenths: list[tuple[int, str]]
    rates: list[tuple[int, str]]
    records: list[tuple[int, str, Any]]


def kept(record: _Record) -> _Record:
    """The observation as a recording has it. Keeping it twice changes nothing more."""
    times, tenths, rates, records = _plan(type(record))
    values = astuple(record)
    changes: dict[str, Any] = {name: ns - ns % 1_000 for at, name in times if (ns := values[at])}
    for at, name in tenths:
        if value := values[at]:
            changes[name] = round(value, 1)
    for at, name in rates:
        if (rate := values[at]) and isfinite(rate):
            changes[name] = float(round(rate / 1_024) * 1_024)
    for at, name, container in records:
        if rows := values[at]:
            changes[name] = container(map(kept, rows)) if container else kept(rows)
    if isinstance(record, Step):
        changes |= _phases(record, record.start_ns)
        longest_ns, data_ns = changes.get("data_max_ns", 0), changes["data_ns"]
        equal = record.data_max_ns == record.data_ns
        changes["data_max_ns"] = data_ns if equal else min(longest_ns, data_ns)
    elif isinstance(record, GpuStep):
        changes |= _phases(record, record.gpu_start_ns)
    return replace(record, **changes) if changes else record


def _phases(row: Step | GpuStep, start_ns: int) -> dict[str, Any]:
    """The phases, with every boundary between them rounded down."""
    ends_ns = accumulate((*_phases_of(row), *row.phases.values()), initial=start_ns)
    bounds_ns = [ns - ns % 1_000 for ns in ends_ns]
    rounded = list(map(sub, bounds_ns[1:], bounds_ns))
    changes: dict[str, Any] = dict(zip(PHASES, rounded, strict=False))
    if row.phases:
        changes["phases"] = dict(zip(row.phases, rounded[len(PHASES) :], strict=True))
    return changes


@cache
def _plan(kind: type[Struct]) -> _Plan:
    plan = _Plan([], [], [], [])
    elsewhere = {*EXACT, *PHASES} if kind in (Step, GpuStep) else EXACT
    for at, field in enumerate(fields(kind)):
        name, hints = field.name, (field.type, *get_args(field.type))
        inner = [one for one in hints if isinstance(one, type) and issubclass(one, Struct)]
        if name in elsewhere:
            continue
        if inner:
            if any(_plan(inner[0])):
                plan.records.append((at, name, get_origin(field.type)))
        elif name.endswith("_ns"):
            plan.times.append((at, name))
        elif float in hints:
            (plan.rates if name.endswith("_bytes_s") else plan.tenths).append((at, name))
    return plan
