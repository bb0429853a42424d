"""Real runs under real libraries: steps counted right, phases within 10 % of sleeps that are known.

GPUWATCH_FRAMEWORKS names an interpreter that has them; `make frameworks` makes one.
"""

import os
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from tests.frameworks.cases import CASES, Case
from tests.frameworks.real_run import Seen, off_by, watch

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter with the frameworks."""
    named = os.environ.get("GPUWATCH_FRAMEWORKS")
    if named is None:
        pytest.skip("no interpreter with the frameworks here (GPUWATCH_FRAMEWORKS)")
    return named


@lru_cache
def version_of(python: str, package: str) -> str | None:
    """What that interpreter has of a distribution; None where it has none."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or None


def has_cuda(python: str) -> bool:
    """Whether that interpreter's torch can use a device."""
    code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "case",
    [pytest.param(one, id=one.id, marks=[pytest.mark.gpu] * one.on_gpu) for one in CASES],
)
def test_a_framework_is_seen_as_it_is(case: Case, python: str, tmp_path: Path) -> None:
    if version_of(python, case.package) is None:
        pytest.skip(f"{case.package} is not installed there")
    if case.on_gpu and not has_cuda(python):
        pytest.skip("no CUDA device there")
    for seen in watch(python, case, tmp_path):
        check(case, seen)


def check(case: Case, seen: Seen) -> None:
    """Of one process: nothing lost, every step counted, every wait in its phase."""
    assert seen.fault is None
    assert seen.lost_marks == 0
    assert "gpuwatch" not in seen.error
    assert seen.true_steps == case.steps
    assert seen.reported_steps == case.steps
    errors = off_by(case, seen)
    assert {phase: f"{error:+.1%}" for phase, error in errors.items() if abs(error) > 0.1} == {}
