"""What `gpuwatch lab` changes in a DataLoader, and where it leaves it as it is."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from gpuwatch.probe.lab import Change
from gpuwatch.probe.recorder import Recorder

LOADERS: Any = sys.modules["torch.utils.data.dataloader"]
ROWS: Any = list(range(8))


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """The loader's methods are put back."""
    failures: list[Exception] = []
    for name in ("_get_iterator", "__init__"):
        monkeypatch.setattr(DataLoader, name, getattr(DataLoader, name))
    yield Recorder(lambda kind: True, failures.append)
    assert failures == []


def noted(recorder: Recorder) -> list[tuple[str, bool, str]]:
    """Change, whether it was made, and why not."""
    recorder.notes.turn()
    return [(row[2], bool(row[3]), row[4]) for row in recorder.notes.to_send(first=True)]


def test_batches_are_made_larger(recorder: Recorder) -> None:
    Change(recorder, {"batch": 2.0})._watch_loaders()
    assert [len(batch) for batch in DataLoader(ROWS, 2)] == [4, 4]
    assert noted(recorder) == [("batch=2x", True, "")]


def test_batches_of_a_sampler_of_the_programs_are_left_alone(recorder: Recorder) -> None:
    Change(recorder, {"batch": 2.0})._watch_loaders()
    sampler = BatchSampler(SequentialSampler(ROWS), 2, drop_last=False)
    assert len(list(DataLoader(ROWS, 1, None, None, sampler))) == 4
    assert len(list(DataLoader(ROWS, batch_sampler=sampler))) == 4
    assert noted(recorder) == [("batch=2x", False, "the program makes its batches itself")]


def test_a_loader_with_a_timeout_keeps_its_workers(recorder: Recorder) -> None:
    Change(recorder, {"workers": 0})._watch_loaders()
    assert len(list(DataLoader(ROWS, 4, num_workers=1, timeout=50))) == 2
    (made,) = noted(recorder)
    assert made[:2] == ("workers=0", False)
    assert "timeout" in made[2]
