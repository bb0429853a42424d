"""Kineto's Chrome trace as activities of the device, calls of the host and operators.

All times are perf_counter_ns: the trace has nanoseconds of the system's clock behind
`baseTimeNanoseconds`, and the probe took both clocks at one moment as it began.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

What = Literal["kernel", "collective", "to device", "to host", "on device", "fill"]
"""Of an activity; a kernel of NCCL is a collective, a copy goes from somewhere to somewhere."""

MOST_BYTES: Final = 200_000_000
MOST_US: Final = 1e15
"""Thirty years: kineto's times count from a recent date."""


class _Args(msgspec.Struct):
    correlation: int | None = None
    stream: int | str | None = None
    device: int | str | None = None
    bytes: int | None = None
    external: int | None = msgspec.field(name="External id", default=None)
    dims: Any = msgspec.field(name="Input Dims", default=None)
    types: Any = msgspec.field(name="Input type", default=None)
    name: Any = None


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = 0.0
    dur: float = 0.0
    tid: int | str = 0
    args: _Args | None = None


class _Device(msgspec.Struct):
    name: str = ""
    id: int = 0


class _Trace(msgspec.Struct):
    traceEvents: list[_Event] = []  # the file's own name
    baseTimeNanoseconds: int = 0
    deviceProperties: list[_Device] = []


_decoder: Final = msgspec.json.Decoder(_Trace, strict=False)


@dataclass(frozen=True, slots=True)
class Activity:
    """Something that the device did."""

    start_ns: int
    end_ns: int
    asked_ns: int
    """When the host's call for it began; its own start where that call is not in the trace."""
    call_end_ns: int
    """When that call returned; `asked_ns` where it is not in the trace."""
    name: str
    what: What
    correlation: int
    stream: int
    device: int
    bytes: int
    pageable: bool
    """A copy from or to memory that is not pinned."""
    call: str
    """Name of the host's call: "cudaGraphLaunch" for what a graph holds."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call of the CUDA runtime or driver."""

    start_ns: int
    end_ns: int
    name: str
    correlation: int
    thread: int | str


@dataclass(frozen=True, slots=True)
class Operator:
    """What PyTorch ran: an operator of ATen, a node of the graph, an annotation."""

    start_ns: int
    end_ns: int
    name: str
    external: int
    thread: int | str
    dims: tuple[tuple[int, ...], ...]
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """One recording."""

    activities: tuple[Activity, ...]
    """By start."""
    calls: tuple[HostCall, ...]
    """By start."""
    operators: tuple[Operator, ...]
    """By start."""
    device: str
    """Name of the first device; "" where the trace has none."""


ACTIVITIES: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
CALLS: Final = frozenset({"cuda_runtime", "cuda_driver"})
OPERATORS: Final = frozenset({"cpu_op", "user_annotation"})


def read_trace(data: bytes, anchor: tuple[int, int]) -> Trace:
    """`anchor`: perf_counter_ns and time_ns of one moment.

    Raises ValueError for what is no trace, or one beyond `MOST_BYTES`.
    """
    if len(data) > MOST_BYTES:
        raise ValueError(f"a trace of {len(data) / 1e6:.0f} MB")
    raw = _decoder.decode(data)
    shift_ns = raw.baseTimeNanoseconds - anchor[1] + anchor[0]
    calls: list[HostCall] = []
    by_correlation: dict[int, HostCall] = {}
    for event in raw.traceEvents:
        if event.ph == "X" and event.cat in CALLS:
            correlation = event.args.correlation if event.args else None
            call = HostCall(*_span(event, shift_ns), event.name, correlation or 0, event.tid)
            calls.append(call)
            if correlation:
                by_correlation[correlation] = call
    activities: list[Activity] = []
    operators: list[Operator] = []
    for event in raw.traceEvents:
        if event.ph != "X":
            continue
        if event.cat in ACTIVITIES:
            activities.append(_activity(event, shift_ns, by_correlation))
        elif event.cat in OPERATORS:
            operators.append(_operator(event, shift_ns))
    return Trace(
        tuple(sorted(activities, key=lambda one: (one.start_ns, one.correlation))),
        tuple(sorted(calls, key=lambda one: one.start_ns)),
        tuple(sorted(operators, key=lambda one: (one.start_ns, -one.end_ns))),
        raw.deviceProperties[0].name if raw.deviceProperties else "",
    )


def _span(event: _Event, shift_ns: int) -> tuple[int, int]:
    if not (abs(event.ts) < MOST_US and 0 <= event.dur < MOST_US):
        raise ValueError(f"an event at {event.ts} us that takes {event.dur} us")
    start_ns = round(event.ts * 1_000) + shift_ns
    return start_ns, start_ns + round(event.dur * 1_000)


def _activity(event: _Event, shift_ns: int, calls: dict[int, HostCall]) -> Activity:
    start_ns, end_ns = _span(event, shift_ns)
    args = event.args or _Args()
    call = calls.get(args.correlation or 0)
    return Activity(
        start_ns=start_ns,
        end_ns=end_ns,
        asked_ns=call.start_ns if call else start_ns,
        call_end_ns=call.end_ns if call else start_ns,
        name=event.name,
        what=what_of(event.cat, event.name),
        correlation=args.correlation or 0,
        stream=_number(args.stream),
        device=_number(args.device),
        bytes=args.bytes or 0,
        pageable="Pageable" in event.name,
        call=call.name if call else "",
    )


def _number(value: int | str | None) -> int:
    return value if isinstance(value, int) else 0


def what_of(category: str, name: str) -> What:
    """By kineto's category and name: "Memcpy HtoD (Pageable -> Device)"."""
    if category == "gpu_memset":
        return "fill"
    if category == "gpu_memcpy":
        if "HtoD" in name:
            return "to device"
        return "to host" if "DtoH" in name else "on device"
    return "collective" if name.lower().startswith(("nccl", "rccl")) else "kernel"


def _operator(event: _Event, shift_ns: int) -> Operator:
    args = event.args or _Args()
    return Operator(
        *_span(event, shift_ns),
        event.name,
        args.external or 0,
        event.tid,
        _dims(args.dims),
        tuple(map(str, args.types)) if isinstance(args.types, list) else (),
    )


def _dims(value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        tuple(size for size in one if isinstance(size, int)) if isinstance(one, list) else ()
        for one in value
    )
