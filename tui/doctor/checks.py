"""The table of checks, in the order in which they are told."""

from collections.abc import Callable, Sequence
from typing import Final

from tui.doctor.check import Check, State
from tui.doctor.facts import Facts
from tui.doctor.gpu import clocks, dcgm, gpm, nvml
from tui.doctor.machine import cgroup, cores, memory
from tui.doctor.probe import probe, socket, versions
from tui.doctor.stacks import ptrace, py_spy
from tui.doctor.terminal import terminal
from tui.snapshot import Snapshot

CHECKS: Final[Sequence[Callable[[Facts | None, Snapshot | None], Check]]] = (
    *(probe, socket, nvml, gpm, dcgm, clocks, py_spy, ptrace),
    *(cores, cgroup, memory, terminal, versions),
)
GLYPHS: Final[dict[State, str]] = {"ok": "✓", "partly": "◆", "missing": "▲", "unknown": "○"}
WORDS: Final[dict[State, str]] = {
    "ok": "in order",
    "partly": "partly",
    "missing": "missing",
    "unknown": "not known",
}


def examine(facts: Facts | None, snapshot: Snapshot | None) -> tuple[Check, ...]:
    """Every check. `facts` None: they are being gathered, or it is a recording, whose machine is
    not this one. `snapshot` None: no process is watched."""
    return tuple(check(facts, snapshot) for check in CHECKS)
