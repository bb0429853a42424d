"""What a person can do where the system does not let them look into a process."""

import os


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
    return f"Try: sudo {command}"
