"""`attach --inject` by root, into a process of a user who would like root's rights."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.tui.errors import NotPermittedError
from gpuwatch.tui.launch.interpreter import target_python
from tests.processes.command_line import environment, gpuwatch
from tests.processes.monitored import pages_of, until

NOBODY = 65534
ANSWER_S = 5.0
"""In place of 20 s: an interpreter that does not answer is given up then."""
GROUP = 54321
"""A supplementary group of the process, which is nobody else's."""
LOOPS = """
import sys, time
print(sys.stdin.readline(), end="", flush=True)
while True:
    step = getattr(sys.modules.get("probe"), "step", None)
    if step is not None:
        step()
    time.sleep(0.01)
"""
BLOCKED = "import sys; print(sys.stdin.readline(), end='', flush=True); sys.stdin.read()"
RECORDS = """#!/bin/sh
{ grep -E '^(Uid|Gid|Groups|CapEff|CapPrm|CapAmb):' /proc/self/status
  echo "terminal: $(ps -o tty= -p $$)"; echo "session: $(ps -o sid= -p $$)"
  ls -l /proc/self/fd; env; } >> RECORD
echo 3 14
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who injects into another's process"),
    pytest.mark.xdist_group("machine"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of that user's, which they can reach."""
    with tempfile.TemporaryDirectory(prefix="nobody-") as made:
        os.chown(made, NOBODY, NOBODY)
        yield Path(made)


@contextmanager
def nobodys(
    words: "list[str | Path]", home: Path, **more: str
) -> "Iterator[subprocess.Popen[str]]":
    """A process of that user's; with its home for temporary files."""
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], "TMPDIR": str(home), **more},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[GROUP],
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline() == "go\n"
            yield process
        finally:
            process.kill()


@contextmanager
def with_an_interpreter_of_its_own(
    home: Path, text: str
) -> "Iterator[tuple[subprocess.Popen[str], Path]]":
    """Its program is called as an interpreter is; where that lay, there is something else."""
    program = home / "python3"
    shutil.copy("/bin/cat", program)
    with nobodys([program], home, OURS="yes") as target:
        program.unlink()
        planted = home / "python3 (deleted)"  # what the kernel calls a program that was removed
        record = home / "record"
        planted.write_text(text.replace("RECORD", str(record)))
        planted.chmod(0o755)
        yield target, record


def inject(pid: int, *more: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    waits_s = {"launch.interpreter.ANSWER_S": ANSWER_S}
    words = ("attach", "--inject", *more, str(pid))
    return gpuwatch(*words, limit_s=60.0, waits_s=waits_s, **environ)


def test_its_interpreter_runs_with_its_ids_alone(home: Path) -> None:
    with with_an_interpreter_of_its_own(home, RECORDS) as (target, record):
        done = inject(target.pid, "--yes", "--once", "--duration", "1", ROOTS_SECRET="hunter2")
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) <= 3
    recorded = record.read_text()
    lines = dict(line.split(":\t", 1) for line in recorded.splitlines() if ":\t" in line)
    assert lines["Uid"].split() == lines["Gid"].split() == [str(NOBODY)] * 4
    assert lines["Groups"].split() == [str(GROUP)]
    assert {int(lines[f"Cap{one}"], 16) for one in ("Eff", "Prm", "Amb")} == {0}
    assert "terminal: ?" in recorded
    assert f"session: {os.getsid(0)}" not in recorded
    assert "hunter2" not in recorded
    assert "OURS=yes" in recorded
    assert "socket:" not in recorded


def test_nothing_of_its_is_started_before_somebody_agreed(home: Path) -> None:
    with with_an_interpreter_of_its_own(home, RECORDS) as (target, record):
        done = inject(target.pid)
        assert done.returncode == 2
        assert "--yes" in done.stderr
        assert not record.exists()


@pytest.mark.parametrize("prints", ["yes", "yes >&2", "sleep 60 & echo 3 14; cat"])
def test_what_its_interpreter_shows_is_bounded(home: Path, prints: str) -> None:
    with with_an_interpreter_of_its_own(home, f"#!/bin/sh\n{prints}\n") as (target, _):
        done = inject(target.pid, "--yes")
        assert done.returncode == 1
        assert len(done.stderr) < 1_000


def test_it_answers_with_escape_sequences(home: Path) -> None:
    """The version is asked first, then it is to hand the probe over."""
    answers = """#!/bin/sh
case "$5$4" in
*remote_exec*) printf '{"outcome": "refused", "text": "\\\\u001b]0;owned\\\\u0007"}';;
*) echo 3 14;; esac
"""
    with with_an_interpreter_of_its_own(home, answers) as (target, _):
        done = inject(target.pid, "--yes")
        assert done.returncode == 1
        assert "owned" in done.stderr
        assert "\x1b" not in done.stderr


def test_all_files_are_its_own_from_the_start(home: Path, newer: str) -> None:
    """Root opens, gives away and removes nothing in a folder in which that user could plant a link
    meanwhile."""
    with nobodys([newer, "-c", BLOCKED], home) as target:
        with subprocess.Popen(
            [sys.executable, "-m", "gpuwatch.tui.cli.main", "attach", "--inject", "--yes",
             str(target.pid)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, env=environment(),
        ) as monitor:  # fmt: skip
            (script,) = until(lambda: list(home.glob("gpuwatch-inject-*/script.py")))
            for path in (script, script.parent):
                found = path.lstat()
                assert (found.st_uid, stat.S_IMODE(found.st_mode) & 0o077) == (NOBODY, 0)
            target.kill()
            monitor.communicate(timeout=30)
        assert monitor.returncode == 3
    assert list(home.iterdir()) == []


def test_the_probe_is_in_while_root_watches_and_then_out(home: Path, newer: str) -> None:
    readable = subprocess.run(["cat", str(Path(__file__))], user=NOBODY, capture_output=True)
    if readable.returncode:
        pytest.skip("that user may not read this tree")
    with nobodys([newer, "-c", LOOPS], home) as target:
        done = inject(target.pid, "--yes", "--json", "--duration", "3")
        assert done.returncode == 0, done.stderr
        last = json.loads(done.stdout.splitlines()[-1])
        assert last["status"]["state"] == "live"
        assert last["steps"]["total"] > 50
        assert pages_of(target.pid) == []
    assert [one for one in home.rglob("*") if not one.name.startswith("gpuwatch-6")] == []


def test_a_process_that_could_change_its_ids_back_is_left_alone(newer: str) -> None:
    halfway = f"import os; os.seteuid({NOBODY}); {BLOCKED}"
    with subprocess.Popen(
        [newer, "-c", halfway], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as target:
        assert target.stdin is not None
        assert target.stdout is not None
        target.stdin.write("go\n")
        target.stdin.flush()
        assert target.stdout.readline() == "go\n"
        with pytest.raises(NotPermittedError, match="acts for several users"):
            target_python(target.pid)
        target.kill()
