"""Hundreds of ranks on one host, and a monitor that may open few files."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.processes.command_line import environment

RANKS = 300
MOST_FILES = 256
PAGES = """
import os, signal, sys
from gpuwatch.probe.identity import Identity
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page

children = []
for rank in range({ranks}):
    pid = os.fork()
    if pid == 0:
        identity = Identity(None, "no socket: this is a test")
        identity.rank = identity.local_rank = rank
        identity.world_size = {ranks}
        held = StatePage(identity.as_json(page.HELLO_BYTES))
        signal.pause()
    children.append(pid)
print(*children, flush=True)
sys.stdin.read()
for pid in children:
    os.kill(pid, signal.SIGKILL)
"""

pytestmark = pytest.mark.fault


@pytest.fixture(scope="module")
def first() -> Iterator[int]:
    """Pid of the first of the ranks: forks that show a page each."""
    with subprocess.Popen(
        [sys.executable, "-c", PAGES.format(ranks=RANKS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline().split()[0])
        process.communicate("")


@pytest.mark.slow
@pytest.mark.parametrize("hard", [4096, MOST_FILES])
def test_they_are_shown_as_far_as_files_may_be_opened(first: int, hard: int) -> None:
    words = ["attach", str(first), "--json", "--duration", "3", "--no-stacks"]
    done = subprocess.run(
        [sys.executable, "-m", "gpuwatch.tui.cli.main", *words],
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES, hard)),
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    shown = len(last["ranks"])
    missing = [text for text in last["verdict"]["missing"] if "ranks here" in text]
    if hard == MOST_FILES:
        assert 100 < shown < MOST_FILES
        assert f"{shown} of the {RANKS} ranks here are shown" in missing[0]
    else:
        assert (shown, missing) == (RANKS, [])
    assert os.path.exists(f"/proc/{first}")
