"""Recordings of several ranks of a job, of steps whose truth is known."""

import json
from collections.abc import Sequence
from typing import Any

from gpuwatch.tui.trace.job import JobProfile, RankRecorded, job_profile_of
from gpuwatch.tui.trace.profile import Recorded
from tests.unit.trace.traces import BASE_NS, PERF_NS, Steps, perf_ns

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STEPS = 5
FIRST = 400
"""Collectives that were issued before the recording."""


def recorded(
    own_us: Sequence[float],
    transfer_us: float = 1_000,
    beside_us: float = 0,
    starts: Sequence[int] | None = None,
    steps: int = STEPS,
    turns: bool = False,
) -> list[RankRecorded]:
    """Ranks that compute for so long, then meet in an all-reduce of `transfer_us`, of which they
    compute `beside_us`. Rank r records from step `starts[r]` on. `turns`: who computes how long
    changes from step to step."""
    made = [Steps() for _ in own_us]
    starts = starts or [0] * len(own_us)
    issued: list[list[dict[str, int]]] = [[] for _ in own_us]
    for rank, one in enumerate(made):
        if not starts[rank]:
            one.end()
            issued[rank].append({"0": FIRST})
    for step in range(steps + max(starts)):
        own = own_us[::-1] if turns and step % 2 else own_us
        for one, us in zip(made, own, strict=True):
            one.launch(us)
        begins = [one.free_us for one in made]
        end_us = max(begins) + transfer_us
        for one, begin_us in zip(made, begins, strict=True):
            one.collective(ALL_REDUCE, begin_us, end_us)
            if beside_us:
                one.free_us = end_us - beside_us
                one.launch(beside_us)
            one.free_us = one.now_us = end_us
        for rank, one in enumerate(made):
            if step >= starts[rank] - 1:
                one.end()
                issued[rank].append({"0": FIRST + step + 1})
    return [
        RankRecorded(rank, one.recorded(), tuple(issued[rank]), on_device=True)
        for rank, one in enumerate(made)
    ]


def on_cpu(own_us: Sequence[float], transfer_us: float, hidden_us: float = 0) -> JobProfile:
    """Ranks on CPUs: annotations of gloo, and operators."""
    events: list[list[dict[str, Any]]] = [[] for _ in own_us]
    ends: list[list[float]] = [[] for _ in own_us]
    now_us = 0.0
    for _ in range(STEPS):
        begins = [now_us + us for us in own_us]
        end_us = max(begins) + transfer_us
        for rank, begin_us in enumerate(begins):
            rows = [
                ("cpu_op", "aten::mm", now_us, begin_us - now_us, 1, [[8, 8]], ["float"]),
                ("cpu_op", "c10d::allreduce_", begin_us, 5.0, 1, [], []),
                *([("cpu_op", "aten::mm", begin_us, hidden_us, 1, [], [])] if hidden_us else []),
                ("user_annotation", "gloo:all_reduce", begin_us, end_us - begin_us, 2, [[256]],
                 ["float"]),
            ]  # fmt: skip
            events[rank] += [
                {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid,
                 "args": {"Input Dims": dims, "Input type": types}}
                for cat, name, ts, dur, tid, dims, types in rows
            ]  # fmt: skip
            ends[rank].append(end_us)
        now_us = end_us
    return job_profile_of(
        [
            RankRecorded(
                rank,
                Recorded(
                    json.dumps({"baseTimeNanoseconds": BASE_NS, "traceEvents": rows}).encode(),
                    tuple(map(perf_ns, ends[rank])),
                    (),
                    (PERF_NS, BASE_NS),
                ),
                tuple({"": at} for at in range(STEPS)),
                on_device=False,
            )
            for rank, rows in enumerate(events)
        ]
    )
