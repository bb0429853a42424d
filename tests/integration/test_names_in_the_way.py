"""A user's own probe.py, tui/ or gpuwatch.py: it breaks no run and no monitor, and stays theirs."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.processes.command_line import ROOT, environment, gpuwatch, injected_script
from tests.processes.monitored import hello_of

COMMAND = "import sys; from gpuwatch_torch import main; sys.exit(main())"
"""What pip writes into bin/gpuwatch."""
THEIRS = "import sys\nprint('theirs is imported:', __name__, file=sys.stderr)\nWHOSE = 'theirs'\n"
NO_PID = 999_999_999
OURS = ("probe", "tui", "gpuwatch")


@dataclass(frozen=True)
class Place:
    """A folder where Python looks before it finds ours."""

    folder: Path
    """Where the names are taken."""
    scripts: Path
    """Where the user's script lies."""
    python: str
    paths: tuple[Path, ...]
    """PYTHONPATH."""

    def take(self, names: Collection[str], as_package: bool) -> None:
        """Put a module of the user's there by each of these names."""
        for name in names:
            file = self.folder / (f"{name}/__init__.py" if as_package else f"{name}.py")
            file.parent.mkdir(exist_ok=True)
            file.write_text(THEIRS)

    def command(self, script: str) -> list[str]:
        """Runs this text as the user's script."""
        path = self.scripts / "train.py"
        path.write_text(script)
        return [self.python, str(path)]

    def gpuwatch(self, *words: str) -> list[str]:
        """The command as it is installed: a script in a folder of its own."""
        folder = self.scripts / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "gpuwatch").write_text(COMMAND)
        return [self.python, str(folder / "gpuwatch"), *words]

    @property
    def environ(self) -> dict[str, str]:
        """What the user's shell has set."""
        return environment(PYTHONPATH=os.pathsep.join(map(str, self.paths)))

    def run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run it to its end, from the script's folder."""
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=50,
            cwd=self.scripts,
            env=self.environ,
            check=False,
        )


def _beside_the_script(folder: Path) -> Place:
    return Place(folder, folder, sys.executable, (ROOT,))


def _on_pythonpath(folder: Path) -> Place:
    (folder / "lib").mkdir()
    (folder / "scripts").mkdir()
    return Place(folder / "lib", folder / "scripts", sys.executable, (folder / "lib", ROOT))


def _in_site_packages(folder: Path) -> Place:
    """An environment in which ours comes later, as it does after `pip install --editable`."""
    (folder / "scripts").mkdir()
    made = [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")]
    subprocess.run(made, check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "later.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    for line in Path(sysconfig.get_path("purelib")).glob("*.pth"):
        (site / f"z-{line.name}").write_text(line.read_text())
    return Place(site, folder / "scripts", str(folder / "venv" / "bin" / "python"), ())


PLACES = [_beside_the_script, _on_pythonpath, _in_site_packages]


@pytest.fixture(params=PLACES, ids=["beside the script", "on PYTHONPATH", "in site-packages"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    make: Callable[[Path], Place] = request.param
    return make(tmp_path)


@pytest.fixture(params=[False, True], ids=["modules", "packages"])
def as_package(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_the_monitor_starts(place: Place, as_package: bool) -> None:
    place.take(OURS, as_package)
    for words in (["--version"], ["doctor", "--json"], ["attach", str(NO_PID), "--once"]):
        done = place.run(place.gpuwatch(*words))
        assert "Traceback" not in done.stderr, done.stderr
        assert "theirs is imported" not in done.stderr
        assert done.returncode == (3 if words[0] == "attach" else 0), done.stderr


@pytest.mark.parametrize("ours", ["gpuwatch", "probe"])
def test_a_name_that_is_free_installs_the_probe(place: Place, as_package: bool, ours: str) -> None:
    place.take([name for name in OURS if name != ours], as_package)
    script = f"import {ours}, sys\n{ours}.install()\nwith {ours}.phase('load'): pass\n"
    script += "print([name for name in sys.modules if name.endswith('gpuwatch.probe.api')])\n"
    done = place.run(place.command(script))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    name = "gpuwatch" if ours == "gpuwatch" else "_gpuwatch"
    assert done.stdout == f"['{name}.probe.api']\n"


def test_both_names_are_one_probe(tmp_path: Path) -> None:
    script = "import probe, gpuwatch, gpuwatch.probe\nassert probe is gpuwatch.probe\n"
    script += "assert probe.install is gpuwatch.install\n"
    place = _beside_the_script(tmp_path)
    place.take(["tui"], False)
    assert place.run(place.command(script)).stderr == ""


def test_a_probe_of_the_user_s_fails_before_training_starts(place: Place, as_package: bool) -> None:
    place.take(["probe"], as_package)
    done = place.run(place.command("import probe\nprobe.install()\nprint('trains')"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("AttributeError: module 'probe' has no")


def test_run_names_the_file_that_the_script_would_find(place: Place, as_package: bool) -> None:
    place.take(["probe"], as_package)
    script = "import probe\nprobe.install()\nprint('trains')"
    done = place.run(place.gpuwatch("run", *place.command(script)))
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("gpuwatch:")]
    found = place.folder / ("probe/__init__.py" if as_package else "probe.py")
    assert str(found) in note
    assert note.endswith("import gpuwatch; gpuwatch.install()")


def test_the_doctor_shows_what_to_write_instead(tmp_path: Path) -> None:
    place = _beside_the_script(tmp_path)
    place.take(["probe"], as_package=False)
    command = place.command("import sys, mmap\nprint('here', flush=True)\nsys.stdin.readline()")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=place.environ
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "here\n"
        done = gpuwatch("doctor", str(run.pid))
        run.communicate("\n", timeout=20)
    assert "import gpuwatch; gpuwatch.install() at its top" in " ".join(done.stdout.split())


IN_EVERY_PROCESS = """
import os, sys
import torch, probe, tui, gpuwatch
from torch.utils.data import DataLoader

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        assert {probe.WHOSE, tui.WHOSE, gpuwatch.WHOSE} == {"theirs"}
        return index

if __name__ == "__main__":
    for context in ("fork", "spawn"):
        loader = DataLoader(Rows(), batch_size=4, num_workers=1, multiprocessing_context=context)
        assert len(list(loader)) == 2
    print(os.getpid(), flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_run_and_its_workers_leave_every_name_to_the_user(tmp_path: Path) -> None:
    place = _on_pythonpath(tmp_path)
    place.take(OURS, as_package=True)
    replace(place, folder=place.scripts).take(OURS[:1], as_package=False)
    with subprocess.Popen(
        place.gpuwatch("run", *place.command(IN_EVERY_PROCESS)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place.scripts,
        env=place.environ,
    ) as run:
        try:
            assert run.stdout is not None
            line = run.stdout.readline()
            assert line.strip() == str(run.pid), run.communicate()[1]
            assert hello_of(run.pid).fault is None
            _, error = run.communicate("\n", timeout=20)
        finally:
            run.kill()
    assert "gpuwatch" not in error.replace("theirs is imported: gpuwatch", "")


def test_injected_code_leaves_every_name_to_the_user(tmp_path: Path) -> None:
    """What Python 3.14 runs in the process, run here by the process itself."""
    place = _beside_the_script(tmp_path)
    place.take(OURS, as_package=False)
    answers = [tmp_path / "in.reply", tmp_path / "out.reply"]
    script = "import probe, tui, gpuwatch, os, sys, time\n"
    for action, answer in zip(("put_in", "take_out"), answers, strict=True):
        script += f"exec({injected_script(action, answer)!r})\n"
        script += f"while not os.path.exists({str(answer)!r}): time.sleep(0.01)\n"
        script += "print('_gpuwatch.probe.api' in sys.modules, probe.WHOSE)\n"
    done = place.run(place.command(script))
    assert done.stdout == "True theirs\n" * 2, done.stderr
    assert [answer.read_text() for answer in answers] == ["", ""]


def test_a_probe_that_the_program_finds_later_is_its_own(tmp_path: Path) -> None:
    """`gpuwatch run` and `attach --inject` took the name where nobody had it yet: linear probes, in
    a folder that the script puts on its path after torch is imported, were not found any more."""
    lib, answer = tmp_path / "lib", tmp_path / "in.reply"
    lib.mkdir()
    (lib / "probe.py").write_text(THEIRS)
    script = f"import os, sys, threading, time\nexec({injected_script('put_in', answer)!r})\n"
    script += f"while not os.path.exists({str(answer)!r}): time.sleep(0.01)\n"
    script += f"sys.path.append({str(lib)!r})\nfrom probe import WHOSE\nprint(WHOSE)\n"
    without_ours = [sys.executable, "-S", "-c", script]
    place = replace(_beside_the_script(tmp_path), paths=())
    done = place.run(without_ours)
    assert done.stdout == "theirs\n", done.stderr
    assert answer.read_text() == ""
