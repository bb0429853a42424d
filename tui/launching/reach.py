"""Whether the probe gets into what is started, as far as the command line shows it."""

import os
from collections.abc import Sequence
from typing import Final

from tui.launching.command import is_python

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
WITH_A_VALUE: Final = "WX"
"""Python's flags that take the next word where nothing follows in their own."""
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
    if is_python(program):
        for flag in python_flags(words):
            if flag in DEAF:
                return DEAF[flag]
    return None


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
