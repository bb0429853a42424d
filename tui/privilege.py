"""What a person can do where the system does not let them look into a process."""

import os
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
ANCESTORS_ONLY: Final = 1
"""Yama's scope in which a process is open to those alone that started it, and to whom it lets in
itself: the probe lets in the monitor that came last."""
ROOT_ONLY: Final = 2
NOBODY: Final = 3
CAP_ADD: Final = "start the container with --cap-add=SYS_PTRACE"


def ptrace_scope(proc: Path = PROC) -> int | None:
    """Yama's; None where the kernel has no Yama."""
    try:
        return int((proc / "sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return None


def no_stacks(scope: int | None, contained: bool) -> tuple[str, str]:
    """Why the system lets nobody read the stacks of a process, and what changes that ("" where
    nothing does). `contained`: a container forbids it, as it must be where root is refused."""
    said = "" if scope is None else f" (yama ptrace_scope={scope})"
    if scope is not None and scope >= NOBODY:
        return f"until a reboot no program may read the stacks of another{said}", ""
    if contained:
        return "in this container no program may read the stacks of another", CAP_ADD
    if scope == ROOT_ONLY:
        return f"only root may read the stacks of a program here{said}", "run gpuwatch as root"
    if scope == ANCESTORS_ONLY:
        return (
            f"only what started a program may read its stacks here{said}",
            "sudo sysctl kernel.yama.ptrace_scope=0, or start it with gpuwatch run, or run "
            "gpuwatch as root",
        )
    return "this user may not read the stacks of that program", "run gpuwatch as root"


def is_root() -> bool:
    """Whether this program has all rights that a user can have here."""
    return os.geteuid() == 0


def refused_because(rule: str) -> str:
    """Why the system refused: the rule, which is not the reason where root asks."""
    return "The system refuses it to root too." if is_root() else rule


def looking_in(command: str) -> str:
    """How to get the rights for a command: root has them, but in a container without the leave to
    look into processes."""
    if is_root():
        return "A container may forbid it to root: start it with --cap-add=SYS_PTRACE"
    return f"Try: sudo $(which gpuwatch) {command.removeprefix('gpuwatch ')}"
