"""Scripts that an evaluation starts."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil

DEMO = Path(__file__).parents[2] / "demo"
STARTS_ONE = """
import subprocess, sys
import psutil
from evaluation.launching import end_all_when_ended
end_all_when_ended()
ended = subprocess.Popen([sys.executable, "-c", ""])
gone, listed = psutil.Process(ended.pid), psutil.Process.children
ended.wait()
psutil.Process.children = lambda self, recursive: [gone, *listed(self, recursive)]
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
                         start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def test_an_evaluation_that_is_ended_leaves_no_script_behind() -> None:
    """Under `timeout`: what it had started used 50 GiB of the next run's GPU. One that ended by
    itself, as they were listed, keeps no other alive."""
    command = [sys.executable, "-c", STARTS_ONE]
    with subprocess.Popen(command, cwd=DEMO, stdout=subprocess.PIPE, text=True) as evaluation:
        assert evaluation.stdout is not None
        started = psutil.Process(int(evaluation.stdout.readline()))
        evaluation.send_signal(signal.SIGTERM)
        assert evaluation.wait(30) == 128 + signal.SIGTERM
        psutil.wait_procs([started], timeout=30)
        assert not started.is_running() or started.status() == psutil.STATUS_ZOMBIE
