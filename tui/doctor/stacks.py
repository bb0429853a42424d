"""py-spy, and whether the kernel lets it look."""

from tui.doctor.check import Check
from tui.doctor.facts import Facts, PtraceFact
from tui.doctor.missing import missing_check, missing_of, unread_check
from tui.snapshot import Snapshot
from tui.wording.numbers import count

ANCESTORS_ONLY = 1
"""Yama's scope from which on only a process's ancestors may look into it."""


def py_spy(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """Where the host's time goes."""
    if snapshot is not None and snapshot.stacks is not None and snapshot.stacks.main_samples:
        stacks = snapshot.stacks
        said = f"{count(stacks.main_samples)} samples of the main thread"
        if stacks.worker_samples:
            said += f", {count(stacks.worker_samples)} of the workers"
        return Check("py-spy", "ok", f"{said}, taken without pausing them")
    if (without := missing_of(snapshot, "stacks")) is not None:
        return missing_check("py-spy", without)
    if facts is None:
        return Check("py-spy", "unknown", "no stack was sampled yet")
    if not facts.py_spy:
        return Check("py-spy", "missing", "py-spy was not found", "pip install py-spy")
    return Check("py-spy", "ok", facts.py_spy)


def ptrace(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """Whether this user may look into the process."""
    if facts is None:
        return unread_check("ptrace", snapshot)
    told = facts.ptrace
    if snapshot is not None and snapshot.stacks is not None:
        return Check("ptrace", "ok", "the kernel lets us look: stacks arrive")
    if told.scope is None or told.scope < ANCESTORS_ONLY or told.capable:
        return Check("ptrace", "ok", f"allowed for {_whom(told)}")
    if told.scope > ANCESTORS_ONLY + 1:
        said = f"the kernel allows it to nobody (yama ptrace_scope={told.scope}, until a reboot)"
        return Check("ptrace", "missing", said)
    said = f"allowed for a process's ancestors alone (yama ptrace_scope={told.scope})"
    if told.in_container:
        return Check("ptrace", "missing", said, "start the container with --cap-add=SYS_PTRACE")
    return Check(
        "ptrace",
        "missing",
        f"{said}: charts work, stacks are off",
        "sudo sysctl kernel.yama.ptrace_scope=0, or run gpuwatch as root",
    )


def _whom(told: PtraceFact) -> str:
    if told.capable:
        return "all processes (CAP_SYS_PTRACE)"
    return "this user's own processes" + ("" if told.scope is None else " (yama ptrace_scope=0)")
