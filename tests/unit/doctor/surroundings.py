"""Surroundings that never were: a machine where everything can be measured, and its faults."""

from gpuwatch.tui.model.machine_facts import (
    CoresFact,
    DriverFact,
    GpuFact,
    MachineFacts,
    MemoryFact,
    PtraceFact,
    TerminalFact,
)

GIB = 1024**3

FACTS = MachineFacts(
    driver=DriverFact("570.86", (GpuFact("NVIDIA H200", gpm=True),)),
    engine=None,
    py_spy="/usr/bin/py-spy",
    ptrace=PtraceFact(scope=None, capable=False, in_container=False),
    cores=CoresFact(allowed=16.0, machine=16),
    memory=MemoryFact(total=503 * GIB, available=417 * GIB, machine=503 * GIB),
    terminal=TerminalFact("xterm-256color", "many", "unicode", True, "", False),
    versions=(("python", "3.12.4"), ("gpuwatch", "0.1.0")),
)
