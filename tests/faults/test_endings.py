"""However a run ends, it ends as it would without; what a kill leaves, the next run removes."""

import os
import signal
from pathlib import Path

import pytest

from gpuwatch.probe.socket_place import YOUNG_S
from tests.faults.training import TRAIN, bare, sockets_in
from tests.processes.monitored import hello_of, started, until

ENDINGS = {
    "exception": "def end(step):\n        if step == 30: raise RuntimeError('the end')",
    "sys.exit": "def end(step):\n        if step == 30: sys.exit(3)",
    "os._exit": "def end(step):\n        if step == 30: os._exit(4)",
    "SIGINT": "def end(step):\n        if step == 30: os.kill(os.getpid(), signal.SIGINT)",
    "SIGTERM": "def end(step):\n        if step == 30: os.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL": "def end(step):\n        if step == 30: os.kill(os.getpid(), signal.SIGKILL)",
    "a handler of its own": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "    def end(step):\n        if step == 30: os.kill(os.getpid(), signal.SIGTERM)"
    ),
    "an exception in a backward": (
        "def end(step):\n        if step == 30: torch.ones(1).sum().backward()"
    ),
    "a thread trains on": (
        "def end(step):\n        if step == 30:\n"
        "            threading.Thread(target=lambda: print(train(), flush=True)).start()\n"
        "            sys.exit(6)"
    ),
}
WITHOUT_A_WORD = ("os._exit", "SIGTERM", "SIGKILL")
"""Nothing in the process can run any more, so its socket file stays."""


def ended(script: str, tmp_path: Path, switch: str) -> tuple[int, str, list[str]]:
    """Status, stdout, and what stderr says but for the frames of a traceback."""
    with started(script, tmp_path, GPUWATCH=switch, TMPDIR=str(tmp_path)) as run:
        status, out, err = run.finish()
    return status, out, [line for line in err.splitlines() if not line.startswith(" ")]


@pytest.mark.fault
@pytest.mark.parametrize("name", ENDINGS)
def test_it_ends_as_it_would_without(tmp_path: Path, name: str) -> None:
    script = TRAIN + f"    {ENDINGS[name]}\n    print(train(at_step=end), flush=True)\n"
    watched = ended(script, tmp_path, "1")
    assert watched == ended(script, tmp_path, "0")
    assert watched[0] != 0
    assert bool(sockets_in(tmp_path)) == (name in WITHOUT_A_WORD)


@pytest.mark.fault
def test_a_daemon_thread_trains_on_while_the_interpreter_leaves(tmp_path: Path) -> None:
    """Without us PyTorch aborts there, 25 times in 25: Python up to 3.13 ends such a thread in the
    middle of a backward. With us it may, too, but nothing else."""
    script = (
        TRAIN
        + """
    def end(step):
        if step == 30:
            threading.Thread(target=train, args=(10**6,), daemon=True).start()
            time.sleep(0.2)
            sys.exit(5)
    train(at_step=end)
    """
    )
    for switch in ("0", "1"):
        status, out, reported = ended(script, tmp_path, switch)
        assert (out, status in (5, -signal.SIGABRT)) == ("", True)
        assert [line for line in reported if "gpuwatch" in line] == []
    assert sockets_in(tmp_path) == []


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    script = "import probe, sys; probe.install(); print('go', flush=True); sys.stdin.readline()"
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        assert run.line() == "go"
        until(lambda: sockets_in(tmp_path))
        run.process.send_signal(signal.SIGKILL)
        run.process.wait()
    (left,) = sockets_in(tmp_path)
    os.utime(left, (0, left.stat().st_mtime - 2 * YOUNG_S))
    with started(script, tmp_path, TMPDIR=str(tmp_path)) as run:
        until(lambda: not left.exists())
        own = (hello_of(run.pid).endpoint or "").removeprefix("ipc://")
        assert [str(path) for path in sockets_in(tmp_path)] == [own]


@pytest.mark.fault
def test_a_terminal_that_hangs_up_is_no_matter_of_the_probes(tmp_path: Path) -> None:
    """stdout and stderr are closed under it, and the probe has something to say."""
    script = (
        TRAIN.replace(
            "import probe; probe.install()", "import probe; from gpuwatch.probe import api"
        )
        + f"""
    os.close(2); os.close(1)
    probe.install()
    api._installed._breaker.trip(ValueError("shown to nobody"))
    os._exit(train() != {bare()!r})
    """
    )
    with started(script, tmp_path) as run:
        assert run.finish() == (0, "", "")
