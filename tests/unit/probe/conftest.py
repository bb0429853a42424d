"""What tests of the probe share."""

from pathlib import Path

import pytest

from tests.unit.probe.profiled import Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A training thread that can be profiled, all made up."""
    return Run(monkeypatch, tmp_path)
