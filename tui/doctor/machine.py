"""The cores and the memory that the process may use, and whether a limit holds it back."""

from tui.doctor.check import Check
from tui.doctor.facts import Facts
from tui.doctor.missing import unread_check
from tui.snapshot import Snapshot
from tui.wording.numbers import count, digits, percent, size

CUT = 0.01
"""Of its periods: fewer than this are no reason to ask for more."""


def cores(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """By affinity and quota."""
    allowed = snapshot.cores if snapshot is not None else None
    if allowed is None and facts is not None:
        allowed = facts.cores.allowed
    if allowed is None:
        return Check("cores", "unknown", "not read yet")
    said = f"{digits(allowed)} may be used" if allowed % 1 else f"{allowed:.0f} may be used"
    if facts is not None and facts.cores.machine > allowed:
        return Check("cores", "ok", f"{said}, of {facts.cores.machine} that the machine has")
    return Check("cores", "ok", said)


def cgroup(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """The CPU quota and the memory limit of its group."""
    if facts is None:
        return unread_check("cgroup", snapshot)
    told, limits = facts.cores, []
    if told.quota_periods is not None:
        limits.append(f"a CPU quota of {digits(told.allowed)} cores")
    if facts.memory.total < facts.memory.machine:
        limits.append(f"a memory limit of {size(facts.memory.total)}")
    if not limits:
        return Check("cgroup", "ok", "neither a CPU quota nor a memory limit")
    said = " and ".join(limits)
    if told.quota_periods and told.quota_cut / told.quota_periods > CUT:
        cut = f"{count(told.quota_cut)} of {count(told.quota_periods)} periods"
        said += f", which held it back in {cut} ({percent(told.quota_cut / told.quota_periods)})"
        return Check("cgroup", "partly", said, "raise cpu.max (docker: --cpus; Slurm: -c)")
    return Check("cgroup", "ok", said)


def memory(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """Of the host."""
    view = snapshot.memory if snapshot is not None else None
    total = view.total_bytes if view else None
    free = view.available_bytes if view else None
    if total is None and facts is not None:
        total, free = facts.memory.total, facts.memory.available
    if total is None or free is None:
        return Check("memory", "unknown", "not read yet")
    return Check("memory", "ok", f"{size(free)} of {size(total)} are free")
