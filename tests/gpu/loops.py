"""A training loop with the probe: `python -m tests.gpu.loops JOB "SHAPE" [--steps N] [--trace F]`.

Prints "ready", waits for a line, works, prints its figures as a JSON line, waits for another line.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, Final

import torch

import probe
from tests.gpu import job_exposed, job_lag, job_partition
from tests.gpu.shapes import SHAPES, Loop, synchronize
from tests.measuring.one_thread import one_thread

Job = Callable[[Loop, int, str | None], dict[str, Any]]
JOBS: Final[dict[str, Job]] = {
    "partition": job_partition.work,
    "exposed": job_exposed.work,
    "lag": job_lag.work,
}
WARM_STEPS: Final = 5
"""Before "ready": kernels are loaded, the allocator is filled, workers run, the probe is armed."""


def main() -> None:
    """Do one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--trace", help="where the profiler's trace goes")
    options = parser.parse_args()
    one_thread()
    if options.job == "lag":
        job_lag.stamp_beneath()  # before the probe, whose hooks then lie around these
    probe.install()
    if torch.cuda.is_available():
        torch.cuda.init()
    loop = Loop(SHAPES[options.shape])
    for _ in range(WARM_STEPS):
        loop.step()
    synchronize()
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(JOBS[options.job](loop, options.steps, options.trace)), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
