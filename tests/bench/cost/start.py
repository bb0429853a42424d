"""Section `start`: what `import probe` and `install()` add to a program.

Whole processes, from start to exit, in turns with a Python that does nothing; and the two lines
alone, timed in fresh processes that have imported torch, whose seconds would drown them.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from time import monotonic, perf_counter
from typing import Final

from tests.bench.cost.machine import HOST
from tests.measuring.child import ROOT, python_path
from tests.measuring.claims import Claim

BARE: Final = "pass"
LINES: Final = ("import probe", "import probe; probe.install()")
AFTER_TORCH: Final = """
import torch
from time import perf_counter
begin_s = perf_counter()
import probe; probe.install()
print(perf_counter() - begin_s)
"""
COMPILED: Final = {"PYTHONDONTWRITEBYTECODE": ""}
"""An installed program has its bytecode; the first, unmeasured start writes ours."""
FEWEST: Final = 3


def claims(seconds: float) -> Iterator[Claim]:
    """Three rows, within about so many seconds."""
    _run(AFTER_TORCH)
    took_ms: dict[str, list[float]] = {code: [] for code in (BARE, *LINES)}
    until_s = monotonic() + seconds / 2
    while len(took_ms[BARE]) < FEWEST or monotonic() < until_s:
        for code, ms in took_ms.items():
            begin_s = perf_counter()
            _run(code)
            ms.append(1e3 * (perf_counter() - begin_s))
    bare_ms = took_ms[BARE]
    for code in LINES:
        more_ms = [ms - bare for ms, bare in zip(took_ms[code], bare_ms, strict=True)]
        yield _row(code, f"start to exit, a bare Python has {min(bare_ms):.0f} ms", more_ms)
    lines_ms: list[float] = []
    until_s = monotonic() + seconds / 2
    while len(lines_ms) < FEWEST or monotonic() < until_s:
        lines_ms.append(1e3 * float(_run(AFTER_TORCH)))
    yield _row(LINES[-1], "the lines alone, torch is there", lines_ms)


def _row(code: str, where: str, ms: Sequence[float]) -> Claim:
    measured = f"{statistics.median(ms):+.1f} ms (least {min(ms):+.1f}, {len(ms)} times)"
    figures = {"code": code, "median_ms": statistics.median(ms), "ms": list(ms)}
    return Claim(f"start, `{code}`", where, measured, "", None, figures)


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
