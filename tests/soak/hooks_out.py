"""The hooks of the installed probe, taken out of torch and put back while monitors go on watching.

`probe.uninstall()` says good-bye to them: their hour would be many short sessions. So the hooks
alone go; its thread, socket and state page stay and cost what they cost. Monitors see the gap as a
phase of its name.
"""

from typing import Final

import probe
from gpuwatch.probe import api
from tests.measuring.in_and_out import InAndOut

PHASE: Final = "without hooks"


class Hooks:
    """In place at first. Without an installed probe nothing is done."""

    def __init__(self) -> None:
        self._are_in = True
        self._gap = probe.phase(PHASE)
        self._hooks: InAndOut | None = None

    def put(self, inside: bool) -> None:
        """Have them in place or not. To be called between two steps."""
        if api._installed is None or inside == self._are_in:
            return
        if self._hooks is None:  # not before the run has imported all that there are hooks on
            self._hooks = InAndOut(api._installed)
        self._are_in = inside
        if inside:
            self._hooks.put_in()
            self._gap.__exit__(None, None, None)
        else:
            self._gap.__enter__()
            self._hooks.take_out()
