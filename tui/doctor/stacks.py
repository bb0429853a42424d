"""py-spy, and whether the kernel lets it look."""

from tui.doctor.check import Check
from tui.doctor.facts import Facts, PtraceFact
from tui.doctor.missing import missing_check, missing_of, unread_check
from tui.privilege import ANCESTORS_ONLY, no_stacks
from tui.snapshot import Snapshot
from tui.wording.numbers import count


def py_spy(facts: Facts | None, snapshot: Snapshot | None) -> Check:
    """Where the host's time goes."""
    if snapshot is not None and snapshot.stacks is not None and snapshot.stacks.main_samples:
        stacks = snapshot.stacks
        said = f"{count(stacks.main_samples)} samples of the main thread"
        if stacks.worker_samples:
            said += f", {count(stacks.worker_samples)} of the workers"
        return Check("py-spy", "ok", f"{said}, taken without pausing them")
    if (without := missing_of(snapshot, "stacks")) is not None:
        trees = snapshot.trees if snapshot is not None else None
        if trees is not None and trees.told == "probe":
            said = (
                f"{without[0]}; as nothing moves, the probe itself told once where its threads are"
            )
            return Check("py-spy", "partly", said, without[1])
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
        return Check("ptrace", "ok", "the system lets us read stacks: they arrive")
    if told.scope is None or told.scope < ANCESTORS_ONLY or told.capable:
        return Check("ptrace", "ok", f"stacks may be read of {_whom(told)}")
    reason, fix = no_stacks(told.scope, told.in_container)
    return Check("ptrace", "missing", f"{reason}: charts work, stacks are off", fix)


def _whom(told: PtraceFact) -> str:
    if told.capable:
        return "all programs (CAP_SYS_PTRACE)"
    return "this user's own programs" + ("" if told.scope is None else " (yama ptrace_scope=0)")
