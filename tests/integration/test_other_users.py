"""Users without rights: their own runs are theirs to watch, and nobody else's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.processes.command_line import environment

NOBODY: Final = 65534
AS_NOBODY = """
import ctypes, os, probe, signal, sys
from gpuwatch.tui.cli.main import main
from tests.processes.loaded import load_everything

load_everything()

def become_nobody():
    # What exec would do anew: whoever has the same user may look into the process.
    os.setgid({nobody})
    os.setuid({nobody})
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)

ready, write_end = os.pipe()
training = os.fork()
if training == 0:
    become_nobody()
    import time
    probe.install()
    os.write(write_end, b"here")
    while True:
        with probe.phase("load"):
            time.sleep(0.015)
        time.sleep(0.005)
        probe.step()
os.close(write_end)
assert os.read(ready, 4) == b"here", "it has failed"
become_nobody()
try:
    status = main([word.format(pid=training) for word in sys.argv[1:]])
finally:
    os.kill(training, signal.SIGKILL)
sys.exit(status)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where nobody may write."""
    os.chown(tmp_path, NOBODY, NOBODY)
    return tmp_path


def as_nobody(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    script = folder / "runner.py"
    script.write_text(AS_NOBODY.format(nobody=NOBODY))
    return subprocess.run(
        [sys.executable, str(script), *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
        check=False,
    )


def records(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_a_user_without_rights_watches_a_run_of_their_own(folder: Path) -> None:
    last = records(as_nobody(folder, "attach", "{pid}", "--json", "--duration", "3"))[-1]
    assert (last["status"]["mode"], last["status"]["state"]) == ("hooks", "live")
    assert last["steps"]["total"] > 20
