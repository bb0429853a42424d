"""Steps before and after a window, over loops of about 2, 20 and 100 ms, in processes of their own:
with a window, with a window without operators, and with neither (the control, which is watched for
as long). The ratio of a step to a reference in the same step is compared, so that what changes the
host's speed between blocks goes out of it. The last one has torch's own profiler too.
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

from gpuwatch.tui.trace.pace import pace_of
from tests.gpu.scripts import line_of, send, started

RUNS: Final = (
    (14, "control"), (14, "window"), (140, "control"), (140, "window"), (140, "no operators"),
    (700, "control"), (700, "window"), (14, "control"), (14, "window"), (140, "control"),
    (140, "window"), (140, "torch profiler"),
)  # fmt: skip
BLOCK_S: Final = 4.0
ProfileOf = Callable[..., Any]


def pace(out: Path, results: dict[str, Any], profile_of: ProfileOf) -> None:
    """All of them, one after the other; they import together."""
    import sys

    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                started(
                    [sys.executable, "-m", "tests.gpu.deep_loop", str(layers)],
                    out / f"pace-{at}.log",
                )
            )
            for at, (layers, _) in enumerate(RUNS)
        ]
        for process in processes:
            line_of(process)
        for (layers, what), process in zip(RUNS, processes, strict=True):

            def rows(
                seconds: float, text: str = "", process: Any = process
            ) -> list[tuple[int, int]]:
                send(process, text)
                line_of(process)
                time.sleep(seconds)
                send(process)
                taken: list[tuple[int, int]] = json.loads(line_of(process))
                return taken

            send(process)
            time.sleep(1)
            before = rows(BLOCK_S)
            found: dict[str, Any] = {"layers": layers, "what": what}
            if what == "torch profiler":
                after = rows(BLOCK_S, "profile")
            else:
                report, _ = profile_of(process.pid, what != "no operators", what != "control")
                if report is not None:
                    found["pause_ms"] = report.pause_ns / 1e6
                    if report.pace is not None:
                        found["under"] = report.profile.step_ns / report.pace.before_ns
                after = rows(BLOCK_S)
            process.kill()
            found |= {
                "step_us": median(row[0] for row in before),
                "wall": ratio([row[0] for row in before], [row[0] for row in after]),
                "to_reference": ratio(
                    [1_000_000 * row[0] // max(1, row[1]) for row in before],
                    [1_000_000 * row[0] // max(1, row[1]) for row in after],
                ),
                "reference": ratio([row[1] for row in before], [row[1] for row in after]),
            }
            results.setdefault("pace", []).append(found)
            print("pace", json.dumps(found), flush=True)


def ratio(before: list[int], after: list[int]) -> list[float] | None:
    """After over before, and its interval."""
    made = pace_of(before, after)
    return None if made is None else [round(x, 4) for x in (made.ratio, made.low, made.high)]
