"""What can be watched on this machine, or could be: for the list and for the picker."""

from dataclasses import dataclass

import psutil

from tui.sources.gpu_target import has_opened_driver
from tui.targets import Found, find_probes, is_python, script_of_process, user_of


@dataclass(frozen=True, slots=True)
class Launcher:
    """What started the ranks of a job."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One process."""

    pid: int
    user: str
    script: str
    found: Found | None
    """What its probe says; None: it holds a GPU, and has no probe."""
    launcher: Launcher | None = None
    """Of a rank; None for a run of one process."""

    @property
    def rank(self) -> str:
        """ "0/8", or "-"."""
        hello = self.found.hello if self.found else None
        if hello is None or hello.rank is None:
            return "-"
        return f"{hello.rank}/{hello.world_size or '?'}"

    @property
    def steps(self) -> str:
        """ "18,204", or "no probe"."""
        return "no probe" if self.found is None else f"{self.found.words.steps:,}"


def find_candidates() -> list[Candidate]:
    """Processes with a probe, ranks next to each other; then those on a GPU without one."""
    probes = [_with_probe(found) for found in find_probes()]
    launchers = {one.launcher.pid for one in probes if one.launcher}
    probes = [one for one in probes if one.pid not in launchers]  # named above their ranks
    launched = sorted(probes, key=lambda one: one.launcher.pid if one.launcher else one.pid)
    return [*launched, *_without_probe({one.pid for one in probes})]


def _with_probe(found: Found) -> Candidate:
    several = found.hello.rank is not None and (found.hello.world_size or 1) > 1
    launcher = _launcher_of(found.pid) if several else None
    return Candidate(found.pid, found.user, found.script, found, launcher)


def _launcher_of(pid: int) -> Launcher | None:
    try:
        parent = psutil.Process(pid).parent()
        if parent is None or not is_python(parent):
            return None
        return Launcher(parent.pid, script_of_process(parent))
    except psutil.Error:
        return None


def _without_probe(probed: set[int]) -> list[Candidate]:
    """Python processes that hold the driver open. Workers inherit it from who started them."""
    holding = [pid for pid in psutil.pids() if pid not in probed and has_opened_driver(pid)]
    known = probed | set(holding)
    candidates = []
    for pid in holding:
        try:
            process = psutil.Process(pid)
            inherited = any(parent.pid in known for parent in process.parents())
            if not inherited and is_python(process):
                candidates.append(Candidate(pid, user_of(pid), script_of_process(process), None))
        except psutil.Error:
            continue  # gone, or somebody else's
    return candidates
