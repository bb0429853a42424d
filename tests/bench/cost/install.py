"""Section `install`: what `import probe; probe.install()` takes, in fresh processes.

Once below `import torch`, where the hooks are put in at once, and once above it, where they come
with torch.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from time import monotonic
from typing import Final

from tests.bench.cost.intervals import FEWEST, Bar, interval, judged
from tests.bench.cost.machine import HOST
from tests.measuring.child import ROOT, python_path
from tests.measuring.claims import Claim

TIMED: Final = """
from time import perf_counter_ns
def waited_ns():
    with open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1])
waited_ns()
queued_ns, begin_ns = waited_ns(), perf_counter_ns()
import probe; probe.install()
print((perf_counter_ns() - begin_ns - (waited_ns() - queued_ns)) / 1e6)
"""
"""Without the waits for a core, which are the neighbours' doing."""
PLACES: Final = {
    "torch imported before": ("import torch" + TIMED, Bar(3)),
    "torch imported later": (TIMED, None),
}
"""Above torch it imports what torch would import of the standard library otherwise: no bar."""
COMPILED: Final = {"PYTHONDONTWRITEBYTECODE": ""}
"""An installed program has its bytecode; the first, unmeasured start writes ours."""


def claims(seconds: float) -> Iterator[Claim]:
    """A row a place, within about so many seconds."""
    _run(TIMED)
    took_ms: dict[str, list[float]] = {place: [] for place in PLACES}
    until_s = monotonic() + seconds
    while any(len(ms) < FEWEST for ms in took_ms.values()) or monotonic() < until_s:
        for place, (code, _) in PLACES.items():
            took_ms[place].append(float(_run(code)))
    for place, (_, bar) in PLACES.items():
        found = interval(took_ms[place])
        measured, met = judged(found, bar, "ms")
        words = "" if bar is None else f"{bar.most:g} ms"
        figures = {"unit": "ms", **asdict(found)}
        yield Claim("import and install", place, measured, words, met, figures)


def _run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **HOST.environment, **COMPILED, "PYTHONPATH": python_path()},
        timeout=120,
        check=True,
    ).stdout
