"""What a session says that it cannot see, by source."""

from tui.doctor.check import Check
from tui.snapshot import Snapshot


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
