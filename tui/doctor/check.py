"""One answer of the doctor."""

from dataclasses import dataclass
from typing import Literal

from ..model.snapshot import Snapshot

CheckState = Literal["ok", "partly", "missing", "unknown"]
"""Measured; measured with something left out; not measured; not looked at, or not applicable."""


@dataclass(frozen=True, slots=True)
class Check:
    """About one source of what is shown."""

    id: str
    """Stable: scripts may ask for it."""
    state: CheckState
    says: str
    """What is measured, or what is not and why."""
    fix: str = ""
    """The command, or the line, that changes it; "" where there is nothing to change."""


# What a session says that it cannot see, by source.


def missing_of(snapshot: Snapshot | None, source: str) -> tuple[str, str] | None:
    """Reason and fix ("" without one) of a source that does not deliver; None where it does."""
    for line in () if snapshot is None else snapshot.status.missing:
        name, _, said = line.partition(": ")
        if name == source:
            reason, _, fix = said.partition(". ")
            return reason, fix
    return None


def missing_check(about: str, said: tuple[str, str], fix: str = "") -> Check:
    """A check that passes on what the session said; `fix` where it knows none."""
    return Check(about, "missing", said[0], said[1] or fix)


def unread_check(about: str, snapshot: Snapshot | None) -> Check:
    """A check that would need facts of the surroundings, which are not there (yet)."""
    replayed = snapshot is not None and snapshot.status.replay is not None
    return Check(about, "unknown", "a recording does not tell" if replayed else "being looked at")
