"""Workers of several threads each, on cores that have no time left."""

import pytest

from gpuwatch.tui.verdict.window import WorkerUse
from tests.unit.verdict.rules.test_input import found
from tests.unit.verdict.windows import waiting


@pytest.mark.parametrize(
    ("other", "delay", "named"),
    [(55.0, 0.4, True), (55.0, 0.0, False), (3.0, 0.4, False), (None, 0.4, False)],
    ids=["four threads of NumPy's each", "cores are free", "one thread", "not known"],
)
def test_threads_of_workers_that_wait_for_each_other(
    other: float | None, delay: float, named: bool
) -> None:
    """Twelve workers whose NumPy had four threads: 2.9x with one (16 cores beside an H200)."""
    use = WorkerUse(2, 60.0, 0.0, 0.0, run_delay=delay, other_threads_percent=other)
    finding = found(waiting(2, 86, workers=use, machine_cpu_percent=50.0))
    assert finding.advice[0].startswith("one thread in each worker") == named
