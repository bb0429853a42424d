"""What a program can notice of the probe besides its steps: nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.command_line import ROOT, environment, gpuwatch


def interpreter(version: str) -> str | None:
    """One of this version; pyenv's own are scripts, which choose a version by a setting."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python{version}"))
    found = str(installed[-1]) if installed else shutil.which(f"python{version}")
    return found if found and "shims" not in found else None


NEWER = [
    *filter(None, map(interpreter, ("3.12", "3.13", "3.14"))),
    *filter(None, [os.environ.get("GPUWATCH_PYTHON_314")]),
]
PYTHON_2 = interpreter("2.7")


def output(python: str, code: str, *words: str) -> str:
    """Of the code, with the probe or without."""
    done = subprocess.run(
        [python, *words, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    return done.stdout


def both(python: str, code: str, *words: str) -> tuple[str, str]:
    """Bare, and with the probe."""
    install = "import probe; probe.install()\n"
    until = (
        "import pathlib, time\n"
        "while all(one.read_text() != 'gpuwatch\\n'"
        " for one in pathlib.Path('/proc/self/task').glob('*/comm')): time.sleep(0.01)\n"
    )
    return output(python, code, *words), output(python, install + until + code, *words)


FORKS = """
import os, sys, warnings
def fork():
    if (pid := os.fork()) == 0:
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
before = list(warnings.filters)
fork()
fork()
print(before == list(warnings.filters))
"""
BESIDE_ANOTHER = (
    """
import threading
stay = threading.Event()
threading.Thread(target=stay.wait, daemon=True).start()
"""
    + FORKS
)


@pytest.mark.parametrize("python", NEWER)
@pytest.mark.parametrize("words", [(), ("-W", "error"), ("-W", "always")])
def test_a_fork_warns_of_our_thread_as_little_as_without(python: str, words: tuple[str]) -> None:
    bare, ours = both(python, FORKS, *words)
    assert bare == ours == "3\n3\nTrue\n"


@pytest.mark.parametrize("python", NEWER)
def test_a_fork_beside_the_programs_own_threads_warns_as_without(python: str) -> None:
    bare, ours = both(python, BESIDE_ANOTHER, "-W", "always")
    assert "is multi-threaded" in bare
    assert bare.count("multi-threaded") == ours.count("multi-threaded") == 2


THREADS = """
import sys, threading, time
names = []
threading.settrace(lambda frame, *_: names.append(frame.f_code.co_filename))
threading.setprofile(lambda frame, *_: names.append(frame.f_code.co_filename))
import probe
if sys.argv[1:] == ["probe"]:
    probe.install()
    time.sleep(0.6)
    with probe.phase("x"):
        pass
print([one.name for one in threading.enumerate()], threading.active_count(), names)
"""


def test_a_program_that_traces_or_counts_its_threads_sees_none_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "traces.py"
    path.write_text(THREADS)
    shown = [
        subprocess.run(
            [sys.executable, str(path), *words], capture_output=True, text=True, env=environment()
        )
        for words in ([], ["probe"])
    ]
    assert shown[0].stdout == shown[1].stdout == "['MainThread'] 1 []\n"
    assert shown[1].stderr == ""


OWN_FINDER = """
import importlib.util, sys
class Redirects:
    asked = 0
    def find_spec(self, name, path, target=None):
        if name == "torch":
            Redirects.asked += 1
            return importlib.util.spec_from_file_location(name, {fake!r})
class Sees:
    asked = []
    def find_spec(self, name, path, target=None):
        if name == "torch":
            Sees.asked.append(name)
before, behind = sys.argv[1].split("-")
if before == "sees":
    sys.meta_path.insert(0, Sees())
if behind == "redirects":
    sys.meta_path.insert(1 if before == "sees" else 0, Redirects())
{install}
import torch
print(torch.WHOSE, Redirects.asked, Sees.asked, type(torch.__spec__.loader).__name__)
print([type(one).__name__ for one in sys.meta_path if "rrival" in type(one).__name__])
"""


@pytest.mark.parametrize("how", ["bare", "install", "run"])
@pytest.mark.parametrize("where", ["no-redirects", "sees-redirects"])
def test_an_import_hook_of_the_programs_own_is_asked_as_without(
    tmp_path: Path, how: str, where: str
) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text("WHOSE = 'theirs'\n")
    path = tmp_path / "train.py"
    install = "import probe; probe.install()" if how == "install" else ""
    path.write_text(OWN_FINDER.format(fake=str(fake), install=install))
    if how == "run":
        done = gpuwatch("run", sys.executable, str(path), where)
    else:
        done = subprocess.run(
            [sys.executable, str(path), where], capture_output=True, text=True, env=environment()
        )
    seen = ["torch"] if where.startswith("sees") else []
    assert done.stdout.splitlines()[0] == f"theirs 1 {seen} SourceFileLoader", done.stderr


@pytest.mark.skipif(PYTHON_2 is None, reason="no Python 2 here")
def test_a_python_2_below_run_starts_without_a_word() -> None:
    boot = ROOT / "probe" / "boot"
    code = "import sys; print(sys.version_info[0])"
    done = gpuwatch("run", "sh", "-c", f"{PYTHON_2} -B -c '{code}'")
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
    assert not list(boot.glob("*.pyc"))
