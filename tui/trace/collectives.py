"""Collectives in one rank's recording: kernels of NCCL, or annotations of a backend on the host."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Final, NamedTuple

from ..verdict.job.matching import Collective
from .events import Trace
from .spans import Span

COLLECTIVE_KERNEL: Final = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|broadcast|send_?recv|all_?to_?all|reduce)",
    re.IGNORECASE,
)
"""The collective in a kernel's name: ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)."""
KINDS: Final = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "sendrecv": "send_recv", "alltoall": "all_to_all",
}  # fmt: skip
KERNEL_TYPE: Final = re.compile(r"_(bf16|f16|f32|f64|half|float|double|bfloat16)(?=_|\(|$)")
TYPES: Final = {
    "f16": "fp16", "half": "fp16", "bf16": "bf16", "bfloat16": "bf16", "f32": "fp32",
    "float": "fp32", "f64": "fp64", "double": "fp64", "c10::BFloat16": "bf16",
    "c10::Half": "fp16", "int": "int32", "long int": "int64",
}  # fmt: skip
BYTES: Final = {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8, "int32": 4, "int64": 8}
ON_HOST: Final = re.compile(r"^(gloo|mpi|ucc):(?!.*wait)")
"""Annotations of backends that the host waits in."""


class Call(NamedTuple):
    """One collective on one rank."""

    kind: str
    dtype: str
    bytes: int | None
    start_ns: int
    end_ns: int
    step: int
    """In which it was issued, from 0."""


def on_device(
    trace: Trace, ends_ns: Sequence[int], entries: Sequence[Collective]
) -> tuple[list[Call], list[Span]]:
    """Kernels that were launched between the first and the last of these ends. Each is the flight
    recorder's entry in the same place, where there are as many and of the same kinds."""
    inside = range(ends_ns[0], ends_ns[-1])
    kernels = sorted(
        (one for one in trace.activities if one.what == "collective" and one.asked_ns in inside),
        key=lambda one: (one.asked_ns, one.start_ns),
    )
    calls = [
        Call(
            kind_of(one.name),
            dtype_of(one.name),
            None,
            one.start_ns,
            one.end_ns,
            bisect_right(ends_ns, one.asked_ns) - 1,
        )
        for one in kernels
    ]
    kinds = [kind_of(one.name.rpartition(":")[2]) for one in entries]
    if len(entries) == len(calls) and all(
        call.kind in (kind, "") for call, kind in zip(calls, kinds, strict=True)
    ):
        calls = [
            call._replace(kind=kind, bytes=entry.bytes)
            for call, kind, entry in zip(calls, kinds, entries, strict=True)
        ]
    compute = [
        (one.start_ns, one.end_ns) for one in trace.activities if one.what in ("kernel", "fill")
    ]
    return calls, compute


def on_host(trace: Trace, ends_ns: Sequence[int]) -> tuple[list[Call], list[Span]]:
    """Annotations of the backend, and what PyTorch computes meanwhile."""
    calls, compute = [], []
    inside = range(ends_ns[0], ends_ns[-1])
    for one in trace.operators:
        if ON_HOST.match(one.name):
            if one.start_ns in inside:
                given = one.types[0].removesuffix("[]") if one.types else ""
                dtype = TYPES.get(given, given)
                count = prod(one.dims[0]) if one.dims else 0
                known = count * BYTES[dtype] if count > 0 and dtype in BYTES else None
                kind = one.name.partition(":")[2]
                step = bisect_right(ends_ns, one.start_ns) - 1
                calls.append(Call(kind, dtype, known, one.start_ns, one.end_ns, step))
        elif one.name.startswith("aten::"):
            compute.append((one.start_ns, one.end_ns))
    return calls, compute


def kind_of(name: str) -> str:
    """ "all_reduce" of "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)"; "" where the name has none."""
    found = COLLECTIVE_KERNEL.search(name.partition("(")[0])
    plain = found[1].lower().replace("_", "") if found else ""
    return KINDS.get(plain, plain)


def dtype_of(name: str) -> str:
    """ "fp32" of the same; "" where the name has none."""
    found = KERNEL_TYPE.search(name)
    return TYPES[found[1]] if found else ""


# The flight recorder's entries of these steps.

Counted = Mapping[str, tuple[int, int]]
"""By process group, the last collective before and the last of them."""
LATER_ALIKE: Final = 3
"""Steps that the recorder still has and that are all the same, from which earlier ones were too."""


def entries_of(
    entries: Iterable[Collective], issued: Sequence[Mapping[str, int]]
) -> list[Collective]:
    """Those of the steps between these counts of what each process group has issued, as they were
    issued."""
    ordered = sorted(entries, key=lambda one: one.created_ns)
    counted = {group: (low, issued[-1].get(group, low)) for group, low in issued[0].items()}
    found = _between(ordered, counted)
    return found if _is_whole(found, counted) else _as_later(ordered, issued) or found


def _between(entries: Iterable[Collective], counted: Counted) -> list[Collective]:
    return [
        one
        for one in entries
        if one.group in counted and counted[one.group][0] < one.number <= counted[one.group][1]
    ]


def _is_whole(entries: Iterable[Collective], counted: Counted) -> bool:
    """All of them are there."""
    numbers = {(one.group, one.number) for one in entries}
    return len(numbers) == sum(high - low for low, high in counted.values())


def _as_later(
    entries: Sequence[Collective], issued: Sequence[Mapping[str, int]]
) -> list[Collective]:
    """Of steps that the recorder no longer has (it holds 2,000 entries: 2.6 s of steps of 9 ms),
    those of a later step for each of them, where all later ones are the same, and these had as
    many; [] else."""
    steps = [
        {group: (low, after[group]) for group, low in before.items() if group in after}
        for before, after in pairwise(issued)
    ]
    each = {group: high - low for group, (low, high) in steps[0].items()} if steps else {}
    counts = [{group: high - low for group, (low, high) in one.items()} for one in steps]
    if not any(each.values()) or any(one != each for one in counts):
        return []
    newest = max((one.number for one in entries if each.get(one.group)), default=0)
    later: list[list[Collective]] = []
    bounds = steps[-1]
    while any(high <= newest for group, (_, high) in bounds.items() if each[group]):
        bounds = {group: (high, high + each[group]) for group, (_, high) in bounds.items()}
        found = _between(entries, bounds)
        if _is_whole(found, bounds):
            later.append(found)
    kinds = {tuple((one.group, one.name, one.bytes) for one in found) for found in later}
    return later[0] * len(steps) if len(later) >= LATER_ALIKE and len(kinds) == 1 else []
