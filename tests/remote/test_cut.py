"""A way to another machine that is cut for twenty seconds: shown, tried again, nothing lost."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.processes.command_line import gpuwatch, started, toy
from tests.remote.servers import servers

CUT_S = 20.0


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_link_that_is_cut_is_shown_and_what_was_missed_is_fetched(tmp_path: Path) -> None:
    file = tmp_path / "run.gpuwatch"
    with toy(tmp_path) as target, servers(tmp_path, delay_s=0.02) as running:
        recording = ("record", f"far:{target.pid}", "-o", str(file), "--duration", "58")
        lines: list[dict[str, Any]] = []
        with (
            started(*recording, GPUWATCH_SSH=running.ssh) as recorder,
            started("attach", f"far:{target.pid}", "--json", GPUWATCH_SSH=running.ssh) as monitor,
        ):
            assert monitor.stdout is not None
            cut_s = healed_s = None
            while True:
                line = json.loads(monitor.stdout.readline())
                lines.append(line)
                link = line["status"]["link"]
                now_s = time.monotonic()
                if cut_s is None and (line["steps"] or {}).get("total", 0) > 300:
                    cut_s = now_s
                    running.way.cut.set()
                if cut_s is not None and healed_s is None and now_s - cut_s > CUT_S:
                    healed_s = now_s
                    running.way.cut.clear()
                fresh_s = line["status"]["freshness_s"]
                is_back = link["lost_s"] is None and fresh_s is not None and fresh_s < 1.5
                if healed_s is not None and is_back and now_s - healed_s > 12:
                    break
            recorder.wait(60)
            assert recorder.returncode == 0
    lost = [one for one in lines if one["status"]["link"]["lost_s"] is not None]
    assert len(lost) >= 10  # a line a second, while nothing came
    assert "nothing has come for 6 s" in {one["status"]["link"]["why"] for one in lost}
    assert {one["verdict"]["kind"] for one in lost} == {"host"}  # and no stall of the run
    replayed = gpuwatch("replay", str(file), "--json").stdout.splitlines()
    numbers = [json.loads(one)["steps"] for one in replayed]
    assert numbers[-1]["total"] > 2_000
    assert "steps passed unseen" not in gpuwatch("replay", str(file), "--plain").stdout
