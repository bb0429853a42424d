"""Section `monitor`: what the screen uses while it watches 50 steps a second, everything on.

On a terminal of its own, with counters, process tree and stacks. py-spy is a process of its own.
"""

from collections.abc import Iterator
from dataclasses import asdict
from time import monotonic
from typing import Final

from tests.bench.cost.intervals import FEWEST, Bar, interval, judged
from tests.bench.cost.machine import sides
from tests.measuring.child import Child
from tests.measuring.claims import Claim
from tests.measuring.uses import use_below, use_of
from tests.processes.pseudo_terminal import PseudoTerminal

STEPS_S: Final = 50
WORKERS: Final = 4
SIZE: Final = (100, 30)
WARM_S: Final = 15.0
WINDOW_S: Final = 5.0
"""Of one value: the system counts CPU time by hundredths of a second."""
CORE: Final = Bar(5)
"""% of a core."""
PSS_MB: Final = 120
PYSPY_CORE: Final = Bar(1)


def claims(seconds: float) -> Iterator[Claim]:
    """Three rows, within about so many seconds."""
    side = sides()[-1]
    words = ["-m", "tests.bench.cost.paced", str(STEPS_S), str(WORKERS)]
    screen: list[float] = []
    pyspy: list[float] = []
    with Child(words, side.environment) as child:
        child.ready()
        with PseudoTerminal(
            "gpuwatch.tui.cli.main", "attach", str(child.pid), size=SIZE
        ) as terminal:
            pid = terminal.process.pid
            read(terminal, WARM_S)
            until_s = monotonic() + seconds
            while len(screen) < FEWEST or monotonic() < until_s:
                began_s, before_s, pyspy_s = monotonic(), use_of(pid).cpu_s, _pyspy_cpu_s(pid)
                read(terminal, WINDOW_S)
                passed_s = monotonic() - began_s
                screen.append(100 * (use_of(pid).cpu_s - before_s) / passed_s)
                pyspy.append(100 * (_pyspy_cpu_s(pid) - pyspy_s) / passed_s)
            pss_mb = use_of(pid).pss_bytes / 1e6
    yield from rows(f"{side.name}, {STEPS_S} steps/s, {WORKERS} workers", screen, pyspy, pss_mb)


def rows(loop: str, screen: list[float], pyspy: list[float], pss_mb: float) -> Iterator[Claim]:
    """The screen and its py-spy, % of a core, each with its bar."""
    for item, values, bar in (("screen", screen, CORE), ("its py-spy", pyspy, PYSPY_CORE)):
        found = interval(values)
        measured, met = judged(found, bar, "% of a core")
        figures = {"unit": "% of a core", **asdict(found)}
        yield Claim(f"{item}, CPU", loop, measured, f"{bar.most:g} %", met, figures)
    met = pss_mb <= PSS_MB
    figures = {"unit": "MB", "value": pss_mb}
    yield Claim("screen, memory", loop, f"{pss_mb:.0f} MB PSS", f"{PSS_MB} MB", met, figures)


def read(terminal: PseudoTerminal, seconds: float) -> None:
    """Let it draw."""
    until_s = monotonic() + seconds
    while monotonic() < until_s:
        terminal.read()


def _pyspy_cpu_s(pid: int) -> float:
    """Of those that ran and of the one that runs: each looks for some seconds."""
    return use_of(pid).reaped_cpu_s + use_below(pid).cpu_s
