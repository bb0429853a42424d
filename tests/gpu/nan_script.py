"""A NaN at step 300 of a training that clips, with torch set to refuse every synchronisation.

    python nan_script.py

Small steps that the host bounds, so that a microsecond shows. Prints a line of JSON: the step at
which the loss was made NaN, the step behind which the probe first knew of it, and what a look at
the norm costs a step, by the clock around it.
"""

import json
import sys
import time
from statistics import fmean, median
from typing import Any

import torch
from torch import nn

import gpuwatch

BAD, STEPS = 300, 1_200


def main() -> None:
    """Train, and print what was seen."""
    gpuwatch.install()
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8))).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    batch = torch.randn(64, 256, device=device)
    bad = torch.tensor(float("nan"), device=device)
    if device.type == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    from gpuwatch.probe import api

    installed: Any = api._installed
    recorder, known = installed.recorder, 0
    spent_ns: list[int] = []
    recorder.watched = True
    from gpuwatch.probe.numerics import Numerics

    look = Numerics.norm

    def timed(numerics: Numerics, value: Any) -> None:
        began_ns = time.perf_counter_ns()
        look(numerics, value)
        spent_ns.append(time.perf_counter_ns() - began_ns)

    setattr(Numerics, "norm", timed)  # noqa: B010
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        loss = net(batch).square().mean()
        if step == BAD:
            loss = loss * bad
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        recorder.watched = True  # a publisher without a monitor turns it off once a second
        if not known and any(row[4] == "nan" for _, row in list(recorder.notes._held)):
            known = step
        if step == 100:
            spent_ns.clear()
        if step % 100 == 0 and device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")  # this script's own wait, so that the device
            torch.cuda.synchronize()  # is not hundreds of steps behind
            torch.cuda.set_sync_debug_mode("error")
    found = {
        "made_at": BAD,
        "known_behind": known,
        "look_us_a_step": round(fmean(spent_ns) / 1e3, 2),
        "median_us": round(median(spent_ns) / 1e3, 2),
        "longest_us": round(max(spent_ns) / 1e3, 1),
        "every": recorder.notes.numerics._every,
        "armed": recorder.on,
        "torch": torch.__version__,
    }
    print(json.dumps(found), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
