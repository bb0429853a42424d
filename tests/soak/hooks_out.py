"""The hooks of the installed probe, taken out of torch and put back while monitors go on watching.

`probe.uninstall()` says good-bye to them: their hour would be many short sessions. So the hooks
alone go, by the probe's own undoing; its thread, socket and state page stay and cost what they
cost. Monitors see the gap as a phase of its name.
"""

import sys
from typing import Final

import probe
from probe import api
from probe.installed import HOOKS

PHASE: Final = "without hooks"


class Hooks:
    """In place at first. Without an installed probe nothing is done."""

    def __init__(self) -> None:
        self._are_in = True
        self._gap = probe.phase(PHASE)

    def put(self, inside: bool) -> None:
        """Have them in place or not. To be called between two steps."""
        installed = api._installed
        if installed is None or inside == self._are_in:
            return
        self._are_in = inside
        if inside:
            there = [hook for hook in HOOKS if hook.MODULE in sys.modules]
            installed._detach[:] = [hook.attach(installed.recorder) for hook in there]
            self._gap.__exit__(None, None, None)
            return
        self._gap.__enter__()
        for undo in installed._detach:
            left = undo()
            assert not left, left
