"""Section `lag`: the lag table of five loops, and how well the two clocks are aligned.

Medians of 40 steps. The truth is the script's own event beside each of the probe's, on a clock that
is aligned by record-and-synchronise before and after. Bars: 50 us in the launch-bound loop, else
2 % of the lag (the issue), held against the median error of single steps.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from tests.gpu.exposed_figures import by_number
from tests.gpu.lag_figures import BOUNDARIES, allowed_ns, lags
from tests.measuring.child import Child, children
from tests.measuring.claims import Claim, broken
from tests.measuring.watcher import watching

LOOPS: Final = ("fp32", "bf16", "fp32, item", "100 tiny layers", "fp32, 50 ms wait")
STEPS: Final = 40
FEWEST: Final = 30
LIMIT_S: Final = 90.0


def claims() -> Iterator[Claim]:
    """One row a loop."""
    with children(
        [("-m", "tests.gpu.loops", "lag", loop, f"--steps={STEPS}") for loop in LOOPS]
    ) as started:
        for loop, child in zip(LOOPS, started, strict=True):
            try:
                yield _row(loop, child)
            except Exception as error:
                yield broken("lag", loop, error)


def _row(loop: str, child: Child) -> Claim:
    with watching(child.pid) as watcher:
        child.send()
        seen = child.answer(LIMIT_S)
        watcher.wait_for(seen["starts_ns"][-1])
        child.bye()
    reported = by_number(watcher.gpu_steps, seen["starts_ns"])
    marks = [tuple(mark) for mark in seen["marks"]]
    found = lags(reported, marks, seen["clocks"])
    measured = ", ".join(
        f"{row.boundary} {row.probe_ns / 1e6:.3f} ms (off {row.median_error_ns / 1e3:.0f} us, "
        f"worst {row.worst_error_ns / 1e3:.0f})"
        for row in found
    )
    uncertain = [step.uncertain_ns for step in reported.values() if step.uncertain_ns is not None]
    open_ns = max(clock[2] for clock in seen["clocks"])
    measured += f"; truth within {open_ns / 1e3:.0f} us, the probe says {_most(uncertain)}"
    met = len(found) == len(BOUNDARIES) and all(
        row.steps >= FEWEST and row.median_error_ns <= allowed_ns(row.truth_ns) for row in found
    )
    figures: dict[str, Any] = {
        "boundaries": [asdict(row) for row in found],
        "clocks": seen["clocks"],
        "uncertain_ns": uncertain,
    }
    return Claim("lag", loop, measured, "50 us or 2 %", met, figures)


def _most(uncertain_ns: list[int]) -> str:
    return f"within {max(uncertain_ns) / 1e3:.0f} us" if uncertain_ns else "nothing"
