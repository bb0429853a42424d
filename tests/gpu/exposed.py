"""Section `exposed`: the exposed wait of the device, against a kineto trace of the same steps.

`trace_truth` says what the truth is. Bars: median error 1 point of the step, worst 3 (the issue).
The last column of the row shows what the host's clock alone would have shown.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.gpu.exposed_figures import by_number, exposure
from tests.gpu.trace_truth import exposed_by_step_ns
from tests.measuring.child import Child, children
from tests.measuring.claims import Claim, broken
from tests.measuring.watcher import watching

LOOPS: Final = (
    "loader-bound",
    "hidden wait",
    "half hidden",
    "wait and item",
    "wait, launch-bound",
    "varying waits",
)
MEDIAN_POINTS: Final = 1.0
WORST_POINTS: Final = 3.0
STEPS: Final = 30
SKIP: Final = 3
"""CUPTI's start falls into the first steps of a window."""
FEWEST: Final = 20
LIMIT_S: Final = 90.0


def claims() -> Iterator[Claim]:
    """One row a loop."""
    with tempfile.TemporaryDirectory() as directory:
        traces = [Path(directory) / f"{number}.json" for number in range(len(LOOPS))]
        arguments = [
            ("-m", "tests.gpu.loops", "exposed", loop, f"--steps={STEPS}", f"--trace={trace}")
            for loop, trace in zip(LOOPS, traces, strict=True)
        ]
        with children(arguments) as started:
            for loop, child, trace in zip(LOOPS, started, traces, strict=True):
                try:
                    yield _row(loop, child, trace)
                except Exception as error:
                    yield broken("exposed wait", loop, error)


def _row(loop: str, child: Child, trace: Path) -> Claim:
    with watching(child.pid) as watcher:
        child.send()
        seen = child.answer(LIMIT_S)
        watcher.wait_for(seen["starts_ns"][-1])
        child.bye()
    truth_ns = exposed_by_step_ns(json.loads(trace.read_text()))
    reported = by_number(watcher.gpu_steps, seen["starts_ns"])
    found = exposure(reported, truth_ns, SKIP)
    if found is None:
        raise ValueError(f"{len(reported)} steps of the probe, {len(truth_ns)} of the trace")
    measured = (
        f"error median {found.median_points:.2f}, worst {found.worst_points:.2f} points in "
        f"{found.steps} steps (trace {found.truth_share:.1f} %, probe {found.probe_share:.1f} %, "
        f"host alone {found.host_share:.1f} %)"
    )
    met = (
        found.steps >= FEWEST
        and found.median_points <= MEDIAN_POINTS
        and found.worst_points <= WORST_POINTS
    )
    steps = [
        {
            "step": n,
            "wall_ns": reported[n].wall_ns,
            "probe_ns": reported[n].exposed_ns,
            "trace_ns": ns,
        }
        for n, ns in sorted(truth_ns.items())
        if n in reported
    ]
    figures = {**asdict(found), "each": steps}
    return Claim("exposed wait", loop, measured, "1 and 3 points", met, figures)
