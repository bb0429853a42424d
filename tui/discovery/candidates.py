"""What can be watched on this machine: for `gpuwatch ls` and for the picker."""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from .command_lines import has_opened_driver, maps_torch, text_of
from .secrets import masked
from .targets import Found, find_probes, is_python, script_of_process, user_of


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
    """What its probe says; None where it has none, and holds a GPU or has loaded torch."""
    launcher: Launcher | None = None
    """Of a rank; None for a run of one process."""
    arguments: tuple[str, ...] = ()
    """Behind the script; of several runs of one script, those that not all of them have."""
    folder: str = ""
    """Where it runs, "~/runs/a"; "" where this user may not know."""
    started_unix: float | None = None
    gpus: tuple[int, ...] = ()
    """NVML's indices of those that it holds a context on, where NVML knows its pid."""
    on_gpu: bool = False
    """It has opened the GPU's driver."""

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

    @property
    def gpu(self) -> str:
        """ "0", "0,1"; "yes" where it is not known which; "-" without."""
        return ",".join(map(str, self.gpus)) or ("yes" if self.on_gpu else "-")

    @property
    def label(self) -> str:
        """ "train.py --lr 3e-4 in ~/runs/a": what distinguishes it from others."""
        where = f" in {self.folder}" if self.folder else ""
        return " ".join((self.script, *self.arguments)) + where


def find_candidates() -> list[Candidate]:
    """Processes with a probe, ranks next to each other; then Python processes without one that hold
    a GPU or have loaded torch."""
    probes = [_with_probe(found) for found in find_probes()]
    launchers = {one.launcher.pid for one in probes if one.launcher}
    probes = [one for one in probes if one.pid not in launchers]  # named above their ranks
    launched = sorted(probes, key=lambda one: one.launcher.pid if one.launcher else one.pid)
    known = {one.pid for one in probes}
    return disambiguated([described(one) for one in (*launched, *_without_probe(known))])


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


def _without_probe(probed: Collection[int]) -> list[Candidate]:
    """Their workers, which inherit the driver and torch, are left out, and so is what started a
    process that has a probe."""
    above = {parent.pid for pid in probed for parent in _parents(pid)}
    others = [pid for pid in psutil.pids() if pid not in probed and pid not in above]
    on_gpu = [pid for pid in others if has_opened_driver(pid)]
    with_torch = [pid for pid in others if pid not in on_gpu and maps_torch(pid)]
    # A launcher of ranks has loaded torch too, and its ranks are what is worth watching.
    launchers = {parent.pid for pid in on_gpu for parent in _parents(pid)}
    with_torch = [pid for pid in with_torch if pid not in launchers]
    candidates = []
    for pid in (*on_gpu, *with_torch):
        try:
            process = psutil.Process(pid)
            known = {*probed, *on_gpu} if pid in on_gpu else {*probed, *on_gpu, *with_torch}
            inherited = any(parent.pid in known for parent in process.parents())
            if not inherited and is_python(process):
                candidates.append(Candidate(pid, user_of(pid), script_of_process(process), None))
        except psutil.Error:
            continue  # it has ended, or is another user's
    return candidates


def _parents(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).parents()
    except psutil.Error:
        return []


def described(one: Candidate) -> Candidate:
    """With what its process shows: arguments, folder, age, GPUs."""
    try:
        process = psutil.Process(one.pid)
        words, started = list(map(text_of, process.cmdline())), process.create_time()
    except psutil.Error:
        return one
    return replace(
        one,
        arguments=_arguments(words, one),
        folder=_folder(one.pid),
        started_unix=started,
        gpus=_gpus_of(one.pid),
        on_gpu=has_opened_driver(one.pid),
    )


def _arguments(words: list[str], one: Candidate) -> tuple[str, ...]:
    """What follows the script on the command line, options with their values."""
    if one.found is not None and one.found.hello.argv:
        words = one.found.hello.argv
    names = [os.path.basename(word) for word in words]
    words = masked(words)
    rest = words[names.index(one.script) + 1 :] if one.script in names else []
    if one.script == "-c":
        rest = rest[1:]
    units: list[str] = []
    for word in rest:
        option = units[-1] if units else ""
        if option.startswith("-") and "=" not in option and " " not in option and word[0:1] != "-":
            units[-1] += f" {word}"
        else:
            units.append(word)
    return tuple(units)


def disambiguated(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Each without the arguments that all runs of its script have."""
    runs: dict[str, list[Candidate]] = {}
    every = list(candidates)
    for one in every:
        runs.setdefault(one.script, []).append(one)
    return [_without_shared(one, runs[one.script]) for one in every]


def _without_shared(one: Candidate, runs: list[Candidate]) -> Candidate:
    if len(runs) < 2:
        return one
    shared = set(one.arguments).intersection(*(other.arguments for other in runs))
    return replace(one, arguments=tuple(word for word in one.arguments if word not in shared))


def _folder(pid: int) -> str:
    try:
        folder = text_of(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return ""
    home = str(Path.home())
    inside = folder == home or folder.startswith(f"{home}/")
    return f"~{folder[len(home) :]}" if inside and home != "/" else folder


def _gpus_of(pid: int) -> tuple[int, ...]:
    """Devices with a context of it. In a container NVML's pids are other ones: then none."""
    nvml = _nvml()
    if nvml is None:
        return ()
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            device = nvml.nvmlDeviceGetHandleByIndex(index)
            running = nvml.nvmlDeviceGetComputeRunningProcesses(device)
        except nvml.NVMLError:
            continue
        if any(entry.pid == pid for entry in running):
            found.append(index)
    return tuple(found)


@cache
def _nvml() -> Any:
    """The driver's library, opened once and for all; None without a driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
