"""What a person reads where something cannot be watched: provoked on real processes, to the word.

Three short lines: what, why, what to do. No word that only who has written a debugger knows, but
in brackets or inside a command that is to be typed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from gpuwatch.tui.discovery.pids import find_watchable
from gpuwatch.tui.discovery.state_page import no_stacks
from gpuwatch.tui.errors import GpuwatchError
from gpuwatch.tui.launch.interpreter import target_python
from gpuwatch.tui.model.observations import Missing
from gpuwatch.tui.sources.nvml import NvmlSource
from gpuwatch.tui.sources.without_probe import WithoutProbe
from tests.integration.test_watchable import can_unshare, children_of, unused_pid
from tests.integration.unprobed import running, toy

JARGON: Final = re.compile(
    r"ptrace|namespace|errno|EPERM|EACCES|ENOENT|SIG[A-Z]{2,}|uid\b|inode|seccomp|Traceback|None\b|"
    r"dumpable|syscall|PR_SET|memfd|ROUTER|zmq|<class|Exception|Error:"
)
ASIDE: Final = re.compile(
    r"\([^)]*\)|--cap-add=\S+|sudo sysctl \S+"  # in brackets, or to be typed
)
LONGEST: Final = 200
"""Characters of a line."""


def plain(text: str) -> bool:
    """Whether somebody understands it who does not know what the words stand for."""
    return JARGON.search(ASIDE.sub("", text)) is None


@contextmanager
def stopped(_: Path) -> Iterator[int]:
    process = subprocess.Popen(["true"])
    process.wait()
    yield process.pid


@contextmanager
def no_python(_: Path) -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


@contextmanager
def two_trainings(folder: Path) -> Iterator[int]:
    script = toy(folder)
    command = f"{sys.executable} {script} & {sys.executable} {script} & wait"
    with running(["sh", "-c", command], lines_first=2) as (shell, _):
        yield shell.pid


@contextmanager
def ended(_: Path) -> Iterator[int]:
    """Nobody has taken notice of its end."""
    read, write = os.pipe()
    process = subprocess.Popen(["sh", "-c", f"exec {write}>&-"], pass_fds=(write,))
    os.close(write)
    os.read(read, 1)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process.pid
    os.close(read)
    process.wait()


@contextmanager
def training(folder: Path) -> Iterator[int]:
    with running([sys.executable, str(toy(folder))]) as (process, _):
        yield process.pid


@contextmanager
def in_a_container(folder: Path) -> Iterator[int]:
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--mount"]
    with running([*command, sys.executable, str(toy(folder))]) as (outer, _):
        yield children_of(outer.pid)[0]


Place = Callable[[Path], AbstractContextManager[int]]
needs_unshare = pytest.mark.skipif(not can_unshare(), reason="needs unshare, and the right to it")


def case(
    name: str, place: Place, ask: Callable[[int], object], *lines: str, unshares: bool = False
) -> Any:
    """A row of the table."""
    marks = [needs_unshare] if unshares else []
    return pytest.param(place, ask, lines, id=name, marks=marks)


@pytest.mark.parametrize(
    ("place", "ask", "lines"),
    [
        case(
            "gone",
            stopped,
            find_watchable,
            r"gpuwatch: no process {pid}",
            r"(P.*\n)?See: gpuwatch ls",
        ),
        case(
            "ended",
            ended,
            find_watchable,
            r"gpuwatch: process {pid} has ended",
            r"It is a zombie: its parent has not reaped it\.",
        ),
        case(
            "not Python",
            no_python,
            find_watchable,
            r'gpuwatch: {pid} is "sleep", not Python',
            r"gpuwatch watches Python processes that train with PyTorch\.",
            r"See: gpuwatch ls",
        ),
        case(
            "several trainings",
            two_trainings,
            find_watchable,
            r"gpuwatch: {pid} \(sh\) has several trainings below it",
            r"\d+ \(train\.py\), \d+ \(train\.py\)",
            r"Try: gpuwatch attach \d+",
        ),
        case(
            "too old to inject",
            training,
            target_python,
            r"gpuwatch: {pid} runs Python 3\.\d+, into which nothing can be put safely",
            r"Python 3\.14 and newer take code from outside; a debugger can force it into older "
            r"ones, and has hung trainings for ever\.",
            r"Without the probe: gpuwatch attach {pid}\. With it, next time: gpuwatch run "
            r"\S+train\.py",
        ),
        case(
            "nothing to inject into",
            no_python,
            target_python,
            r'gpuwatch: {pid} is "sleep", not Python',
            r"Only a Python interpreter can be asked to take the probe\.",
            r"See: gpuwatch ls",
        ),
        case(
            "injecting into a container",
            in_a_container,
            target_python,
            r"gpuwatch: {pid} runs in a container",
            r"Its files are not those that are seen from here\.",
            r"Run gpuwatch inside the container, with the pid that the process has there\.",
            unshares=True,
        ),
    ],
)
def test_an_end_in_three_lines(
    place: Place, ask: Callable[[int], object], lines: tuple[str, ...], tmp_path: Path
) -> None:
    with place(tmp_path) as pid, pytest.raises(GpuwatchError) as error:
        ask(pid)
    output = str(error.value)
    wanted = "\n".join(lines).replace("{pid}", str(pid))
    assert re.fullmatch(wanted, output), output
    assert plain(output)
    assert len(output.splitlines()) <= 3
    assert all(len(line) <= LONGEST for line in output.splitlines())


@needs_unshare
def test_a_pid_that_two_containers_have(tmp_path: Path) -> None:
    number = unused_pid()
    start = (
        f"echo {number - 1} > /proc/sys/kernel/ns_last_pid && {sys.executable} {toy(tmp_path)}; :"
    )
    command = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", start]
    with running(command) as (_, (one,)), running(command) as (_, (other,)):
        if {one, other} != {number}:
            pytest.skip("the kernel does not let the next pid be chosen")
        with pytest.raises(GpuwatchError) as error:
            find_watchable(number)
    first, second, third = str(error.value).splitlines()
    assert first == f"gpuwatch: no process {number} here, and one in each of 2 containers"
    assert re.fullmatch(r"As they are called here: \d+ \(train\.py\), \d+ \(train\.py\)", second)
    assert re.fullmatch(r"Try: gpuwatch attach \d+", third)
    assert plain(str(error.value))


@pytest.mark.parametrize("scope", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("contained", [False, True])
def test_stacks_that_may_not_be_read(scope: int | None, contained: bool) -> None:
    reason, fix = no_stacks(scope, contained)
    assert plain(f"{reason}. {fix}")
    assert fix or scope == 3, "only that nobody can change"


def test_no_driver() -> None:
    source = NvmlSource(os.getpid())
    source.open()
    reported = [one for one in source.poll(0) if isinstance(one, Missing)]
    source.close()
    if shutil.which("nvidia-smi") is not None:
        pytest.skip("there is a driver here")
    (missing,) = reported
    assert missing.reason == (
        "no NVIDIA driver found (libnvidia-ml.so.1): steps, CPU and stacks work without it"
    )
    assert plain(missing.reason)


def test_no_probe_in_it(tmp_path: Path) -> None:
    with training(tmp_path) as pid:
        (missing,) = WithoutProbe(pid, (3, 11)).poll(0)
    assert isinstance(missing, Missing)
    assert missing.reason == (
        "not in the process: it adds step times, times on the GPU's clock, and what each wait costs"
    )
    script = tmp_path / "train.py"
    assert missing.fix == (
        f"Start it with: gpuwatch run {script}, or with import probe; probe.install() at its top"
    )


@pytest.mark.parametrize(
    "output", ["ptrace refused", "in another pid namespace", "got EPERM", "killed by SIGKILL"]
)
def test_what_is_not_plain(output: str) -> None:
    assert not plain(output)
    assert plain(f"it is refused ({output})")
