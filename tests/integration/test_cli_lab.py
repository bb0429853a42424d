"""`gpuwatch lab` and `gpuwatch throughput` over real trainings: what they find and leave."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.processes.command_line import ROOT, program
from tests.processes.monitored import LIMIT_S, SOON_ENDED, started, until

WAITS = """
import sys, time
import torch
torch.set_num_threads(1)
torch.manual_seed(0)

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        time.sleep(0.016)  # long against the milliseconds by which a busy machine wakes late
        return torch.ones(8)

net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
for batch in torch.utils.data.DataLoader(Slow(), batch_size=2):
    loss = net(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

TOKENS = """
import time
import torch
import probe; probe.install()
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Embedding(50, 32), torch.nn.Linear(32, 8, bias=False))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
print("armed", flush=True)
while True:
    for batch in torch.utils.data.DataLoader(torch.randint(0, 50, (6400, 16)), batch_size=32):
        time.sleep(0.003)
        loss = net(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
"""


def lab(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gpuwatch", "lab", *arguments]


@pytest.mark.slow
def test_the_lab_finds_the_change_that_helps(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SOON_ENDED + WAITS)
    ran = subprocess.run(
        lab("--variants", "workers=2,bf16", "--rounds", "1", "--seconds", "3", "--json", "--",
            sys.executable, str(script)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=55,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    gain = {one["variant"]: one for one in record["variants"]}
    assert gain["workers=2"]["gain"] > 1.5, "2.0 where nobody else wants the cores"
    assert gain["bf16"]["gain"] < 1.3
    assert gain["bf16"]["notes"] == []
    assert gain["workers=2"]["loss_close"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_lab_that_is_ended_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "train.py"
    script.write_text("import os, sys, time\nopen(sys.argv[1], 'w').write(str(os.getpid()))\n"
                      "time.sleep(600)\n")  # fmt: skip
    answer = tmp_path / "pid"
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        lab("--", sys.executable, str(script), str(answer)), cwd=ROOT, env=environ,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as run:  # fmt: skip
        assert run.stderr is not None
        run.stderr.readline()
        while not (answer.exists() and answer.read_text()):
            assert run.poll() is None
        program = psutil.Process(int(answer.read_text()))
        run.send_signal(number)
        assert run.wait(LIMIT_S) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    program.wait(LIMIT_S)
    if number == signal.SIGINT:  # killed, nothing can remove them
        assert not list(tmp_path.glob("gpuwatch-lab-*"))


LAUNCHES = """
import subprocess, sys, time
subprocess.Popen([sys.executable, *sys.argv[1:]], start_new_session=True)
time.sleep(600)
"""

STAYS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: open(sys.argv[1] + ".asked", "w").close())
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
"""
"""As a script that goes on for a while when a job's time is over."""


def test_a_rank_in_a_session_of_its_own_ends_with_its_turn(tmp_path: Path) -> None:
    """Its launcher is gone by then."""
    launcher, rank, answer = tmp_path / "launches.py", tmp_path / "stays.py", tmp_path / "pid"
    launcher.write_text(LAUNCHES)
    rank.write_text(STAYS)
    command = lab("--", sys.executable, str(launcher), str(rank), str(answer))
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as run:
        until(lambda: answer.exists() and answer.read_text())
        process = psutil.Process(int(answer.read_text()))
        run.send_signal(signal.SIGINT)
        assert run.wait(LIMIT_S) == 130
        assert not runs(process)


def runs(process: psutil.Process) -> bool:
    """Killed, it is a zombie until whoever is its parent by then has asked for its end."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_second_ctrl_c_kills_what_takes_its_time(tmp_path: Path) -> None:
    script, answer = tmp_path / "stays.py", tmp_path / "pid"
    script.write_text(STAYS)
    for_ever = program(**{"lab.turns.ENDS_S": 3_600.0})
    command = [*for_ever, "lab", "--", sys.executable, str(script), str(answer)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as run:
        until(lambda: answer.exists() and answer.read_text())
        process = psutil.Process(int(answer.read_text()))
        run.send_signal(signal.SIGINT)
        until(Path(f"{answer}.asked").exists)
        run.send_signal(signal.SIGINT)
        assert run.wait(LIMIT_S) == 130
        assert not process.is_running()


def test_a_program_that_fails_is_shown_with_its_last_lines(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise ValueError('no data here')\n")
    ran = subprocess.run(
        lab("--", sys.executable, str(script)), capture_output=True, text=True, cwd=ROOT
    )
    assert ran.returncode == 5
    assert "no data here" in ran.stderr


def test_throughput_counts_tokens_and_flops(tmp_path: Path) -> None:
    with started(TOKENS, tmp_path) as run:
        run.line()
        soon = program(**{"cli.throughput.AFTER_COUNT_S": 1.0})
        ran = subprocess.run(
            [*soon, "throughput", str(run.pid), "--json", "--duration", "3"],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["tokens_inferred"]
    assert found["tokens_s"] == pytest.approx(16 * found["samples_s"], rel=1e-3)
    assert found["flops_step"] == 3 * 2 * 32 * 16 * 32 * 8
    assert found["mfu"] is None


BREAKS = """
import time
import torch
import probe; probe.install()
from gpuwatch.probe import api
torch.set_num_threads(1)
torch.manual_seed(0)
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
print("armed", flush=True)
step, breaks_at = 0, None
while True:
    for batch in torch.utils.data.DataLoader(torch.randn(640, 8), batch_size=8):
        step += 1
        time.sleep(0.002)
        loss = net(batch).square().mean()
        if breaks_at is None and api._installed.recorder.watched:
            breaks_at = time.monotonic() + 1.0  # the monitor has steps from before it
        if breaks_at and time.monotonic() > breaks_at:
            loss = loss * float("nan")
            print(step, flush=True)
            breaks_at = float("inf")
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        probe.log(loss=loss)
"""


def test_a_nan_is_named_with_its_step_live_and_in_a_recording(tmp_path: Path) -> None:
    recording = tmp_path / "run.gpuwatch"
    page = tmp_path / "report.html"
    gpuwatch = (sys.executable, "-m", "gpuwatch")
    with started(BREAKS, tmp_path) as run:
        run.line()
        recorded = [*gpuwatch, "record", str(run.pid), "--no-stacks", "-o", str(recording)]
        assert subprocess.run([*recorded, "--duration", "4"], cwd=ROOT).returncode == 0
        made = int(run.line())
        ran = subprocess.run(
            [*gpuwatch, "report", str(run.pid), "-o", str(page), "--duration", "2"], cwd=ROOT
        )
        assert ran.returncode == 0
    replayed = subprocess.run(
        [*gpuwatch, "replay", str(recording), "--json"], capture_output=True, text=True, cwd=ROOT
    )
    last = json.loads(replayed.stdout.splitlines()[-1])
    first = last["numerics"]["not_finite"]
    assert first["what"] == "NaN"
    assert made <= first["step"] <= made + 2, (
        "every second norm is looked at, with a shift now and then"
    )
    assert any("NaN since step" in note["text"] for note in last["verdict"]["notes"])
    assert last["numerics"]["figures"]["loss"]["value"] is None
    assert "NaN" in page.read_text()


TYPES = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            kept = self.inner(x)
        made = self.inner(x)
        types.append((str(kept.dtype), str(made.dtype)))
        return kept + made.float()

types, made = [], torch.float32
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
for batch in torch.utils.data.DataLoader(torch.randn(32, 8), batch_size=4):
    with torch.autocast("cpu", torch.bfloat16, enabled=False):
        out = net(batch)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(*types[-1], net.inner.weight.dtype, torch.is_autocast_enabled("cpu"))
"""


def test_bf16_reaches_a_forward_whose_autocast_a_flag_has_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And leaves what a module itself keeps in fp32."""
    exec(compile(TYPES, "train.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.startswith("torch.float32 torch.float32 torch.float32")
    script = tmp_path / "train.py"
    script.write_text(SOON_ENDED + TYPES)
    ran = subprocess.run(
        [sys.executable, "-m", "gpuwatch", "run", "--", sys.executable, str(script)],
        env={**os.environ, "GPUWATCH_LAB": json.dumps({"precision": "bf16"})},
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("torch.float32 torch.bfloat16 torch.float32")


NO_EFFECT = """
import torch
import probe; probe.install()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        with torch.autocast("cpu", enabled=not {kept}):
            return self.inner(x)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
for batch in torch.utils.data.DataLoader(torch.randn(32, 8), batch_size=4):
    loss = net(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
from gpuwatch.probe import api
print([row[4] for _, row in api._installed.recorder.notes._held if row[1] == "lab" and row[4]])
"""


@pytest.mark.parametrize("kept", [True, False])
def test_bf16_that_no_product_runs_in_says_so(kept: bool, tmp_path: Path) -> None:
    """By a forward that the lab's autocast was around: the first is not."""
    script = tmp_path / "train.py"
    script.write_text(SOON_ENDED + NO_EFFECT.format(kept=kept))
    ran = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "GPUWATCH_LAB": json.dumps({"precision": "bf16"})},
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    assert ("no product was seen" in ran.stdout) is kept, ran.stdout


LOADS = """
import torch
from torch.utils.data import DataLoader
print("workers", iter(DataLoader(torch.zeros(8, 2), batch_size=4))._num_workers, flush=True)
"""


@pytest.mark.slow
def test_a_change_reaches_the_ranks_of_a_launcher(tmp_path: Path) -> None:
    """The launcher imports torch before they do."""
    script = tmp_path / "train.py"
    script.write_text(SOON_ENDED + LOADS)
    ran = subprocess.run(
        [sys.executable, "-m", "gpuwatch", "run", "--", sys.executable, "-m",
         "torch.distributed.run", "--standalone", "--nproc-per-node", "1", str(script)],
        env={**os.environ, "GPUWATCH_LAB": json.dumps({"workers": 1})},
        capture_output=True,
        text=True,
        cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "workers 1" in ran.stdout
