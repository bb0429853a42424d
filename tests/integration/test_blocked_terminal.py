"""A terminal whose other end is not read: what is watched goes on, and so does a recording."""

import itertools
import os
import time
from pathlib import Path

import pytest

from gpuwatch.tui.recording.format import Looked
from gpuwatch.tui.recording.reader import Recording
from tests.measuring.uses import waited_for_core_s
from tests.processes.command_line import toy
from tests.processes.pseudo_terminal import PseudoTerminal

BLOCKED_S = 4.0
LATE_S = 0.3
"""Beyond the second, and the time in which others had the cores."""


@pytest.mark.slow
def test_a_recording_has_a_verdict_for_every_second_of_a_blocked_terminal(tmp_path: Path) -> None:
    with toy(tmp_path) as target:
        arguments = ("gpuwatch.tui.cli.main", "attach", str(target.pid))
        with PseudoTerminal(*arguments, size=(160, 40), cwd=tmp_path) as terminal:
            terminal.read_until(lambda: terminal.shows("HOST-BOUND"), seconds=30)
            os.write(terminal.master, b"R")
            terminal.read_until(lambda: terminal.shows("REC"))
            drawn, began_ns = len(terminal.output), time.perf_counter_ns()
            waited_s = -waited_for_core_s(terminal.process.pid)
            time.sleep(BLOCKED_S)
            ended_ns = time.perf_counter_ns()
            waited_s += waited_for_core_s(terminal.process.pid)
            assert len(terminal.output) == drawn
            os.write(terminal.master, b"q")
            assert terminal.wait(10) == 0
    (path,) = tmp_path.glob("*.gpuwatch")
    recording = Recording(path)
    judged_ns = [one.t_ns for one in recording.entries() if isinstance(one, Looked)]
    recording.close()
    inside_ns = [began_ns, *(t for t in judged_ns if began_ns < t < ended_ns), ended_ns]
    gaps_s = [(b - a) / 1e9 for a, b in itertools.pairwise(inside_ns)]
    assert max(gaps_s) < 1.0 + LATE_S + waited_s, gaps_s
    assert len(inside_ns) - 2 >= BLOCKED_S - 1 - waited_s
