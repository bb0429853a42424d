"""Section `monitor`: what the screen uses while it watches 50 steps a second, everything on.

On a terminal of its own, with counters, process tree and stacks. py-spy is a process of its own.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Final

from tests.bench.cost.machine import sides
from tests.gpu.child import Child
from tests.gpu.claims import Claim
from tests.soak.uses import use_below, use_of
from tests.tui.pseudo_terminal import PseudoTerminal

STEPS_S: Final = 50
WORKERS: Final = 4
SIZE: Final = (100, 30)
WARM_S: Final = 15.0
LOOK_S: Final = 0.5
CORE: Final = 0.05
PSS_BYTES: Final = 120_000_000


def claims(seconds: float) -> Iterator[Claim]:
    """Three rows, within about so many seconds."""
    side = sides()[-1]
    words = ["-m", "tests.bench.cost.paced", str(STEPS_S), str(WORKERS)]
    with Child(words, side.environment) as child:
        child.ready()
        with PseudoTerminal("tui.cli.main", "attach", str(child.pid), size=SIZE) as terminal:
            _read(terminal, WARM_S)
            before, began_s = use_of(terminal.process.pid), monotonic()
            pyspy_before = _pyspy_cpu_s(terminal.process.pid)
            most_pss_bytes = _read(terminal, seconds)
            passed_s = monotonic() - began_s
            after = use_of(terminal.process.pid)
            pyspy_s = _pyspy_cpu_s(terminal.process.pid) - pyspy_before
    loop = f"{side.name}, {STEPS_S} steps/s, {WORKERS} workers, {seconds:.0f} s"
    core, pyspy_core = (after.cpu_s - before.cpu_s) / passed_s, pyspy_s / passed_s
    pss_bytes = after.pss_bytes
    yield _row("monitor", loop, core, pss_bytes, barred=True)
    yield _row("its py-spy", loop, pyspy_core, most_pss_bytes, barred=False)
    both = core + pyspy_core, pss_bytes + most_pss_bytes
    yield _row("monitor with its py-spy", loop, *both, barred=True)


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


def _row(item: str, loop: str, core: float, pss_bytes: int, barred: bool) -> Claim:
    return Claim(
        item,
        loop,
        f"{100 * core:.1f} % of a core, {pss_bytes / 1e6:.0f} MB PSS",
        f"{100 * CORE:.0f} %, {PSS_BYTES / 1e6:.0f} MB" if barred else "",
        core <= CORE and pss_bytes <= PSS_BYTES if barred else None,
        {"core": core, "pss_mb": pss_bytes / 1e6},
    )
