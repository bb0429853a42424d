"""What only a process's environment changes is measured in turns of processes of their own."""

import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from evaluation import seeds
from evaluation.examined import Reported
from evaluation.kept_runs import again
from evaluation.seeds import IN_KERNEL, Plan, Recorded, SeedRun, Slot, examined, with_processes
from generated.draw import draw
from generated.switches import KEEP, KEPT
from gpuwatch.tui.verdict.rules import page_faults

SEED = 1101
RECORDED = Path(__file__).parents[2] / "recordings" / "generated" / "cpu" / f"cpu-{SEED}.gpuwatch"
REPORT: dict[str, Any] = {
    "turns": [["", 100.0], ["restarts", 101.0], ["", 100.0]],
    "cut": [],
    "failed": {"fused": "no such kernel"},
    "in_kernel": 2 * IN_KERNEL,
    "speed": {"step_s": 0.25},
}
PLAYED = """
import json, os, sys

sys.stdin.read()  # who has begun it writes there
assert os.environ["GPUWATCH"] == "0" and "--examine" not in sys.argv
assert json.loads(sys.argv[sys.argv.index("--speed") + 1]) == {"step_s": 0.25}
if "BROKEN" in os.environ and "MALLOC_MMAP_MAX_" in os.environ:
    sys.exit("no memory")
print(json.dumps({"samples_per_s": 130.0 if "MALLOC_MMAP_MAX_" in os.environ else 100.0}))
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SeedRun:
    """A run whose processes say at once how fast they were."""
    script = tmp_path / "play.py"
    script.write_text(PLAYED)
    monkeypatch.setattr(seeds, "PLAY", script)
    plan = Plan("cpu", "run", 8.0, 0.6, 2, tmp_path)
    return SeedRun(draw(SEED, "cpu"), plan, Slot((), None))


def test_it_is_what_the_verdict_advises() -> None:
    assert " ".join(f"{name}={value}" for name, value in KEEP.items()) == page_faults.KEEP


def test_memory_that_is_kept_takes_turns_of_processes(run: SeedRun) -> None:
    found = with_processes(run, REPORT)
    assert found["processes"] == {KEPT: [("", 100.0), *[(KEPT, 130.0), ("", 100.0)] * 3]}
    assert found["failed"] == REPORT["failed"]


def test_a_run_that_is_rarely_in_the_kernel_is_not_played_again(run: SeedRun) -> None:
    found = with_processes(run, {**REPORT, "in_kernel": IN_KERNEL / 2})
    assert found["processes"] == {}


def test_a_process_that_fails_is_no_truth(run: SeedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "1")
    found = with_processes(run, REPORT)
    assert found["processes"] == {}
    assert "no memory" in found["failed"][KEPT]


def test_what_it_gives_is_a_truth_beside_the_others(run: SeedRun, tmp_path: Path) -> None:
    shutil.copy(RECORDED, tmp_path)
    report = with_processes(run, {**REPORT, "spec": asdict(run.spec)})
    result = examined(Recorded(run, report, 1.0, 0.0, Reported((), 0, None, (None, None), {})))
    assert [(each.name, round(each.gain, 2)) for each in result.gains] == [
        *(("restarts", 1.01), (KEPT, 1.3))
    ]
    assert (result.label, result.right_kinds) == ("positive", ("allocator",))
    assert again(result, tmp_path).gains == result.gains
    before = replace(result, gains=result.gains[:1])
    assert again(before, tmp_path).label == "negative", "of an old run nobody knows it"
