"""The hooks of the installed probe, taken out of torch and put back within microseconds.

Out is out: every hook puts back the very objects that were there, by its own undo. In: every hook
is attached as `install()` does. The probe's thread, its socket and its page stay, and so does what
dynamo was made to skip: it costs a step nothing, and making it takes a millisecond.
"""

import sys

from gpuwatch.probe.hooks import Detach, tracing
from gpuwatch.probe.installed import HOOKS, Installed


class InAndOut:
    """In at first. Hooks on what is imported later are none of its own: they stay in."""

    def __init__(self, installed: Installed) -> None:
        self._recorder = installed.recorder
        there = [hook for hook in HOOKS if hook.MODULE in sys.modules]
        # All are undone once: which undoing is whose depends on what was imported when.
        self._undo: list[Detach] = [*installed._detach]
        installed._detach.clear()
        self.take_out()
        if tracing in there:
            installed._detach.append(tracing.attach(self._recorder))
        self._hooks = [hook for hook in there if hook is not tracing]
        self.put_in()

    def take_out(self) -> None:
        """Training as if the probe had never been there. To be called between two steps."""
        for undo in self._undo:
            left = undo()
            assert not left, left
        self._undo.clear()

    def put_in(self) -> None:
        """Training as after `install()`. They are out."""
        self._undo += [hook.attach(self._recorder) for hook in self._hooks]
