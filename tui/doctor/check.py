"""One answer of the doctor."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "partly", "missing", "unknown"]
"""Measured; measured with something left out; not measured; not looked at, or not applicable."""


@dataclass(frozen=True, slots=True)
class Check:
    """About one source of what is shown."""

    id: str
    """Stable: scripts may ask for it."""
    state: State
    says: str
    """What is measured, or what is not and why."""
    fix: str = ""
    """The command, or the line, that changes it; "" where there is nothing to change."""
