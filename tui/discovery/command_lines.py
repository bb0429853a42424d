"""A process by what the kernel shows: its GPUs, whether it is a worker, and its command line."""

import os
import re
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import psutil


def text_of(word: str) -> str:
    """A name of a process, a file or an argument as text that can be written down: "?" for bytes
    that are none. The kernel cuts the name of a process off after 15 of them, within a letter."""
    return word.encode("utf-8", "replace").decode()


def visible(variable: str | None, uuids: list[str]) -> list[int]:
    """Positions of the devices that CUDA_VISIBLE_DEVICES names, in NVML's order (by PCI bus).

    Numbers are taken as positions in that order, which is CUDA's own only with
    CUDA_DEVICE_ORDER=PCI_BUS_ID or on a machine of equal GPUs; UUIDs (and their prefixes, as CUDA
    allows) are exact. Like CUDA, the first entry that names nothing ends the list.
    """
    if variable is None:
        return list(range(len(uuids)))
    chosen: list[int] = []
    for entry in (part.strip() for part in variable.split(",")):
        if entry.isdecimal() and int(entry) < len(uuids):
            chosen.append(int(entry))
            continue
        named = [at for at, uuid in enumerate(uuids) if entry and uuid.startswith(entry)]
        if len(named) != 1:
            break
        chosen += named
    return chosen


def has_opened_driver(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process holds NVIDIA's memory driver open, as all with a CUDA context do."""
    try:
        return any("nvidia-uvm" in os.readlink(fd) for fd in (proc / str(pid) / "fd").iterdir())
    except OSError:
        return False


def environ_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty when it may not be read."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in raw.decode(errors="replace").split("\0"))
    return {name: value for name, _, value in pairs if name}


# Whether a process is a DataLoader's worker, and whether it has loaded torch.

WORKER_NAME: Final = "pt_data_worker"
"""What torch calls its DataLoader workers."""


def is_worker(child: psutil.Process, target: psutil.Process) -> bool:
    """Whether a child loads data: torch names its workers; older ones by how they were started.

    A forked worker has its parent's command line; a spawned one says `spawn_main`.
    """
    if child.name() == WORKER_NAME:
        return True
    line = child.cmdline()
    return child.ppid() == target.pid and (
        line == target.cmdline() or any("spawn_main" in part for part in line)
    )


def maps_torch(pid: int) -> bool:
    """Whether a process has torch's libraries mapped, as far as this user may know."""
    try:
        return "/libtorch" in Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return False


def has_torch(maps: Path) -> bool | None:
    """Whether a process has torch's libraries mapped; None where this user may not know, or it has
    ended."""
    try:
        return "/libtorch" in maps.read_text(errors="replace")
    except OSError:
        return None


_PYTHON: Final = re.compile(r"python(\d(\.\d+)?t?)?")
WITH_A_VALUE: Final = "WX"
"""Python's flags that take the next word where nothing follows in their own."""
SAFE_LINE: Final = "import gpuwatch; gpuwatch.install()"
ANY: Final = "gpuwatch run train.py"
"""Where its own command line is not known."""


def run_again(pid: int) -> str:
    """ "gpuwatch run train.py …". Of a rank what its launcher would have been started with."""
    try:
        process = psutil.Process(pid)
        parent = process.parent()
        words = process.cmdline()
        if parent is not None and "RANK" in environ_of(pid) and is_interpreter(parent.cmdline()[0]):
            words = parent.cmdline()
    except (psutil.Error, IndexError):
        return ANY
    return command_for(words)


def other_probe(folder: str, python_path: str) -> str | None:
    """The file of another module that `import probe` finds in a script of this folder, None where
    that is ours. Asked of the interpreter that runs this: what another has installed is unseen."""
    folders = [folder, *filter(None, python_path.split(os.pathsep)), *sys.path]
    spec = PathFinder.find_spec("probe", folders)
    if spec is None or spec.origin is None:
        return None
    beside = Path(spec.origin).parent.parent / "gpuwatch_torch.py"
    return None if beside.exists() else spec.origin


def install_line(pid: int) -> str:
    """What its script is to have at its top: not `import probe` where that is another module."""
    try:
        process = psutil.Process(pid)
        script = next(iter(after_flags(process.cmdline())), "")
        folder = os.path.dirname(os.path.join(process.cwd(), script))
        found = other_probe(folder, environ_of(pid).get("PYTHONPATH", ""))
    except (psutil.Error, OSError):
        found = None
    return "import probe; probe.install()" if found is None else SAFE_LINE


def command_for(words: Sequence[str]) -> str:
    """For a command line; what it hands on is left out."""
    rest = list(after_flags(words))
    if rest[:1] == ["-m"] and len(rest) > 1:
        shown, handed_on = f"-m {rest[1]}", rest[2:]
    elif rest and not rest[0].startswith("-"):
        is_script = rest[0].endswith((".py", ".pyw"))
        shown, handed_on = rest[0] if is_script else os.path.basename(rest[0]), rest[1:]
    else:
        return ANY
    return f"gpuwatch run {shown}" + (" …" if handed_on else "")


def is_interpreter(word: str) -> bool:
    """Whether a program is a Python interpreter, by its name."""
    return _PYTHON.fullmatch(os.path.basename(word)) is not None


def python_flags(words: Sequence[str]) -> str:
    """The letters of the interpreter's own flags, up to what it is to run."""
    return _parsed(words)[0]


def after_flags(words: Sequence[str]) -> Sequence[str]:
    """What it is to run, from "-m", "-c" or the script on."""
    return words[_parsed(words)[1] :]


def _parsed(words: Sequence[str]) -> tuple[str, int]:
    """The letters, and where among the words they end."""
    letters, at = "", 1
    while at < len(words):
        word = words[at]
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        if not word.startswith("-") or word == "-":
            break
        for place, letter in enumerate(word[1:], start=1):
            if letter in "cm":
                return letters, at
            letters += letter
            if letter in WITH_A_VALUE:
                at += place == len(word) - 1
                break
        at += 1
    return letters, at
