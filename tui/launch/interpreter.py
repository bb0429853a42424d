"""The interpreter of a running process: it alone may be asked to run something in there.

It is its user's program, and only its name is known. So nothing of it is started before a person
has agreed, and where root asks for another user's process, it is started with that user's ids, no
terminal of root's, and none of root's environment: it can do nothing that its user could not.
"""

import json
import os
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .. import clock
from ..discovery.command_lines import is_interpreter, run_again
from ..discovery.state_page import (
    ANCESTORS_ONLY,
    is_root,
    ptrace_scope,
    refused_because,
    sees_our_files,
    with_rights,
)
from ..discovery.targets import python_of, still_runs
from ..errors import GpuwatchError, NoProcessError, NotPermittedError, UsageError

OLDEST: Final = (3, 14)
"""The first with `sys.remote_exec` (PEP 768)."""
ANSWER_S: Final = 20.0
"""An interpreter on a cold network disk takes seconds to start."""
MOST_BYTES: Final = 65_536
"""Of what it writes; it is not ours."""
MOST_TEXT: Final = 300
"""Characters of what it says that a person is shown."""
_VERSION: Final = "import sys; print(*sys.version_info[:2])"


@dataclass(frozen=True, slots=True)
class Ids:
    """Whose a process is."""

    uid: int
    gid: int
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TargetPython:
    """The Python that a process runs, as a program that can be started beside it."""

    pid: int
    path: str
    ids: Ids | None
    """Those that it is started with; None: our own."""

    def check_version(self) -> None:
        """Starts it. Raises GpuwatchError where it takes nothing from outside."""
        code, out, err = self._run(_VERSION, "", ANSWER_S)
        if code != 0:
            raise GpuwatchError(f"{self.path} does not start here", err.strip()[-MOST_TEXT:])
        try:
            version = tuple(int(part) for part in out.split())
        except ValueError:
            raise GpuwatchError(f"{self.path} is not Python", "It says no version.") from None
        if version < OLDEST:
            raise _too_old(self.pid, ".".join(map(str, version)))

    def hand_over(self, limit_s: float, **asked: Any) -> tuple[str, str]:
        """Have the process run a script, as `as_target` says: the outcome and its text.

        Raises GpuwatchError where its interpreter does not do that.
        """
        program = Path(__file__).with_name("as_target.py").read_text(encoding="utf-8")
        words = json.dumps({"pid": self.pid, "limit_s": limit_s, **asked})
        _, out, err = self._run(program, words, limit_s + ANSWER_S)
        try:
            answer = json.loads(out)
            outcome, text = str(answer["outcome"]), str(answer["text"])
        except (ValueError, TypeError, KeyError):
            if not still_runs(self.pid):
                raise NoProcessError(f"process {self.pid} has ended") from None
            last = err.strip().splitlines()[-1:] or ["it gave no reason"]
            raise GpuwatchError(
                f"the probe cannot be put into process {self.pid}", last[0][:MOST_TEXT]
            ) from None
        return outcome, text[:MOST_TEXT]

    def _run(self, code: str, words: str, limit_s: float) -> tuple[int, str, str]:
        """Isolated: it shall load nothing of the user's. A session of its own: it could write into
        our terminal's input."""
        ids = self.ids
        try:
            process = subprocess.Popen(
                [self.path, "-I", "-S", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env=None if ids is None else _environ_of(self.pid),
                start_new_session=True,
                umask=0o077,
                **({} if ids is None else _as(ids)),
            )
        except OSError as error:
            raise GpuwatchError(f"{self.path} does not start here", str(error.strerror)) from None
        with process:
            try:
                out, err = _talk(process, words, limit_s)
                return process.wait(1.0), out, err
            except subprocess.TimeoutExpired:
                raise GpuwatchError(
                    f"{self.path} does not answer", f"Within {limit_s:.0f} s, or it says too much."
                ) from None
            finally:
                _end(process)


def target_python(pid: int) -> TargetPython:
    """The interpreter of a process that something can be put into, as far as can be seen without
    starting it.

    Raises GpuwatchError where there is no such process, or nothing can be put into this one.
    """
    try:
        exe, is_here = os.readlink(f"/proc/{pid}/exe"), sees_our_files(pid)
        ids = _other_ids(pid)
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
    version = python_of(pid)
    if version is not None and version < OLDEST:
        raise _too_old(pid, ".".join(map(str, version)))
    if ids is not None and (ptrace_scope() or 0) >= ANCESTORS_ONLY:
        raise NotPermittedError(
            f"nothing can be put into process {pid} of user {ids.uid}",
            "Its own user may not (kernel.yama.ptrace_scope), and root does not do it with more "
            "rights than that user has.",
            f"Without the probe: gpuwatch attach {pid}. With it, next time: {run_again(pid)}",
        )
    return TargetPython(pid, exe if os.path.exists(exe) else f"/proc/{pid}/exe", ids)


def _other_ids(pid: int) -> Ids | None:
    """The ids of a process where we are root and it is not; None where they are our own.

    Not from who owns its files in /proc: those are root's where it hides its memory. Raises
    NotPermittedError for one that has several.
    """
    fields: dict[str, list[int]] = {}
    for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
        name, _, rest = line.partition(":")
        if name in ("Uid", "Gid", "Groups"):
            fields[name] = [int(number) for number in rest.split()]
    uids, gids = set(fields["Uid"]), set(fields["Gid"])
    if not is_root() or uids == {os.geteuid()}:
        return None
    if len(uids) > 1 or len(gids) > 1:
        raise NotPermittedError(
            f"process {pid} acts for several users",
            "It has changed its ids, and could change them back.",
            f"Without the probe: gpuwatch attach {pid}",
        )
    return Ids(uids.pop(), gids.pop(), tuple(fields["Groups"]))


def _as(ids: Ids) -> dict[str, Any]:
    """All four ids of a kind, in the order in which there is no way back: groups, gid, uid."""
    return {"user": ids.uid, "group": ids.gid, "extra_groups": list(ids.groups)}


def _environ_of(pid: int) -> dict[bytes, bytes]:
    """What the process was started with: its interpreter may need it to find its libraries."""
    raw = Path(f"/proc/{pid}/environ").read_bytes()
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0"))
    return {name: value for name, _, value in pairs if name}


def _talk(process: "subprocess.Popen[bytes]", words: str, limit_s: float) -> tuple[str, str]:
    """Say these words and read to the end. Raises TimeoutExpired, also where it says too much."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    until_ns = clock.now_ns() + round(limit_s * 1e9)
    stdin, out, err = (one.fileno() for one in (process.stdin, process.stdout, process.stderr))
    received, left, poll = {out: b"", err: b""}, words.encode(), select.poll()
    os.set_blocking(stdin, False)
    for end, events in ((stdin, select.POLLOUT), (out, select.POLLIN), (err, select.POLLIN)):
        poll.register(end, events)
    open_ends = {out, err}
    while open_ends:
        left_ms = (until_ns - clock.now_ns()) // 1_000_000
        if left_ms <= 0 or any(len(one) > MOST_BYTES for one in received.values()):
            raise subprocess.TimeoutExpired(process.args, limit_s)
        for end, _ in poll.poll(left_ms):
            if end != stdin:
                some = os.read(end, 4_096)
                received[end] += some
                if not some:
                    open_ends.discard(end)
                    poll.unregister(end)
                continue
            try:
                left = left[os.write(stdin, left) :] if left else left
            except BrokenPipeError:
                left = b""
            if not left:
                poll.unregister(stdin)
                process.stdin.close()
    return received[out].decode(errors="replace"), received[err].decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """First kindly: it has files to remove."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            process.kill()


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


def refused(pid: int, stderr: str) -> GpuwatchError:
    """What `sys.remote_exec` says, for a person."""
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
            f"the system does not let you put something into process {pid}",
            refused_because(
                "Only what started it, and root for its own, may (kernel.yama.ptrace_scope=1)."
            ),
            f"Without the probe: gpuwatch attach {pid}. With it, next time: {run_again(pid)}",
        )
    return GpuwatchError(f"the probe cannot be put into process {pid}", stderr.strip())
