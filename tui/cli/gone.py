"""A pid that is no process any more: which could be meant instead."""

from typing import Final

from tui.candidates import find_candidates
from tui.errors import NoProcessError

TOLD: Final = 5
"""Processes that are named."""


def with_candidates(error: NoProcessError) -> NoProcessError:
    """The same error with what can be watched now, where it says nothing else."""
    if error.why:
        return error
    running = ", ".join(f"{one.pid} ({one.script})" for one in find_candidates()[:TOLD])
    why = f"Processes that can be watched now: {running}" if running else ""
    return NoProcessError(error.what, why, error.fix)
