"""The doctor's checks, in the order in which they are shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ..discovery.state_page import ANCESTORS_ONLY, no_stacks
from ..messages import SCHEMA
from ..model.machine_facts import MachineFacts, PtraceFact
from ..model.snapshot import Snapshot
from ..terminal import CharsetName, ColourCount
from ..verdict.findings import MissingSignal, Signal, find_missing
from ..wording.numbers import count, digits, duration, percent, size

CheckState = Literal["ok", "partly", "missing", "unknown"]
"""Measured; measured with something left out; not measured; not read, or not applicable."""


@dataclass(frozen=True, slots=True)
class Check:
    """About one source of what is shown."""

    id: str
    """Stable: scripts may ask for it."""
    state: CheckState
    text: str
    """What is measured, or what is not and why."""
    fix: str = ""
    """The command, or the line, that changes it; "" where there is nothing to change."""


def _missing(snapshot: Snapshot | None, signal: Signal) -> MissingSignal | None:
    return None if snapshot is None else find_missing(snapshot.status.missing, signal)


def _missing_check(about: str, missing: MissingSignal, fix: str = "") -> Check:
    """A check that passes on what a source reported; `fix` where the source knows none."""
    text = f"{missing.why}; {missing.instead}" if missing.instead else missing.why
    return Check(about, "missing", text, missing.fix or fix)


def _unread_check(about: str, snapshot: Snapshot | None) -> Check:
    """A check of this machine, whose facts are still being read or are a recording's."""
    status = snapshot.status if snapshot is not None else None
    if status is not None and status.replay is not None:
        return Check(about, "unknown", "not in a recording")
    if status is not None and status.link is not None:
        return Check(about, "unknown", "not read here", f"on {status.link.place}: gpuwatch doctor")
    return Check(about, "unknown", "being read")


# The probe in the training process, its socket, and the versions on both sides.

LINES: Final = (
    "start it with: gpuwatch run train.py, or with import probe; probe.install() at its top"
)


def probe(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Steps and phases."""
    target = facts.target if facts else None
    if snapshot is not None and snapshot.hello is not None:
        if (fault := _missing(snapshot, "probe")) is not None:
            return _missing_check("probe", fault, "restart the run to watch it again")
        hello = snapshot.hello
        steps = f", {count(snapshot.steps.total)} steps seen" if snapshot.steps else ""
        text = f"steps and phases from within {snapshot.script} (probe {hello.probe}){steps}"
        return Check("probe", "ok", text)
    if (without := _missing(snapshot, "probe")) is not None:
        return _missing_check("probe", without, LINES)
    if target is not None and not target.probe:
        return Check("probe", "missing", target.fault or "no probe in it", target.fix or LINES)
    if target is None and snapshot is None:
        return Check("probe", "unknown", "no process was given", "gpuwatch doctor PID; gpuwatch ls")
    return Check("probe", "unknown", "no answer yet")


def socket(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """How the steps get here."""
    if (without := _missing(snapshot, "feed")) is not None:
        return _missing_check("socket", without)
    if snapshot is None or snapshot.status.freshness_s is None:
        return Check("socket", "unknown", "nothing received yet")
    status = snapshot.status
    if status.state == "silent":
        silent = duration(status.freshness_s or 0.0)
        return Check("socket", "partly", f"no message for {silent}: the process is blocked")
    if status.lost_messages:
        lost = f"{count(status.lost_messages)} messages lost: this monitor was too slow"
        return Check("socket", "partly", lost, "give it a core of its own")
    if status.refused_requests:
        refused = (
            f"messages arrive; the probe did not know {count(status.refused_requests)} requests"
        )
        fix = "install the same gpuwatch-torch for everyone who watches it"
        return Check("socket", "partly", refused, fix)
    if status.unended_phases:
        unended = f"{count(status.unended_phases)} phases were entered and not left"
        fix = "with probe.phase(name): leaves it; in a generator, once that is read or closed"
        return Check("socket", "partly", f"messages arrive; {unended}", fix)
    return Check("socket", "ok", "messages arrive, none lost")


def versions(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Of gpuwatch on both sides, and of what it uses."""
    schema = facts.target.schema if facts and facts.target else None
    if snapshot is not None and snapshot.hello is not None:
        schema = snapshot.hello.schema
    if schema is not None and schema != SCHEMA:
        text = f"the probe's messages have version {schema}, this gpuwatch reads version {SCHEMA}"
        fix = "install the same gpuwatch-torch on both sides"
        return Check("versions", "partly", text, fix)
    if facts is None:
        return _unread_check("versions", snapshot)
    installed = ", ".join(f"{name} {version}" for name, version in facts.versions)
    return Check("versions", "ok", installed)


# py-spy, and whether the kernel lets it read.


def py_spy(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Where the host's time goes."""
    if snapshot is not None and snapshot.stacks is not None and snapshot.stacks.main_samples:
        stacks = snapshot.stacks
        text = f"{count(stacks.main_samples)} samples of the main thread"
        if stacks.worker_samples:
            text += f", {count(stacks.worker_samples)} of the workers"
        return Check("py-spy", "ok", f"{text}, taken without pausing them")
    if (without := _missing(snapshot, "stacks")) is not None:
        trees = snapshot.trees if snapshot is not None else None
        if trees is not None and trees.sorted_by == "dump":
            text = f"{without.why}; as the run is stalled, the probe reported its threads once"
            return Check("py-spy", "partly", text, without.fix)
        return _missing_check("py-spy", without)
    if facts is None:
        return Check("py-spy", "unknown", "no stack sampled yet")
    if not facts.py_spy:
        return Check("py-spy", "missing", "py-spy was not found", "pip install py-spy")
    return Check("py-spy", "ok", facts.py_spy)


def ptrace(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Whether this user may read the process's stacks."""
    if facts is None:
        return _unread_check("ptrace", snapshot)
    fact = facts.ptrace
    if snapshot is not None and snapshot.stacks is not None:
        return Check("ptrace", "ok", "stacks may be read: they arrive")
    if fact.scope is None or fact.scope < ANCESTORS_ONLY or fact.capable:
        return Check("ptrace", "ok", f"stacks may be read of {_whose(fact)}")
    reason, fix = no_stacks(fact.scope, fact.in_container)
    return Check("ptrace", "missing", f"{reason}: charts work, stacks are off", fix)


def _whose(fact: PtraceFact) -> str:
    if fact.capable:
        return "all programs (CAP_SYS_PTRACE)"
    return "this user's own programs" + ("" if fact.scope is None else " (yama ptrace_scope=0)")


# What the terminal can show.

COLOURS: Final[dict[ColourCount, str]] = {
    "many": "256 colours or more",
    "16": "16 colours",
    "none": "no colours (NO_COLOR)",
}
CHARSETS: Final[dict[CharsetName, str]] = {
    "unicode": "Unicode",
    "console": "the console's characters",
    "ascii": "ASCII only",
}


def terminal(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Colours, characters, clipboard."""
    if facts is None:
        return _unread_check("terminal", snapshot)
    fact = facts.terminal
    if fact.screen:
        text = f"{fact.screen}: lines of text instead of a screen"
        return Check("terminal", "partly", text, "ssh -t, docker run -it; TERM=xterm-256color")
    clipboard = "clipboard" if fact.clipboard else "no clipboard (y writes a file)"
    words = [f"TERM={fact.term}", COLOURS[fact.colours], CHARSETS[fact.charset], clipboard]
    text = ", ".join(words)
    if fact.charset == "ascii":
        fix = "LC_ALL=C.UTF-8 gpuwatch …" + (" (and tmux -u)" if fact.tmux else "")
        return Check("terminal", "partly", text, fix)
    if fact.colours == "16":
        fix = "export TERM=xterm-256color, if the terminal has them"
        return Check("terminal", "partly", text, fix)
    return Check("terminal", "ok", text)


# The driver, the counters, what else may hold them, and the two clocks.

CONTAINER: Final = (
    "on the host: install the NVIDIA driver; in a container: start it with --gpus all"
)


def nvml(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Memory, power, clocks, utilisation."""
    if snapshot is not None and snapshot.gpus:
        names = _counted([gpu.name for gpu in snapshot.gpus])
        return Check("nvml", "ok", f"memory, power, clocks and other processes of {names}")
    if (without := _missing(snapshot, "nvml")) is not None:
        return _missing_check("nvml", without, CONTAINER)
    if facts is None:
        return _unread_check("nvml", snapshot)
    driver = facts.driver
    if driver.fault:
        return Check("nvml", "missing", driver.fault, CONTAINER)
    if not driver.gpus:
        return Check("nvml", "missing", "the driver finds no GPU", CONTAINER)
    text = f"driver {driver.version}: {_counted([gpu.name for gpu in driver.gpus])}"
    if snapshot is not None:
        text += "; this process uses none of them so far"
    return Check("nvml", "ok", text)


def gpm(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """The sawtooth: SM, tensor cores, DRAM, PCIe."""
    source = snapshot.sawtooth.source if snapshot and snapshot.sawtooth else ""
    if source.startswith("gpm"):
        return Check("gpm", "ok", f"SM, tensor cores, DRAM, PCIe and NVLink [{source}]")
    if (without := _missing(snapshot, "gpm")) is not None:
        return _missing_check("gpm", without)
    if facts is None:
        return _unread_check("gpm", snapshot)
    if not facts.driver.gpus:
        return Check("gpm", "unknown", "no GPU that has counters")
    older = [gpu.name for gpu in facts.driver.gpus if not gpu.gpm]
    if older:
        names = _counted(older)
        text = f"{names}: no such counters (Hopper or newer); NVML's utilisation stands in, ~1 s"
        return Check("gpm", "missing", text)
    return Check("gpm", "ok", "SM, tensor cores, DRAM, PCIe: every 100 ms")


def dcgm(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Another reader of the same counters."""
    if facts is None:
        return _unread_check("dcgm", snapshot)
    if facts.engine is None:
        return Check("dcgm", "ok", "no DCGM host engine, which could hold the counters, runs here")
    name, pid = facts.engine
    text = f"{name} (pid {pid}) reads the same counters"
    if _missing(snapshot, "gpm") is not None:
        return Check("dcgm", "partly", text, "dcgmi profile --pause (and --resume afterwards)")
    return Check("dcgm", "ok", f"{text}; nothing is missing because of it")


def clocks(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """Steps on the GPU's own clock."""
    if snapshot is None or not snapshot.gpus:
        return Check("clock-alignment", "unknown", "no watched process uses a GPU")
    phases = snapshot.gpu_phases
    if phases is None:
        text = "no step measured on the GPU's clock yet: waits are as the host sees them"
        return Check("clock-alignment", "missing", text)
    every = "every step" if phases.every <= 1 else f"1 step in {phases.every}"
    if phases.uncertain_ms is None:
        text = f"{every} on the GPU's clock, which is not aligned with the host's: no lag is shown"
        return Check("clock-alignment", "partly", text)
    text = f"{every} on the GPU's clock, aligned with the host's to ±{phases.uncertain_ms:.3f} ms"
    return Check("clock-alignment", "ok", text)


def _counted(names: list[str]) -> str:
    """ "8x H200", "A100, 2x T4"."""
    short = [name.removeprefix("NVIDIA ") for name in names]
    return ", ".join(
        name if short.count(name) == 1 else f"{short.count(name)}x {name}"
        for name in dict.fromkeys(short)
    )


# The cores and the memory that the process may use, and whether a limit holds it back.

CUT: Final = 0.01
"""Part of the quota's periods in which it may hold the process back before that is worth a fix."""


def cores(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """By affinity and quota."""
    allowed = snapshot.cores if snapshot is not None else None
    if allowed is None and facts is not None:
        allowed = facts.cores.allowed
    if allowed is None:
        return Check("cores", "unknown", "not read yet")
    text = f"{digits(allowed)} may be used" if allowed % 1 else f"{allowed:.0f} may be used"
    if facts is not None and facts.cores.machine > allowed:
        text += f", of {facts.cores.machine} in the machine"
    return Check("cores", "ok", text)


def cgroup(facts: MachineFacts | None, snapshot: Snapshot | None) -> Check:
    """The CPU quota and the memory limit of its group."""
    if facts is None:
        return _unread_check("cgroup", snapshot)
    fact, limits = facts.cores, []
    if fact.quota_periods is not None:
        limits.append(f"a CPU quota of {digits(fact.allowed)} cores")
    if facts.memory.total < facts.memory.machine:
        limits.append(f"a memory limit of {size(facts.memory.total)}")
    if not limits:
        return Check("cgroup", "ok", "neither a CPU quota nor a memory limit")
    text = " and ".join(limits)
    if fact.quota_periods and fact.quota_cut / fact.quota_periods > CUT:
        cut = f"{count(fact.quota_cut)} of {count(fact.quota_periods)} periods"
        text += f", which held it back in {cut} ({percent(fact.quota_cut / fact.quota_periods)})"
        return Check("cgroup", "partly", text, "raise cpu.max (docker: --cpus; Slurm: -c)")
    return Check("cgroup", "ok", text)


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
    """Every check. `facts` None: still being read, or of a recording, which has none. `snapshot`
    None: no process is watched."""
    return tuple(check(facts, snapshot) for check in CHECKS)
