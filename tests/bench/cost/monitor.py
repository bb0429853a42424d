"""Section `monitor`: what the screen uses while it watches 50 steps a second, everything on.

On a terminal of its own, with counters, process tree and stacks. py-spy is a process of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Final

from tests.bench.cost.machine import sides
from tests.measuring.child import Child
from tests.measuring.claims import Claim
from tests.measuring.uses import use_below, use_of
from tests.processes.pseudo_terminal import PseudoTerminal

STEPS_S: Final = 50
WORKERS: Final = 4
SIZE: Final = (100, 30)
WARM_S: Final = 15.0
LOOK_S: Final = 0.5
CORE: Final = 0.05
PSS_BYTES: Final = 120_000_000
"""The monitor's, by itself."""
PYSPY_CORE: Final = 0.01


@dataclass(frozen=True)
class Used:
    """By one of them."""

    core: float
    """Of one core, 0 to 1 and more."""
    pss_bytes: int


def claims(seconds: float) -> Iterator[Claim]:
    """Three rows, within about so many seconds."""
    side = sides()[-1]
    words = ["-m", "tests.bench.cost.paced", str(STEPS_S), str(WORKERS)]
    with Child(words, side.environment) as child:
        child.ready()
        with PseudoTerminal(
            "gpuwatch.tui.cli.main", "attach", str(child.pid), size=SIZE
        ) as terminal:
            _read(terminal, WARM_S)
            before, began_s = use_of(terminal.process.pid), monotonic()
            pyspy_before = _pyspy_cpu_s(terminal.process.pid)
            most_pss_bytes = _read(terminal, seconds)
            passed_s = monotonic() - began_s
            after = use_of(terminal.process.pid)
            pyspy_s = _pyspy_cpu_s(terminal.process.pid) - pyspy_before
    loop = f"{side.name}, {STEPS_S} steps/s, {WORKERS} workers, {seconds:.0f} s"
    monitor = Used((after.cpu_s - before.cpu_s) / passed_s, after.pss_bytes)
    yield from rows(loop, monitor, Used(pyspy_s / passed_s, most_pss_bytes))


def rows(loop: str, monitor: Used, pyspy: Used) -> Iterator[Claim]:
    """Each by itself, and for the eye both together."""
    met = monitor.core <= CORE and monitor.pss_bytes <= PSS_BYTES
    yield _row("monitor", loop, monitor, f"{100 * CORE:.0f} %, {PSS_BYTES / 1e6:.0f} MB", met)
    ran = pyspy.core > 0 or pyspy.pss_bytes > 0
    met_too = pyspy.core <= PYSPY_CORE if ran else None
    yield _row("its py-spy", loop, pyspy, f"{100 * PYSPY_CORE:.0f} %", met_too)
    both = Used(monitor.core + pyspy.core, monitor.pss_bytes + pyspy.pss_bytes)
    yield _row("monitor with its py-spy", loop, both, "", None)


def _read(terminal: PseudoTerminal, seconds: float) -> int:
    """Let it draw; the most memory that its children had, PSS, when they were looked at."""
    until_s, most_bytes = monotonic() + seconds, 0
    next_s = monotonic()
    while monotonic() < until_s:
        terminal.read()
        if monotonic() >= next_s:
            most_bytes = max(most_bytes, use_below(terminal.process.pid).pss_bytes)
            next_s = monotonic() + LOOK_S
    return most_bytes


def _pyspy_cpu_s(pid: int) -> float:
    """Of those that ran and of the one that runs: each looks for some seconds."""
    return use_of(pid).reaped_cpu_s + use_below(pid).cpu_s


def _row(item: str, loop: str, used: Used, bar: str, met: bool | None) -> Claim:
    measured = f"{100 * used.core:.1f} % of a core, {used.pss_bytes / 1e6:.0f} MB PSS"
    return Claim(
        item, loop, measured, bar, met, {"core": used.core, "pss_mb": used.pss_bytes / 1e6}
    )
