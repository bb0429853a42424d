"""A process on another machine, over a real sshd on loopback: every face, and nothing left."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes.command_line import gpuwatch, started, toy
from tests.processes.monitored import until
from tests.processes.pseudo_terminal import PseudoTerminal
from tests.remote.servers import Servers, servers


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Both servers."""
    with servers(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[subprocess.Popen[str]]":
    """What is watched over there."""
    with toy(tmp_path_factory.mktemp("run")) as process:
        yield process


def agents() -> set[int]:
    """Every agent that runs on this machine."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[-2:-1] == [b"agent"]:
            found.add(int(entry.name))
    return found


def doors() -> set[str]:
    """What an agent leaves for a link that comes back."""
    folder = Path(f"/tmp/gpuwatch-{os.geteuid()}")
    return {one.name for one in folder.glob("agent-*")} if folder.exists() else set()


def records(text: str) -> list[dict[str, Any]]:
    """One object a line."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("host", ["near", "behind"])
def test_the_verdict_is_the_one_that_is_reached_there(
    over: Servers, training: "subprocess.Popen[str]", host: str
) -> None:
    before = agents(), doors()
    there = gpuwatch("attach", f"{host}:{training.pid}", "--once", GPUWATCH_SSH=over.ssh)
    here = gpuwatch("attach", str(training.pid), "--once")
    assert (there.returncode, here.returncode) == (0, 0), there.stderr
    assert "HOST-BOUND" in here.stdout
    assert "HOST-BOUND" in there.stdout
    assert f"on {host}" in there.stdout
    until(lambda: agents() == before[0])
    assert doors() == before[1]


def test_json_lines_bear_the_link(over: Servers, training: "subprocess.Popen[str]") -> None:
    done = gpuwatch(
        "attach", f"near:{training.pid}", "--json", "--duration", "6", GPUWATCH_SSH=over.ssh
    )
    assert done.returncode == 0, done.stderr
    lines = records(done.stdout)
    assert len(lines) >= 5
    link = lines[-1]["status"]["link"]
    assert link["place"] == "near"
    assert link["lost_s"] is None
    assert 0 < link["round_trip_ms"] < 1_000
    assert abs(link["clock_ahead_ms"]) <= link["clock_uncertain_ms"] + 1
    assert lines[-1]["target"]["pid"] == training.pid
    assert lines[-1]["status"]["state"] == "live"


def test_processes_are_listed(over: Servers, training: "subprocess.Popen[str]") -> None:
    done = gpuwatch("ls", "near", "--json", GPUWATCH_SSH=over.ssh)
    assert done.returncode == 0, done.stderr
    here = records(gpuwatch("ls", "--json").stdout)
    there = records(done.stdout)
    one = next(line for line in there if line["pid"] == training.pid)
    same = next(line for line in here if line["pid"] == training.pid)
    assert {**one, "steps": 0} == {**same, "steps": 0}


def test_a_recording_of_a_process_there_is_written_here(
    over: Servers, training: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    file = tmp_path / "run.gpuwatch"
    target = f"near:{training.pid}"
    done = gpuwatch("record", target, "-o", str(file), "--duration", "6", GPUWATCH_SSH=over.ssh)
    assert done.returncode == 0, done.stderr
    last = records(gpuwatch("replay", str(file), "--json").stdout)[-1]
    assert last["verdict"]["kind"] == "host"
    assert last["steps"]["total"] > 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_within_two_seconds(
    over: Servers, training: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    """Of what was killed outright, an agent that keeps nothing for it (`--once`)."""
    before = agents(), doors()
    how = "--once" if number == signal.SIGKILL else "--json"
    options = ("--duration", "60")
    with started("attach", f"near:{training.pid}", how, *options, GPUWATCH_SSH=over.ssh) as monitor:
        until(lambda: agents() - before[0])
        if number != signal.SIGKILL:
            assert monitor.stdout is not None
            monitor.stdout.readline()
        monitor.send_signal(number)
        ended_s = time.monotonic()
        until(lambda: agents() == before[0])
        assert time.monotonic() - ended_s < 2.0 + 0.5  # and the machine's own haste
        assert doors() == before[1]
    assert training.poll() is None


@pytest.mark.parametrize(
    ("target", "code", "output"),
    [
        ("nobody:1", 1, "nobody cannot be reached\nssh: connect to host 127.0.0.1"),
        ("near:4194303", 3, "no process 4194303"),
        ("-oProxyCommand=id:1", 2, "neither a process id nor HOST:PID"),
    ],
)
def test_what_cannot_be_watched_ends_in_three_lines(
    over: Servers, target: str, code: int, output: str
) -> None:
    done = gpuwatch("attach", "--once", "--", target, GPUWATCH_SSH=over.ssh)
    assert done.returncode == code, done.stderr
    assert output in done.stderr
    assert "Traceback" not in done.stderr


def test_a_machine_without_gpuwatch_is_named_with_the_command(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("sh", "tr", "head", "sed", "readlink", "tail"):
        (bare / name).symlink_to(
            f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}"
        )
    python = bare / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    via = f"env -i PATH={bare} SHELL=/bin/false HOME={tmp_path}"
    done = gpuwatch("ls", "--via", via)
    assert done.returncode == 1
    assert "has gpuwatch" in done.stderr
    assert f'{bare}/python3 -m pip install "git+<clone URL>"' in done.stderr


def test_the_screen_names_the_machine(over: Servers, training: "subprocess.Popen[str]") -> None:
    words = ("gpuwatch.tui.cli.main", "attach", f"near:{training.pid}")
    environ = {"GPUWATCH_SSH": over.ssh}
    with PseudoTerminal(*words, size=(100, 30), environ=environ) as terminal:
        terminal.read_until(lambda: terminal.shows("on near"), seconds=20)
        terminal.read_until(lambda: terminal.shows("HOST-BOUND"), seconds=20)
        os.write(terminal.master, b"q")
        assert terminal.wait() == 0


def test_a_process_there_is_picked(over: Servers, training: "subprocess.Popen[str]") -> None:
    environ = {"GPUWATCH_SSH": over.ssh}
    with PseudoTerminal(
        "gpuwatch.tui.cli.main", "near:", size=(100, 30), environ=environ
    ) as terminal:
        terminal.read_until(lambda: terminal.shows("which process?"), seconds=20)
        os.write(terminal.master, str(training.pid).encode())
        terminal.read_until(lambda: terminal.shows("toy.py"), seconds=20)
        os.write(terminal.master, b"\r")
        terminal.read_until(lambda: terminal.shows("on near"), seconds=20)
        os.write(terminal.master, b"q")
        assert terminal.wait() == 0
