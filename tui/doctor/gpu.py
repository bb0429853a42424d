"""The driver, the counters, who else may hold them, and the two clocks."""

from tui.doctor.check import Check
from tui.doctor.facts import Facts
from tui.doctor.missing import missing_check, missing_of, unread_check
from tui.snapshot import Snapshot

CONTAINER = "on the host: install the NVIDIA driver; in a container: start it with --gpus all"


def nvml(facts: Facts | None, snapshot: Snapshot | None) -> Check:
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


def gpm(facts: Facts | None, snapshot: Snapshot | None) -> Check:
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


def dcgm(facts: Facts | None, snapshot: Snapshot | None) -> Check:
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


def clocks(facts: Facts | None, snapshot: Snapshot | None) -> Check:
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
