"""A training script as a child process, from its start to its last worker."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

GRACE_S: Final = (5.0, 3.0)
"""For SIGINT, then for SIGTERM; what is left is killed."""
TAIL_LINES: Final = 15
_PR_SET_PDEATHSIG: Final = 1


class Training:
    """Runs `script` with this interpreter, in a session of its own so that ctrl-c at the monitor
    reaches the monitor only. It ends with the monitor, even one that was killed (on Linux)."""

    def __init__(self, script: Path, log: Path, import_root: Path | None) -> None:
        self.log = log
        environ = dict(os.environ)
        if import_root is not None:
            parts = [str(import_root), environ.get("PYTHONPATH", "")]
            environ["PYTHONPATH"] = os.pathsep.join(part for part in parts if part)
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-u", str(script)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environ,
                start_new_session=True,
                preexec_fn=_follower(),
            )
        self.pid = self._process.pid
        # Whoever looks at it from outside then sees it gone when it is, and no zombie.
        threading.Thread(target=self._process.wait, name="reaper", daemon=True).start()

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._process.poll()

    def end(self) -> None:
        """Ask it to end, then make it; its workers with it."""
        for number, grace_s in zip((signal.SIGINT, signal.SIGTERM), GRACE_S, strict=True):
            if self._process.poll() is not None:
                break
            self._process.send_signal(number)
            try:
                self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                continue
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # nothing is left of its session
        self._process.wait()

    def tail(self) -> list[str]:
        """The last lines that it wrote."""
        text = self.log.read_text("utf-8", "replace")
        return text.splitlines()[-TAIL_LINES:]


def how_it_ended(status: int) -> str:
    """ "exit code 1", "SIGKILL"."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _follower() -> Callable[[], None] | None:
    """Run in the child before the script: the kernel ends it when its parent dies."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: the child of a fork should do little

    def follow() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    return follow
