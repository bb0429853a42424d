"""Machines that answer as no agent does: the monitor ends, soon, bounded, and says why."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.processes.command_line import environment, program
from tests.processes.monitored import until

PREAMBLE = """
import os, sys, time
from gpuwatch.tui.remote import frames
from gpuwatch.tui.remote.frames import *
from gpuwatch.tui.remote.coding import HEAD
from gpuwatch.tui.recording.format import Header

def out(data):
    try:
        sys.stdout.buffer.write(data); sys.stdout.buffer.flush()
    except OSError:
        os._exit(0)

def hello(**more):
    fields = dict(protocol=1, oldest=1, coding=frames.CODING, gpuwatch="9", python="3", host="h")
    out(frames.GREETING + message(Kind.HELLO, LinkHello(**{**fields, **more})))

def watching(notes=(), script="train.py"):
    header = Header(gpuwatch="9", probe="9", torch=None, host="h", pid=7, script=script,
                    started_ns=10**12, started_unix=1.7e9, begins_ns=10**12)
    out(message(Kind.WATCHING,
                Watching(pid=7, header=header, token="", now_ns=10**12, notes=notes)))
"""
ENEMIES = {
    "rubbish": "out(os.urandom(10_000)); time.sleep(30)",
    "endless": "\nwhile True: out(b'x' * 65_536)",
    "endless_errors": "\nwhile True: sys.stderr.write('\\x1b[2Jy' * 10_000); sys.stderr.flush()",
    "a_future": "hello(protocol=99, oldest=98); time.sleep(30)",
    "no_json": "out(frames.GREETING + frame(Kind.HELLO, b'[' * 100_000)); time.sleep(30)",
    "huge": "hello(); out(frames.HEAD.pack(Kind.WATCHING, 0xFFFFFFFF, 0)); time.sleep(30)",
    "escapes": "hello(gpuwatch='\\x1b]0;owned\\x07'); out(message(Kind.FAULT, "
    "Fault(what='\\x1b[2Jwhat', why='x' * 10**6, fix='\\r\\n\\x1b[31m', exit_code=0)))",
    "a_bomb": """hello(); watching(notes=('\\x1b[2J',) * 1000, script='\\x1b[2J' * 10_000)
import zlib
bomb = zlib.compressobj(9, wbits=-15)
data = bomb.compress(bytes(10**8)) + bomb.flush(zlib.Z_SYNC_FLUSH)
while True: out(frame(Kind.ENTRIES, HEAD.pack(1, 1, 10**12, 0) + data))""",
    "a_flood": """hello(); watching()
while True: out(frame(Kind.ENTRIES, HEAD.pack(1, 1, 10**12, 0)))""",
    "a_time": """hello(); watching()
while True: out(frame(Kind.ENTRIES, HEAD.pack(1, 2**63, -5, 2**32 - 1)))""",
    "silence": "hello(); watching(); time.sleep(60)",
}
REPORTED = {
    "a_future": "protocol 99",
    "no_json": "makes no sense",
    "huge": "4,294,967,295 bytes",
    "escapes": "what",
    "endless": "other things than an agent",
}
WAITS_S = {"cli.remote.ANSWER_S": 4.0, "remote.link.ANSWER_S": 4.0}
"""In place of 20 s each."""
ENDS_S = 40.0
"""Of three links each is tried again."""
MOST_BYTES = 400 * 1024 * 1024
MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""
"""Between: a process begins with the most that its parent has held, 700 MB of pytest's."""


SLOW = ("rubbish", "endless_errors", "silence")
"""They leave the monitor waiting, as a machine does that is hard to reach."""


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in ENEMIES]
)
def test_an_enemy_over_there_is_bounded_and_reported(name: str, tmp_path: Path) -> None:
    script = tmp_path / "enemy.py"
    script.write_text(textwrap.dedent(PREAMBLE) + ENEMIES[name])
    via = f"{sys.executable} {script}"
    most = tmp_path / "most"
    words = [*program(**WAITS_S), "attach", "--via", via, "7"]
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(most), *words, "--json", "--duration", "4"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=50,
        env=environment(),
        check=False,
        start_new_session=True,
    )
    took_s = time.monotonic() - began_s
    err, out = done.stderr.decode(), done.stdout.decode()
    assert took_s < ENDS_S
    assert int(most.read_text()) * 1024 < MOST_BYTES
    assert "Traceback" not in err
    assert "\x1b" not in err + out
    assert len(err) < 200_000
    assert REPORTED.get(name, "") in err + out, err
    if done.returncode == 0:
        assert '"lost_s"' in out
    else:
        assert err.startswith("gpuwatch: ") or name == "endless_errors", err
    until(lambda: not [pid for pid in os.listdir("/proc") if _is_ours(pid, script)])


def _is_ours(pid: str, script: Path) -> bool:
    try:
        return str(script).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
