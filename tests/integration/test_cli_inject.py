"""`gpuwatch attach --inject`: into a real Python 3.14 and out again; why not into older ones.

GPUWATCH_PYTHON_314 names an interpreter with pyzmq and msgspec; tests/integration/python_314.py
makes one on Debian.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes.command_line import environment, gpuwatch, injected_script, started
from tests.processes.monitored import LIMIT_S, pages_of, until
from tests.processes.pseudo_terminal import PseudoTerminal

LOOPS = """
import os, sys, time
print(os.getpid(), flush=True)
while True:
    step = getattr(sys.modules.get("probe"), "step", None)
    if step is not None:
        step()
    time.sleep(0.01)
"""
BLOCKED = """
import os, sys
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@contextmanager
def running(
    python: str, script: str, tmp_path: Path, **more: str
) -> "Iterator[subprocess.Popen[str]]":
    path = tmp_path / "loops.py"
    path.write_text(script)
    clean = {name: value for name, value in environment(**more).items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        [python, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean,
    ) as process:
        try:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == process.pid
            yield process
        finally:
            process.kill()


def threads_of(pid: int) -> list[str]:
    return sorted(task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/comm"))


def left_behind(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("gpuwatch-inject-*"))


def inject(*arguments: str, tmp_path: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {"TMPDIR": str(tmp_path), **more}
    return gpuwatch("attach", "--inject", *arguments, limit_s=30.0, waits_s=None, **environment)


def test_the_probe_is_in_while_somebody_watches_and_then_out(newer: str, tmp_path: Path) -> None:
    with running(newer, LOOPS, tmp_path) as target:
        threads = threads_of(target.pid)
        done = inject("--yes", str(target.pid), "--json", "--duration", "3", tmp_path=tmp_path)
        assert done.returncode == 0, done.stderr
        last = json.loads(done.stdout.splitlines()[-1])
        assert last["status"]["state"] == "live"
        assert last["target"]["python"].startswith("3.14")
        assert last["steps"]["total"] > 50
        assert pages_of(target.pid) == []
        until(lambda: threads_of(target.pid) == threads)
        assert target.poll() is None
        target.send_signal(signal.SIGINT)
        _, err = target.communicate(timeout=LIMIT_S)
        assert "gpuwatch" not in err
    assert left_behind(tmp_path) == []


def test_a_probe_that_was_there_stays(newer: str, tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    installs = f"import sys; sys.path.append({root!r}); import probe; probe.install()\n{LOOPS}"
    with running(newer, installs, tmp_path) as target:
        until(lambda: pages_of(target.pid))
        done = inject("--yes", str(target.pid), "--json", "--duration", "1", tmp_path=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(pages_of(target.pid)) == 1


def test_ctrl_c_takes_it_out_too(newer: str, tmp_path: Path) -> None:
    words = ("attach", "--inject", "--yes")
    with (
        running(newer, LOOPS, tmp_path) as target,
        started(*words, str(target.pid), "--json") as monitor,
    ):
        assert monitor.stdout is not None
        assert monitor.stdout.readline()
        monitor.send_signal(signal.SIGINT)
        assert monitor.wait(LIMIT_S) == 130
        assert pages_of(target.pid) == []


@pytest.mark.parametrize(("answer", "code"), [(b"n\r", 4), (b"\r", 4), (b"y\r", 0)])
def test_a_person_is_asked(newer: str, tmp_path: Path, answer: bytes, code: int) -> None:
    with running(newer, LOOPS, tmp_path) as target:
        words = ("attach", "--inject", str(target.pid), "--once", "--duration", "1")
        with PseudoTerminal("gpuwatch.tui.cli.main", *words) as terminal:
            terminal.read_until(lambda: terminal.shows("[y/N]"))
            assert pages_of(target.pid) == []
            os.write(terminal.master, answer)
            assert terminal.wait() == code
        assert target.poll() is None


def test_without_a_terminal_nobody_is_asked_and_nothing_done(newer: str, tmp_path: Path) -> None:
    with running(newer, LOOPS, tmp_path) as target:
        done = inject(str(target.pid), tmp_path=tmp_path)
        assert done.returncode == 2
        assert f"gpuwatch attach --inject --yes {target.pid}" in done.stderr
        assert len(done.stderr.splitlines()) == 3


@pytest.mark.parametrize(
    ("more", "code", "output"),
    [
        ({"PYTHON_DISABLE_REMOTE_DEBUG": "1"}, 4, "takes nothing from outside"),
        ({"GPUWATCH": "0"}, 1, "started with GPUWATCH=0"),
    ],
)
def test_a_process_that_does_not_want_it(
    newer: str, tmp_path: Path, more: dict[str, str], code: int, output: str
) -> None:
    with running(newer, LOOPS, tmp_path, **more) as target:
        done = inject("--yes", str(target.pid), tmp_path=tmp_path)
        assert done.returncode == code
        assert output in done.stderr
        assert len(done.stderr.splitlines()) <= 3
        assert pages_of(target.pid) == []
    assert left_behind(tmp_path) == []


def test_a_process_that_ends_meanwhile(newer: str, tmp_path: Path) -> None:
    words = ("attach", "--inject", "--yes")
    with (
        running(newer, BLOCKED, tmp_path) as target,
        started(*words, str(target.pid), TMPDIR=str(tmp_path)) as monitor,
    ):
        until(lambda: list(tmp_path.glob("gpuwatch-inject-*/script.py")))
        target.kill()
        _, output = monitor.communicate(timeout=LIMIT_S)
        target.wait(LIMIT_S)
    assert monitor.returncode == 3
    assert output.splitlines()[0] == f"gpuwatch: process {target.pid} has ended"
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_a_process_that_is_in_one_call_is_left_alone_after_a_while(
    newer: str, tmp_path: Path
) -> None:
    with running(newer, BLOCKED, tmp_path) as target:
        done = inject("--yes", str(target.pid), tmp_path=tmp_path)
        assert done.returncode == 5
        assert "has not taken the probe within 10 s" in done.stderr
        _, err = target.communicate("", timeout=10)
        assert (target.returncode, err) == (0, "")


def test_older_pythons_show_why_not_and_what_to_do(tmp_path: Path) -> None:
    assert sys.version_info < (3, 14)
    with running(sys.executable, LOOPS, tmp_path) as target:
        done = inject("--yes", str(target.pid), tmp_path=tmp_path)
        assert target.poll() is None
    assert done.returncode == 2
    what, why, fix = done.stderr.splitlines()
    assert "runs Python 3.1" in what
    assert "debugger" in why
    assert f"gpuwatch attach {target.pid}" in fix
    assert "gpuwatch run" in fix
    assert "loops.py" in fix


def test_what_is_no_python_is_not_even_asked(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        done = inject("--yes", str(process.pid), tmp_path=tmp_path)
        process.kill()
    assert done.returncode == 2
    assert 'is "sleep", not Python' in done.stderr


def test_the_script_works_off_the_main_thread(tmp_path: Path) -> None:
    """What is put in, run here: it needs no 3.14."""
    scripts = {}
    for action in ("put_in", "take_out"):
        scripts[action] = tmp_path / f"{action}.py"
        text = injected_script(action, tmp_path / f"{action}.reply")
        scripts[action].write_text(text)
    host = f"""
import os, sys, threading, time
def run(path):
    exec(compile(open(path).read(), path, "exec"), {{}})
for name, path in {[(name, str(path)) for name, path in scripts.items()]!r}:
    run(path)
    print("zmq" in sys.modules, flush=True)
    sys.stdin.readline()
"""
    path = tmp_path / "host.py"
    path.write_text(host)
    with subprocess.Popen(
        [sys.executable, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        for action, pages in (("put_in", 1), ("take_out", 0)):
            process.stdout.readline()
            end = time.monotonic() + 10
            while not (tmp_path / f"{action}.reply").exists():
                assert time.monotonic() < end
                time.sleep(0.01)
            assert (tmp_path / f"{action}.reply").read_text() == ""
            assert len(pages_of(process.pid)) == pages
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.wait(LIMIT_S) == 0
