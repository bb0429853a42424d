"""The probe in another process: putting it in, taking it out, finding it below a launcher."""

import os
from pathlib import Path
from typing import Final, Literal

import psutil

from .. import clock
from ..discovery.state_page import pages_of
from ..discovery.targets import is_own, start_ticks
from ..errors import GpuwatchError, NoProcessError, NothingToMeasureError, NotPermittedError
from .command import BOOT
from .interpreter import TargetPython, refused

SEARCH_NS: Final = 200_000_000


class ProbeBelow:
    """Of several ranks the first one of this machine."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._next_ns = 0
        self.pid: int | None = None
        """The process to watch; None as long as there is none."""

    def is_there(self) -> bool:
        """Look, if it is time to."""
        now_ns = clock.now_ns()
        if self.pid is None and now_ns >= self._next_ns:
            self._next_ns = now_ns + SEARCH_NS
            self.pid = next(filter(_is_first, self._family()), None)
        return self.pid is not None

    def _family(self) -> list[int]:
        try:
            return [self._root.pid, *(child.pid for child in self._root.children(recursive=True))]
        except psutil.Error:
            return []  # it has just ended


def _is_first(pid: int) -> bool:
    try:
        pages = pages_of(pid)
    except OSError:
        return False
    own = [opened.hello for opened in pages if is_own(opened.hello, pid)]
    for opened in pages:
        opened.close()
    return any(hello.local_rank in (None, 0) for hello in own)


IN_S: Final = 10.0
"""For the main thread to run Python again, and for the probe's imports beside it."""
OUT_S: Final = 2.0
InjectAction = Literal["put_in", "take_out"]


class Injection:
    """One probe in one process. All that is done to the process is done by a program that has the
    rights of its user (`as_target`)."""

    def __init__(self, python: TargetPython) -> None:
        self._python = python

    def put_in(self) -> None:
        """Returns when the probe is in. Raises GpuwatchError where it is not."""
        pid = self._python.pid
        answer = self._run("put_in", IN_S)
        if answer is None:
            raise NothingToMeasureError(
                f"process {pid} has not taken the probe within {IN_S:.0f} s",
                "Its main thread runs no Python: it is in one long call, or stopped.",
                f"Where it is: gpuwatch attach {pid}",
            )
        if answer:
            raise GpuwatchError(f"process {pid} has not taken the probe", answer)

    def take_out(self) -> bool:
        """Whether the probe is out by now; else it goes when the main thread runs Python again, or
        by itself a minute after this monitor has ended."""
        try:
            return self._run("take_out", OUT_S) is not None
        except NoProcessError:
            return True
        except GpuwatchError:
            return False

    def _run(self, action: InjectAction, limit_s: float) -> str | None:
        """The process's answer when it was done; None when it was not in time.

        Raises NoProcessError when it ends, GpuwatchError where it does not let us in.
        """
        outcome, text = self._python.hand_over(
            text=(Path(BOOT) / "injected.py").read_text(encoding="utf-8"),
            package=str(Path(BOOT).parent),
            action=action,
            monitor=[os.getpid(), start_ticks(os.getpid()) or 0],
            limit_s=limit_s,
        )
        pid = self._python.pid
        if outcome == "ended":
            raise NoProcessError(f"process {pid} has ended")
        if outcome == "unreadable":
            raise NotPermittedError(
                f"process {pid} could not load the probe",
                f"{text}.",
                "Install gpuwatch-torch where that user can read it.",
            )
        if outcome == "refused":
            raise refused(pid, text)
        return text if outcome == "done" else None
