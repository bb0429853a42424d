"""Whether the probe gets into what is started, as far as the command line shows it."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ...probe.wire import page
from ..discovery.command_lines import (
    SAFE_LINE,
    after_flags,
    is_interpreter,
    other_probe,
    python_flags,
)
from ..errors import UsageError


@dataclass(frozen=True, slots=True)
class Command:
    """A program and what it is to see as its command line."""

    path: str
    words: tuple[str, ...]


def command_of(
    words: Sequence[str],
    find: Callable[[str], str | None] = shutil.which,
    asked: str = "gpuwatch run",
) -> Command:
    """The command behind the words of a person: `train.py …`, `-m module …`, `torchrun …`.

    `asked`: what the words stood behind. Raises UsageError where there is none, or no such program.
    """
    if not words:
        raise UsageError(
            "nothing to start",
            f"{asked} needs a script, a module, or a program",
            f"Try: {asked} train.py, {asked} -m pkg.train, {asked} torchrun train.py",
        )
    first = words[0]
    if first == "-m" or first.endswith((".py", ".pyw")):
        if first != "-m" and not os.path.isfile(first):
            raise UsageError(f"there is no script {first}", f"as seen from {os.getcwd()}")
        python = interpreter(find)
        return Command(python, (python, *words))
    path = find(first)
    if path is None:
        raise UsageError(
            f"there is no program {first}",
            "it is neither on the PATH nor a file that may be executed",
            f"A script that is not called .py: {asked} python {first}",
        )
    return Command(path, tuple(words))


def interpreter(find: Callable[[str], str | None] = shutil.which) -> str:
    """The Python that trains: our own where it has torch, else the one that `python` means.

    A gpuwatch that was installed apart (pipx) has none.
    """
    if find_spec("torch") is not None:
        return sys.executable
    return find("python") or find("python3") or sys.executable


# The environment in which every Python finds the probe.

BOOT: Final = str(Path(page.__file__).parents[1] / "boot")
"""Its `sitecustomize` waits for torch."""


COLLECTIVES: Final = {"TORCH_FR_BUFFER_SIZE": "2000"}
"""PyTorch's own default since 2.11; from 2.8 to 2.10 its flight recorder is off without it."""


def with_probe(environ: Mapping[str, str], boot: str = BOOT) -> dict[str, str]:
    """The same, with `boot` first on PYTHONPATH, which is otherwise kept as it is, and with
    PyTorch's flight recorder, unless somebody has decided on that."""
    before = environ.get("PYTHONPATH", "")
    entries = before.split(os.pathsep) if before else []
    if entries[:1] != [boot]:
        entries = [boot, *entries]
    return {**COLLECTIVES, **environ, "PYTHONPATH": os.pathsep.join(entries)}


ELSEWHERE: Final = {
    "sudo": "sudo",
    "doas": "doas",
    "su": "su",
    "docker": "a container",
    "podman": "a container",
    "apptainer": "a container",
    "singularity": "a container",
    "kubectl": "a container",
    "ssh": "ssh",
}
"""Programs that start others with an environment of their own, and what to call them."""
DEAF: Final = {
    "I": "python -I takes nothing from the environment",
    "E": "python -E takes nothing from the environment",
    "S": "python -S starts without its site module",
}


def why_unreached(words: Sequence[str]) -> str | None:
    """Why the probe cannot get in, and what can be done; None where it can, as far as is seen."""
    program = os.path.basename(words[0])
    if program in ELSEWHERE:
        elsewhere = ELSEWHERE[program]
        return f"{elsewhere} has an environment of its own; put gpuwatch run behind it"
    if program == "env" and any(word in ("-", "-i", "--ignore-environment") for word in words[1:]):
        return "env -i empties the environment; put gpuwatch run behind it"
    if is_interpreter(program):
        for flag in python_flags(words):
            if flag in DEAF:
                return DEAF[flag]
    return None


IMPORTS_PROBE: Final = re.compile(r"^\s*(import probe\b|from probe import\b)", re.MULTILINE)


def hidden_probe(words: Sequence[str], python_path: str) -> str | None:
    """That a script's own `import probe` will find another module; None where it will not."""
    script = next(iter(after_flags(words)), "")
    if not script.endswith((".py", ".pyw")):
        return None
    try:
        asks = IMPORTS_PROBE.search(Path(script).read_text("utf-8", "replace"))
    except OSError:
        return None
    found = other_probe(os.path.dirname(os.path.realpath(script)), python_path) if asks else None
    if found is None:
        return None
    return f"{found} is what import probe finds in {script}; ours is there as {SAFE_LINE}"
