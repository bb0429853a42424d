"""Prometheus' own checks of the page, the rules and the configuration."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpuwatch.tui.fleet.openmetrics import PLAIN, rendered
from tests.fleet.recorded import host_watch
from tests.processes.command_line import ROOT
from tests.unit.faces.pictures import BY_GPM, GPU, picture
from tests.unit.fleet.making import HISTOGRAM, exported, watched

PROMTOOL = shutil.which("promtool")
FLEET = ROOT / "docs" / "fleet"
RANKS = ROOT / "tests" / "recordings" / "ranks" / "h200_first"

pytestmark = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (apt install prometheus)"
)


def promtool(*words: str, page: str = "") -> "subprocess.CompletedProcess[str]":
    assert PROMTOOL is not None
    return subprocess.run(
        [PROMTOOL, *words], input=page, capture_output=True, text=True, timeout=30, check=False
    )


def test_check_metrics() -> None:
    page = rendered(
        exported(watched(picture(gpus=(GPU,), activity=(BY_GPM,), histogram=HISTOGRAM))), PLAIN
    )
    checked = promtool("check", "metrics", page=page)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_check_metrics_of_recorded_ranks() -> None:
    watch = host_watch([RANKS / "sleeps.0.gpuwatch", RANKS / "sleeps.1.gpuwatch"])
    watch.look()
    checked = promtool("check", "metrics", page=rendered(watch.metrics(), PLAIN))
    watch.close()
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "words",
    [
        ("check", "rules", str(FLEET / "alerts.yml")),
        ("check", "config", str(FLEET / "prometheus.yml")),
        ("test", "rules", str(Path(__file__).with_name("alerts_test.yml"))),
    ],
)
def test_rules_and_configuration(words: tuple[str, ...]) -> None:
    checked = promtool(*words)
    assert checked.returncode == 0, checked.stdout + checked.stderr
