"""How a process ended, as the kernel knows it until the parent has asked."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuwatch.tui.sources.process import how_it_ended


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("pass", "exited normally"),
        ("raise SystemExit(3)", "exited with code 3"),
        ("import os; os.kill(os.getpid(), 9)", "was killed (signal 9)"),
    ],
)
def test_the_exit_status_of_a_process_that_is_not_reaped(code: str, text: str) -> None:
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert how_it_ended(process.pid, 7).text == text
    assert how_it_ended(process.pid, 7).text == "ended"
