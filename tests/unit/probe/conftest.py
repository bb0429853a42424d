"""What tests of the probe share."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.probe.one_step import traces
from tests.unit.probe.profiled import Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A training thread that can be profiled, all made up."""
    return Run(monkeypatch, tmp_path)


@pytest.fixture(autouse=True)
def compiled_no_more() -> Iterator[None]:
    """What a test has compiled is forgotten behind it: FLOPs are not counted of a process that
    compiles, whichever tests that process ran before."""
    yield
    kept: Any = sys.modules.get("torch._dynamo.utils")
    if kept is not None and kept.counters:
        sys.modules["torch._dynamo"].reset()
        kept.counters.clear()
        gc.collect()


@pytest.fixture
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests of the process have compiled is theirs."""
    for asked in ("compiles", "holds_compiled"):
        monkeypatch.setattr(traces, asked, lambda: False)
