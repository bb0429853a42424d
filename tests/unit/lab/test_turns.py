"""The end of a turn."""

import psutil
import pytest

from gpuwatch.tui.errors import GpuwatchError
from gpuwatch.tui.lab import turns


class Held:
    """A process that nobody can kill."""

    pid = 7

    def kill(self) -> None:
        raise psutil.AccessDenied(self.pid)


def test_a_process_that_cannot_be_killed_ends_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next turn would be measured beside it."""
    held = Held()

    class Us:
        def children(self) -> list[Held]:
            return [held]

    monkeypatch.setattr(psutil, "Process", Us)
    monkeypatch.setattr(psutil, "wait_procs", lambda processes, timeout: ([], processes))
    monkeypatch.setattr(turns, "GONE_S", 0.0)
    with pytest.raises(GpuwatchError, match="process 7"):
        turns._kill_what_is_left([])
