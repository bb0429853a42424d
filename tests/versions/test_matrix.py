"""What the matrix reads from a run of pytest, and what it says of it."""

from pathlib import Path

import pytest

from tests.versions.environment import Missing, environment_of
from tests.versions.matrix import read, row
from tests.versions.pairs import Pair

PAIR = Pair("3.10", "2.4.1")
SUMMARY = """
=========================== short test summary info ============================
SKIPPED [3] tests/unit/probe/test_settings.py:131: the graph tells no types
SKIPPED [1] tests/unit/probe/test_settings.py:149: the graph tells no types
FAILED tests/integration/test_compiled.py::test_a_step[whole step] - AssertionError: 1 - 2
ERROR tests/unit/probe/test_wire.py
1 failed, 254 passed, 4 skipped, 1 error in 104.11s
"""


def test_failures_and_reasons_to_skip_are_named() -> None:
    result = read(PAIR, "3.10.13", SUMMARY)
    assert row(result) == (
        "| 3.10.13 | 2.4.1 | 254 | tests/integration/test_compiled.py::test_a_step[whole step], "
        "tests/unit/probe/test_wire.py | the graph tells no types |"
    )


def test_a_run_without_a_summary_is_no_result() -> None:
    with pytest.raises(ValueError, match="Segmentation fault"):
        read(PAIR, "3.10.13", "Fatal Python error: Segmentation fault")


def test_an_interpreter_that_is_not_here_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("GPUWATCH_PYTHON_310", raising=False)
    with pytest.raises(Missing, match="GPUWATCH_PYTHON_310"):
        environment_of(PAIR, tmp_path)
