"""NaNs in a training that clips, with torch set to refuse every synchronisation; and what a look at
the gradients' norm costs.

    python nan_script.py

Small steps that the host bounds, so that a microsecond shows. Prints a line of JSON: for each NaN
the step in which it was made, the one behind which its norm was on the device, the one behind which
the probe knew of it, and the one that it names; and by the clock around it, in the same steps, what
a look costs by each way that there is, and what the steps take beside those with no look at all.
"""

import json
import time
from bisect import bisect_right
from collections.abc import Callable
from statistics import fmean, median
from typing import Any

import torch
from torch import nn

import gpuwatch
from gpuwatch.probe import api, numerics
from gpuwatch.probe.numerics import Numerics

MADE_AT = (300, 401, 507, 613)
STEPS, MENDED_AFTER = 720, 30
BLOCKS, BLOCK_STEPS = 30, 40
"""Of each way, in turns."""


def main() -> None:
    """Train, and print what was seen."""
    gpuwatch.install()
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8))).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    batch = torch.randn(64, 256, device=device)
    bad = torch.tensor(float("nan"), device=device)
    whole = [one.detach().clone() for one in net.parameters()]
    installed: Any = api._installed
    recorder = installed.recorder

    def step(breaks: bool = False) -> None:
        optimizer.zero_grad()
        loss = net(batch).square().mean()
        (loss * bad if breaks else loss).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        recorder.watched = True  # a publisher without a monitor turns it off once a second

    def waited() -> None:
        """This script's own wait, so that the device is not hundreds of steps behind."""
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")

    waited()
    spent = Spent()
    began_ns: list[int] = []
    found: list[dict[str, Any]] = []
    seen: dict[str, Any] = {}
    event: Any = None
    looked = spent.around(Numerics.norm)
    setattr(Numerics, "norm", looked)  # noqa: B010
    for number in range(1, STEPS + 1):
        if number == 100:
            spent.clear()
        began_ns.append(time.perf_counter_ns())
        step(number in MADE_AT)
        if number in MADE_AT:
            seen = {"made_at": number}
            found.append(seen)
            if device.type == "cuda":
                event = torch.cuda.Event()
                event.record()
        if seen and "on_device_behind" not in seen and (event is None or event.query()):
            seen["on_device_behind"] = number
        if seen:
            rows = [row for _, row in list(recorder.notes._held) if row[4] == "nan"]
            times = [row[0] for row in rows if row[0] >= began_ns[seen["made_at"] - 1]]
            if times:
                seen.setdefault("known_behind", number)
                seen["named"] = bisect_right(began_ns, min(times))
            if number == seen["made_at"] + MENDED_AFTER:
                with torch.no_grad():
                    for parameter, value in zip(net.parameters(), whole, strict=True):
                        parameter.copy_(value)
                seen = {}
        if number % 100 == 0:
            waited()
    held = recorder.notes.numerics
    result = {
        "nans": found,
        "as_shipped": spent.summary(),
        "every": held._every,
        "ways": ways(step, waited, spent, looked, held),
        "armed": recorder.on,
        "torch": torch.__version__,
    }
    print(json.dumps(result), flush=True)


class Spent:
    """Time in looks, and in calls without one."""

    def __init__(self) -> None:
        self.looks_ns: list[int] = []
        self.others_ns: list[int] = []

    def clear(self) -> None:
        """From now on."""
        self.looks_ns.clear()
        self.others_ns.clear()

    def around(self, look: Callable[[Numerics, Any], None]) -> Callable[[Numerics, Any], None]:
        """The same with the clock around it."""

        def timed(held: Numerics, value: Any) -> None:
            ring = held._ring
            before = ring._head if ring is not None else None
            began_ns = time.perf_counter_ns()
            look(held, value)
            took_ns = time.perf_counter_ns() - began_ns
            has_looked = ring is None or ring._head != before
            (self.looks_ns if has_looked else self.others_ns).append(took_ns)

        return timed

    def summary(self) -> dict[str, float | None]:
        """In us."""
        both = self.looks_ns + self.others_ns
        return {
            "a_step_us": round(fmean(both) / 1e3, 2) if both else None,
            "look_median_us": round(median(self.looks_ns) / 1e3, 2) if self.looks_ns else None,
            "look_mean_us": round(fmean(self.looks_ns) / 1e3, 2) if self.looks_ns else None,
            "other_median_us": round(median(self.others_ns) / 1e3, 2) if self.others_ns else None,
            "longest_us": round(max(both) / 1e3, 1) if both else None,
        }


def ways(
    step: Callable[[], None],
    waited: Callable[[], None],
    spent: Spent,
    looked: Callable[[Numerics, Any], None],
    held: Numerics,
) -> dict[str, Any]:
    """At every second norm each way to look, and none, in turns of some steps."""
    ring = held._ring
    if ring is None:
        return {}
    numerics.MOST_WATCHED = numerics.EVERY_WATCHED  # type: ignore[misc]
    names = ["none", "copy"]
    spents = {name: Spent() for name in names}
    steps_ns: dict[str, list[int]] = {name: [] for name in names}
    for block in range(BLOCKS * len(names)):
        name = names[block % len(names)]
        none: Any = lambda held, value: None  # noqa: E731
        setattr(Numerics, "norm", none if name == "none" else looked)  # noqa: B010
        waited()
        step()
        spent.clear()
        began_ns = time.perf_counter_ns()
        for _ in range(BLOCK_STEPS):
            step()
        steps_ns[name].append((time.perf_counter_ns() - began_ns) // BLOCK_STEPS)
        spents[name].looks_ns += spent.looks_ns
        spents[name].others_ns += spent.others_ns
    without = steps_ns["none"]
    return {
        name: {
            **spents[name].summary(),
            "step_us": round(median(steps_ns[name]) / 1e3, 2),
            "more_than_none_us": round(
                median(a - b for a, b in zip(steps_ns[name], without, strict=True)) / 1e3, 2
            ),
        }
        for name in names
    }


if __name__ == "__main__":
    main()
