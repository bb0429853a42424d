"""Run by the interpreter of another process, with the rights of its user: hands that process a
script and waits until it has run it.

Started with `-I -S -c` and this file's text. One JSON object comes on standard input and one goes
to standard output. The folder, the script in it and the answer are made here: they belong to the
process's user from the start, and nothing of a stronger user's is opened, written or removed.
"""

import json
import os
import signal
import sys
import tempfile
import time
from typing import Any, NoReturn

POLL_S = 0.02


def hand_over(asked: dict[str, Any]) -> dict[str, str]:
    """ "done" with the process's answer, "late" where it came to nothing within `limit_s`, "ended"
    where the process did, "refused" with the error."""
    if not os.access(asked["package"], os.R_OK | os.X_OK):
        why = f"user {os.getuid()} may not read {asked['package']}"
        return {"outcome": "unreadable", "text": why}
    folder = tempfile.mkdtemp(prefix="gpuwatch-inject-")  # exclusively, and nobody else enters
    script, answer = os.path.join(folder, "script.py"), os.path.join(folder, "reply")
    with open(script, "x", encoding="utf-8") as file:
        file.write(script_of(asked, answer))
    try:
        sys.remote_exec(asked["pid"], script)  # type: ignore[attr-defined, unused-ignore]
    except Exception as error:
        _remove(folder)
        return {"outcome": "refused", "text": f"{type(error).__name__}: {error}"}
    try:
        outcome = _waited_for(asked["pid"], answer, asked["limit_s"])
        text = ""
        if outcome == "done":
            with open(answer, encoding="utf-8") as file:
                text = file.read(4096)
    except BaseException:
        outcome, text = "late", ""
    if outcome == "late":
        _defuse(folder, script)
    else:
        _remove(folder)
    return {"outcome": outcome, "text": text}


def script_of(asked: dict[str, Any], answer: str) -> str:
    """What the process is to run."""
    words = (asked["package"], asked["action"], answer, tuple(asked["monitor"]))
    return f"{asked['text']}\n\nbegin{words!r}\n"


def _waited_for(pid: int, answer: str, limit_s: float) -> str:
    until_s = time.monotonic() + limit_s
    while not os.path.exists(answer):
        if not _runs(pid):
            return "ended"
        if time.monotonic() > until_s:
            return "late"
        time.sleep(POLL_S)
    return "done"


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def _defuse(folder: str, script: str) -> None:
    """The process may still come to it: then it does nothing but remove it."""
    harmless = f"""import os
try:
    os.unlink({script!r})
    os.rmdir({folder!r})
except OSError:
    pass
"""
    with open(f"{script}.new", "x", encoding="utf-8") as file:
        file.write(harmless)
    os.rename(f"{script}.new", script)


def _remove(folder: str) -> None:
    for entry in os.listdir(folder):
        os.unlink(os.path.join(folder, entry))
    os.rmdir(folder)


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _leave)
    print(json.dumps(hand_over(json.load(sys.stdin))), flush=True)
