"""The interpreter of a running process: it alone may be asked to run something in there."""

import os
import subprocess
from dataclasses import dataclass
from typing import Final

from ..discovery.command_lines import is_interpreter, run_again
from ..discovery.state_page import refused_because, sees_our_files, with_rights
from ..discovery.targets import still_runs
from ..errors import GpuwatchError, NoProcessError, NotPermittedError, UsageError

OLDEST: Final = (3, 14)
"""The first with `sys.remote_exec` (PEP 768)."""
ANSWER_S: Final = 20.0
"""An interpreter on a cold network disk takes seconds to start."""
_VERSION: Final = "import sys; print(*sys.version_info[:2])"
_EXECUTE: Final = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"


@dataclass(frozen=True, slots=True)
class TargetPython:
    """The Python that a process runs, as a program that can be started beside it."""

    pid: int
    path: str

    def execute(self, script: str) -> None:
        """Have the process run a file at the next moment that its main thread runs Python.

        Raises GpuwatchError where the process, or the system, does not let us.
        """
        done = _ask(self.path, _EXECUTE, str(self.pid), script)
        if done.returncode != 0:
            raise _refused(self.pid, done.stderr)


def target_python(pid: int) -> TargetPython:
    """The interpreter of a process that something can be put into.

    Raises GpuwatchError where there is no such process, or nothing can be put into this one.
    """
    try:
        exe, is_here = os.readlink(f"/proc/{pid}/exe"), sees_our_files(pid)
    except FileNotFoundError:
        raise NoProcessError(f"no process {pid}", fix="See: gpuwatch ls") from None
    except PermissionError:
        raise _somebody_else_s(pid) from None
    if not is_here:
        raise UsageError(
            f"{pid} runs in a container",
            "Its files are not those that are seen from here.",
            "Run gpuwatch inside the container, with the pid that the process has there.",
        )
    if not is_interpreter(exe.removesuffix(" (deleted)")):
        raise UsageError(
            f'{pid} is "{os.path.basename(exe)}", not Python',
            "Only a Python interpreter can be asked to take the probe.",
            "See: gpuwatch ls",
        )
    path = exe if os.path.exists(exe) else f"/proc/{pid}/exe"
    version = _version(path)
    if version < OLDEST:
        raise _too_old(pid, ".".join(map(str, version)))
    return TargetPython(pid, path)


def _version(path: str) -> tuple[int, ...]:
    done = _ask(path, _VERSION)
    if done.returncode != 0:
        raise GpuwatchError(f"{path} does not start here", done.stderr.strip()[-200:])
    return tuple(int(part) for part in done.stdout.split())


def _ask(path: str, code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Isolated: it shall load nothing of the user's."""
    return subprocess.run(
        [path, "-I", "-S", "-c", code, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
    )


def _too_old(pid: int, version: str) -> UsageError:
    return UsageError(
        f"{pid} runs Python {version}, into which nothing can be put safely",
        "Python 3.14 and newer take code from outside; a debugger can force it into older ones, "
        "and has hung trainings for ever.",
        f"Without the probe: gpuwatch attach {pid}. With it, next time: {run_again(pid)}",
    )


def _somebody_else_s(pid: int) -> NotPermittedError:
    return NotPermittedError(
        f"process {pid} belongs to somebody else",
        refused_because("Only its owner and root may put something into it."),
        with_rights(f"gpuwatch attach --inject {pid}"),
    )


def _refused(pid: int, stderr: str) -> GpuwatchError:
    if not still_runs(pid):
        return NoProcessError(f"process {pid} has ended")
    if "not enabled" in stderr:
        return NotPermittedError(
            f"process {pid} takes nothing from outside",
            "It was started with PYTHON_DISABLE_REMOTE_DEBUG, or its Python was built so.",
            f"Without the probe: gpuwatch attach {pid}",
        )
    if "PermissionError" in stderr or "Permission denied" in stderr:
        return NotPermittedError(
            f"the system does not let you look into process {pid}",
            refused_because(
                "Only what started it, and root, may put something into it "
                "(kernel.yama.ptrace_scope=1)."
            ),
            with_rights(f"gpuwatch attach --inject {pid}"),
        )
    last = stderr.strip().splitlines()[-1:] or ["it gave no reason"]
    return GpuwatchError(f"the probe cannot be put into process {pid}", last[0])
