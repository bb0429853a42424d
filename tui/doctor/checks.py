"""The table of checks, in the order in which they are told."""

from collections.abc import Callable, Sequence
from typing import Final

from ...probe.wire.messages import SCHEMA
from ..discovery.access import ANCESTORS_ONLY, no_stacks
from ..model.machine_facts import MachineFacts, PtraceFact
from ..model.snapshot import Snapshot
from ..wording.numbers import count, digits, duration, percent, size
from .check import Check, CheckState, missing_check, missing_of, unread_check

# The probe in the training process, its socket, and that both sides speak the same version.

LINES = "start it with: gpuwatch run train.py, or with import probe; probe.install() at its top"


def probe(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Steps and phases."""
    target = facts.target if facts else None
    if snapshot is not None and snapshot.hello is not None:
        if (fault := missing_of(snapshot, "probe")) is not None:
            return missing_check("probe", fault, "restart the run to watch it again")
        hello = snapshot.hello
        steps = f", {count(snapshot.steps.total)} steps seen" if snapshot.steps else ""
        said = f"steps and phases from within {snapshot.script} (probe {hello.probe}){steps}"
        return Check("probe", "ok", said)
    if (without := missing_of(snapshot, "probe")) is not None:
        return missing_check("probe", without, LINES)
    if target is not None and not target.probe:
        return Check("probe", "missing", target.fault or "no probe in it", target.fix or LINES)
    if target is None and snapshot is None:
        return Check("probe", "unknown", "no process was given", "gpuwatch doctor PID; gpuwatch ls")
    return Check("probe", "unknown", "has not been heard of yet")


def socket(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """How the steps get here."""
    if facts is not None and facts.socket:
        fix = "remove that directory; the probe makes it anew within seconds"
        return Check("socket", "missing", facts.socket, fix)
    said = missing_of(snapshot, "feed")
    if said is not None:
        return missing_check("socket", said)
    if snapshot is None or snapshot.status.freshness_s is None:
        return Check("socket", "unknown", "nothing has been received yet")
    status = snapshot.status
    if status.state == "silent":
        heard = duration(status.freshness_s or 0.0)
        return Check("socket", "partly", f"no message for {heard}: the process is held up")
    if status.lost_messages:
        lost = f"{count(status.lost_messages)} messages were lost: this monitor was too slow"
        return Check("socket", "partly", lost, "give it a core of its own")
    if status.refused_requests:
        strange = f"messages arrive; {count(status.refused_requests)} requests were none it knows"
        return Check("socket", "partly", strange, "the same gpuwatch-torch for all who watch it")
    return Check("socket", "ok", "messages arrive, none was lost")


def versions(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Both sides, and what they stand on."""
    told = "" if facts is None else ", ".join(f"{name} {said}" for name, said in facts.versions)
    spoken = facts.target.schema if facts and facts.target else None
    if snapshot is not None and snapshot.hello is not None:
        spoken = snapshot.hello.schema
    if spoken is not None and spoken != SCHEMA:
        said = f"the probe speaks version {spoken}, this gpuwatch {SCHEMA}"
        return Check(
            "versions", "partly", said, "pip install the same gpuwatch-torch on both sides"
        )
    return Check("versions", "ok", told) if told else unread_check("versions", snapshot)


# py-spy, and whether the kernel lets it look.


def py_spy(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
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


def ptrace(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
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


# What the terminal can show.

COLOURS = {"many": "256 colours or more", "16": "16 colours", "none": "no colours (NO_COLOR)"}
CHARSETS = {"unicode": "Unicode", "console": "the console's characters", "ascii": "ASCII alone"}


def terminal(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Colours, characters, clipboard."""
    if facts is None:
        return unread_check("terminal", snapshot)
    told = facts.terminal
    if told.screen:
        said = f"{told.screen}: lines of text instead of a screen"
        return Check("terminal", "partly", said, "ssh -t, docker run -it; TERM=xterm-256color")
    clipboard = "clipboard" if told.clipboard else "no clipboard (y writes a file)"
    words = [f"TERM={told.term}", COLOURS[told.colours], CHARSETS[told.charset], clipboard]
    said = ", ".join(words)
    if told.charset == "ascii":
        fix = "LC_ALL=C.UTF-8 gpuwatch …" + (" (and tmux -u)" if told.tmux else "")
        return Check("terminal", "partly", said, fix)
    if told.colours == "16":
        return Check(
            "terminal", "partly", said, "export TERM=xterm-256color, if that is true of it"
        )
    return Check("terminal", "ok", said)


# The driver, the counters, who else may hold them, and the two clocks.

CONTAINER = "on the host: install the NVIDIA driver; in a container: start it with --gpus all"


def nvml(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Memory, power, clocks, utilisation."""
    if snapshot is not None and snapshot.gpus:
        names = _counted([gpu.name for gpu in snapshot.gpus])
        return Check("nvml", "ok", f"memory, power, clocks and who else is on it: {names}")
    if (without := missing_of(snapshot, "nvml")) is not None:
        return missing_check("nvml", without, CONTAINER)
    if facts is None:
        return unread_check("nvml", snapshot)
    driver = facts.driver
    if driver.fault:
        return Check("nvml", "missing", driver.fault, CONTAINER)
    if not driver.gpus:
        return Check("nvml", "missing", "the driver names no GPU", CONTAINER)
    said = f"driver {driver.version}: {_counted([gpu.name for gpu in driver.gpus])}"
    if snapshot is not None:
        return Check("nvml", "ok", f"{said}; this process uses none of them so far")
    return Check("nvml", "ok", said)


def gpm(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """The sawtooth: SM, tensor cores, DRAM, PCIe."""
    source = snapshot.sawtooth.source if snapshot and snapshot.sawtooth else ""
    if source.startswith("gpm"):
        return Check("gpm", "ok", f"SM, tensor cores, DRAM, PCIe and NVLink [{source}]")
    if (without := missing_of(snapshot, "gpm")) is not None:
        return missing_check("gpm", without)
    if facts is None:
        return unread_check("gpm", snapshot)
    if not facts.driver.gpus:
        return Check("gpm", "unknown", "no GPU whose counters could be read")
    older = [gpu.name for gpu in facts.driver.gpus if not gpu.gpm]
    if older:
        names = _counted(older)
        said = f"{names}: no such counters (Hopper or newer); NVML's utilisation stands in, ~1 s"
        return Check("gpm", "missing", said)
    return Check("gpm", "ok", "the counters are there: SM, tensor cores, DRAM, PCIe, every 100 ms")


def dcgm(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Another reader of the same counters."""
    if facts is None:
        return unread_check("dcgm", snapshot)
    if facts.engine is None:
        return Check("dcgm", "ok", "no DCGM host engine runs here that could hold the counters")
    name, pid = facts.engine
    said = f"{name} (pid {pid}) reads the same counters"
    if missing_of(snapshot, "gpm") is not None:
        return Check("dcgm", "partly", said, "dcgmi profile --pause (and --resume afterwards)")
    return Check("dcgm", "ok", f"{said}; nothing is missing because of it")


def clocks(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Steps on the GPU's own clock."""
    if snapshot is None or not snapshot.gpus:
        return Check("clock-alignment", "unknown", "no process that uses a GPU is watched")
    phases = snapshot.gpu_phases
    if phases is None:
        said = "no step was measured on the GPU's clock yet: waits are judged by the host's alone"
        return Check("clock-alignment", "missing", said)
    every = "every step" if phases.every <= 1 else f"1 step in {phases.every}"
    if phases.uncertain_ms is None:
        said = f"{every} on the GPU's clock, which is not aligned with the host's: no lag is shown"
        return Check("clock-alignment", "partly", said)
    said = f"{every} on the GPU's clock, aligned with the host's to ±{phases.uncertain_ms:.3f} ms"
    return Check("clock-alignment", "ok", said)


def _counted(names: list[str]) -> str:
    """ "8x H200", "A100, 2x T4"."""
    short = [name.removeprefix("NVIDIA ") for name in names]
    return ", ".join(
        name if short.count(name) == 1 else f"{short.count(name)}x {name}"
        for name in dict.fromkeys(short)
    )


# The cores and the memory that the process may use, and whether a limit holds it back.

CUT = 0.01
"""Of its periods: fewer than this are no reason to ask for more."""


def cores(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
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


def cgroup(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
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


def memory(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Of the host."""
    view = snapshot.memory if snapshot is not None else None
    total = view.total_bytes if view else None
    free = view.available_bytes if view else None
    if total is None and facts is not None:
        total, free = facts.memory.total, facts.memory.available
    if total is None or free is None:
        return Check("memory", "unknown", "not read yet")
    return Check("memory", "ok", f"{size(free)} of {size(total)} are free")


CHECKS: Final[Sequence[Callable[[MachineFacts | None, Snapshot | None], Check]]] = (
    *(probe, socket, nvml, gpm, dcgm, clocks, py_spy, ptrace),
    *(cores, cgroup, memory, terminal, versions),
)
GLYPHS: Final[dict[CheckState, str]] = {"ok": "✓", "partly": "◆", "missing": "▲", "unknown": "○"}
WORDS: Final[dict[CheckState, str]] = {
    "ok": "in order",
    "partly": "partly",
    "missing": "missing",
    "unknown": "not known",
}


def examine(facts: MachineFacts | None, snapshot: Snapshot | None) -> tuple[Check, ...]:
    """Every check. `facts` None: they are being gathered, or it is a recording, whose machine is
    not this one. `snapshot` None: no process is watched."""
    return tuple(check(facts, snapshot) for check in CHECKS)
