"""Generated runs and ordinary scripts as they were recorded, judged again: what was right stays so.

Chosen by `demo/evaluate_runs.py OUT --keep tests/recordings/generated`; no recording at all is
allowed.
"""

from pathlib import Path

import pytest

from evaluation.examined import Examined
from evaluation.kept_runs import RESULTS, again, kept_in, recording_of

RECORDINGS = Path(__file__).parents[1] / "recordings" / "generated"
RUNS = kept_in(RECORDINGS / RESULTS)


def test_every_recording_has_its_result() -> None:
    files = {path.name for path in RECORDINGS.glob("*.gpuwatch")}
    assert files == {recording_of(run) for run in RUNS}


@pytest.mark.suite
@pytest.mark.parametrize("run", RUNS, ids=[f"{run.device}-{run.name}" for run in RUNS])
def test_what_was_right_stays_right(run: Examined) -> None:
    now = again(run, RECORDINGS)
    assert now.right >= run.right, f"{run.verdict} is now {now.verdict}"
    assert now.false_bound <= run.false_bound, f"{now.verdict}: nothing is to be changed there"
