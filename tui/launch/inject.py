"""The probe in another process: putting it in, taking it out, finding it below a launcher."""

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Final, Literal

import psutil

from .. import clock
from ..discovery.state_page import pages_of
from ..discovery.targets import is_own, still_runs
from ..errors import GpuwatchError, NoProcessError, NothingToMeasureError
from .command import BOOT
from .interpreter import TargetPython

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
POLL_S: Final = 0.02
InjectAction = Literal["put_in", "take_out"]


class Injection:
    """One probe in one process. Its folder is the process's: it is named to it and written by it.

    Raises OSError where no folder can be made.
    """

    def __init__(self, python: TargetPython) -> None:
        self._python = python
        owner = os.stat(f"/proc/{python.pid}")
        self._folder = Path(tempfile.mkdtemp(prefix="gpuwatch-inject-"))
        self._owner = (owner.st_uid, owner.st_gid)
        self._hand_over(self._folder)

    def put_in(self) -> None:
        """Returns when the probe is in. Raises GpuwatchError where it is not."""
        pid = self._python.pid
        reply = self._run("put_in", IN_S)
        if reply is None:
            raise NothingToMeasureError(
                f"process {pid} has not taken the probe within {IN_S:.0f} s",
                "Its main thread runs no Python: it is in one long call, or stopped.",
                f"Where it is: gpuwatch attach {pid}",
            )
        if reply:
            self.forget()
            raise GpuwatchError(f"process {pid} has not taken the probe", reply)

    def take_out(self) -> bool:
        """Whether the probe is out by now; else it goes when the main thread runs Python again."""
        try:
            taken = self._run("take_out", OUT_S) is not None
        except NoProcessError:
            return True
        if taken:
            self.forget()
        return taken

    def forget(self) -> None:
        """Remove the folder. Not while the process may still be about to read from it."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, action: InjectAction, limit_s: float) -> str | None:
        """The process's answer when it was done; None when it was not in time.

        Raises NoProcessError when it ends, GpuwatchError where it does not let us in.
        """
        script, answer = self._folder / f"{action}.py", self._folder / f"{action}.reply"
        script.write_text(script_text(action, answer), encoding="utf-8")
        self._hand_over(script)
        try:
            self._python.execute(str(script))
        except GpuwatchError:
            self.forget()
            raise
        pause, started_ns = threading.Event(), clock.now_ns()
        while not answer.exists():
            if not still_runs(self._python.pid):
                self.forget()
                raise NoProcessError(f"process {self._python.pid} has ended")
            if (clock.now_ns() - started_ns) / 1e9 > limit_s:
                if action == "put_in":
                    script.write_text("")  # nobody would take it out again
                return None
            pause.wait(POLL_S)
        return answer.read_text(encoding="utf-8")

    def _hand_over(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, *self._owner)


def script_text(action: InjectAction, answer: Path) -> str:
    """What the process is to run."""
    text = (Path(BOOT) / "injected.py").read_text(encoding="utf-8")
    return f"{text}\n\nbegin({str(Path(BOOT).parent)!r}, {action!r}, {str(answer)!r})\n"
