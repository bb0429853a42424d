"""The suite runs a real scenario from its launch to its tables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.suite
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_scenario_is_watched_measured_judged_and_judged_again(tmp_path: Path) -> None:
    command = [sys.executable, "demo/evaluate.py", str(tmp_path), "--only", "host_logger"]
    few = ["--tiny", "--seconds", "5", "--bare-seconds", "1", "--repeats", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(
        [*command, *few], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=160
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "host_logger.0" in run.stdout
    folder = tmp_path / "host_logger.0"
    result = json.loads((folder / "result.json").read_text())
    assert result["truth"]["label"] == "bound"
    assert result["truth"]["gain"] > 1.5
    assert result["tools"]["gpuwatch"]["kind"] != "incomplete"
    assert result["tools"]["host-wait share"]["kind"] == "compute"
    assert abs(result["data_wait"]["told"] - result["data_wait"]["true"]) < 0.05
    (folder / "result.json").unlink()
    unjudged = subprocess.run(
        [sys.executable, "demo/evaluate.py", str(tmp_path / "later"), "--truth", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "was not judged here" in unjudged.stderr
    again = subprocess.run(
        [*command, "--again"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert again.returncode == 0, again.stderr
    assert json.loads((folder / "result.json").read_text()) == result
