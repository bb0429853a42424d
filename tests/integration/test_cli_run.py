"""`gpuwatch run`: the program, its exit code, its signals, and a probe in every rank."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.command_line import ROOT, environment, started
from tests.processes.monitored import hello_of, pages_of

BIN = Path(sys.executable).parent
PRINTS = """
import json, os, sys
print(json.dumps({
    "argv": sys.argv,
    "name": __name__,
    "path": sys.path,
    "flags": list(sys.flags),
    "modules": sorted(name for name in sys.modules if "sitecustomize" in name),
    "finders": [type(finder).__name__ for finder in sys.meta_path],
    "pythonpath": os.environ.get("PYTHONPATH"),
    "pid": os.getpid(),
}))
"""
WATCHED = """
import os, sys, time
import torch
print(os.getpid(), flush=True)
sys.stdin.readline()
"""


def gpuwatch_run(
    *words: str, folder: Path, given: str = "", **more: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "gpuwatch.tui.cli.main", "run", *words],
        input=given,
        capture_output=True,
        text=True,
        timeout=50,
        cwd=folder,
        env=environment(**more),
        check=False,
    )


def plainly(*words: str, folder: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=50,
        cwd=folder,
        env=environment(**more),
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "says.py").write_text(PRINTS)
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mod.py").write_text(PRINTS)
    # It stands in for torch where only its arrival matters: that takes no second to import.
    (tmp_path / "torch.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["says.py", "--lr", "3", "--attach", "-m", "x"],
        ["-m", "pkg.mod", "--json"],
        ["-m", "pkg.mod", "--", "x", "--lr", "3"],
        ["-mpkg.mod", "--attach"],
        ["python", "-u", "-X", "dev", "says.py", "--", "-1"],
    ],
)
def test_the_program_sees_what_it_would_see_without(folder: Path, words: list[str]) -> None:
    bare = words if words[0] == "python" else ["python", *words]
    path = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    without = plainly(*bare, folder=folder, **path)
    given = gpuwatch_run(*words, folder=folder, **path)
    assert (given.returncode, given.stderr) == (0, without.stderr)
    seen, expected = json.loads(given.stdout), json.loads(without.stdout)
    boot, rest = seen.pop("pythonpath").split(os.pathsep, 1)
    assert (boot, rest) == (str(ROOT / "gpuwatch" / "probe" / "boot"), expected.pop("pythonpath"))
    assert seen.pop("finders") == ["TorchFinder", *expected.pop("finders")]
    del seen["pid"], expected["pid"]
    assert seen == expected


def test_it_takes_our_place(folder: Path) -> None:
    with started("run", sys.executable, str(folder / "says.py")) as run:
        out, _ = run.communicate(timeout=30)
        assert json.loads(out)["pid"] == run.pid


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("import sys; sys.exit(7)", 7),
        ("raise ValueError('theirs')", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ],
)
def test_the_exit_code_is_the_program_s(folder: Path, program: str, code: int) -> None:
    (folder / "ends.py").write_text(program)
    done = gpuwatch_run("ends.py", folder=folder)
    assert done.returncode == code
    assert "gpuwatch" not in done.stderr


def test_a_program_that_a_pipe_ends_is_ended_by_it(folder: Path) -> None:
    done = gpuwatch_run("sh", "-c", "yes | head -1", folder=folder)
    assert done.stdout.splitlines()[0] == "y"
    assert "Broken pipe" not in done.stderr, "python ignores SIGPIPE; the program does not inherit"


def test_the_sitecustomize_that_was_there_is_loaded_and_its_errors_are_its_own(
    folder: Path,
) -> None:
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nsys.theirs = 1\nraise KeyError('theirs')\n")
    (folder / "asks.py").write_text("import sys\nprint(sys.theirs)")
    paths = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    without = plainly(sys.executable, "asks.py", folder=folder, **paths)
    given = gpuwatch_run("asks.py", folder=folder, **paths)
    # Once for gpuwatch's own interpreter, once for the program's.
    assert (given.stdout, given.stderr) == (without.stdout, 2 * without.stderr)
    assert given.stdout == "1\n"


def test_a_probe_is_there_once_torch_is_and_names_the_module(folder: Path) -> None:
    (folder / "pkg" / "train.py").write_text(WATCHED)
    (folder / "pkg" / "__init__.py").write_text("import torch")
    with subprocess.Popen(
        [sys.executable, "-m", "gpuwatch.tui.cli.main", "run", "-m", "pkg.train", "--lr", "1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment(),
    ) as run:  # fmt: skip
        try:
            assert run.stdout is not None
            assert int(run.stdout.readline()) == run.pid
            hello = hello_of(run.pid)
            assert hello.argv == ["pkg.train", "--lr", "1"]
        finally:
            run.kill()


@pytest.mark.parametrize(
    ("words", "more", "output"),
    [
        (["says.py"], {"GPUWATCH": "0"}, "GPUWATCH=0 is set"),
        (["python", "-uI", "says.py"], {}, "python -I takes nothing"),
        (["env", "-i", sys.executable, "says.py"], {}, "env -i"),
    ],
)
def test_what_is_known_to_be_out_of_reach_is_reported_and_runs(
    folder: Path, words: list[str], more: dict[str, str], output: str
) -> None:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = gpuwatch_run(*words, folder=folder, PATH=path, **more)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert output in done.stderr
    assert "TorchFinder" not in json.loads(done.stdout)["finders"]


def test_a_python_that_has_nothing_but_torch_gets_the_probe(folder: Path) -> None:
    (folder / "bare.py").write_text(
        "import sys, torch\n"
        "loaded = {'zmq', 'msgspec', 'psutil', 'textual'} & {*sys.modules}\n"
        "print('ran', *loaded, any(name.endswith('probe.recorder') for name in sys.modules))"
    )
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True
    )
    assert made.returncode == 0
    python = folder / "venv" / "bin" / "python"
    clean = {"PYTHONPATH": str(folder)}
    done = gpuwatch_run(str(python), "bare.py", folder=folder, **clean)
    assert (done.returncode, done.stdout) == (0, "ran True\n"), done.stderr


RANKS = """
import os, sys
import torch
from torch.utils.data import DataLoader

if __name__ == "__main__":
    contexts = ("fork", "spawn")
    loaders = [DataLoader(range(64), num_workers=1, multiprocessing_context=c) for c in contexts]
    batches = [iter(loader) for loader in loaders]
    for iterator in batches:
        next(iterator)
    workers = [worker.pid for iterator in batches for worker in iterator._workers]
    sys.stdout.write(" ".join(map(str, [os.getpid(), *workers])) + "\\n")  # one write each
    sys.stdout.flush()
    sys.stdin.readline()
"""


def own_pages(pid: int) -> list[bytes]:
    return [page for page in pages_of(pid) if f'"pid": {pid},'.encode() in page]


@pytest.mark.slow
def test_every_rank_is_armed_its_launcher_and_its_workers_are_not(tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    words = ["run", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "gpuwatch.tui.cli.main", *words, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    ) as launcher:
        try:
            assert launcher.stdout is not None
            pids = [[int(pid) for pid in launcher.stdout.readline().split()] for _ in range(2)]
            hellos = [hello_of(rank) for rank, *_ in pids]
            assert sorted((one.rank, one.world_size) for one in hellos) == [(0, 2), (1, 2)]
            assert [one.fault for one in hellos] == [None, None]
            assert own_pages(launcher.pid) == []
            workers = [worker for _, *rest in pids for worker in rest]
            assert len(workers) == 4
            for worker in workers:
                assert own_pages(worker) == []
                names = Path(f"/proc/{worker}/task").glob("*/comm")
                assert not [name for name in names if "gpuwatch" in name.read_text()]
            launcher.send_signal(signal.SIGTERM)
            assert launcher.wait(30) != 0
        finally:
            launcher.kill()
