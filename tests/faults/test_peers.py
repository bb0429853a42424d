"""Where each of the peers fails its user (the design's list), as far as no other test has it."""

from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

import probe
from gpuwatch.probe import api
from gpuwatch.probe.wire import page
from tests.faults.training import TRAIN, bare, resident_bytes
from tests.processes.monitored import hello_of, started, word_of

MOST_GROWTH_BYTES = 16_000_000


def test_an_iterator_keeps_its_length_and_its_class() -> None:
    """A generator in the place of `DataLoader.__iter__` has neither."""
    rows: DataLoader[int] = DataLoader(range(8), batch_size=2)  # type: ignore[arg-type]
    before = type(iter(rows))
    probe.install()
    try:
        batches = iter(rows)
        assert (len(batches), type(batches)) == (4, before)
        next(batches)
        assert len(batches) == 4
    finally:
        while api._installed is not None:
            probe.uninstall()


def test_random_numbers_are_the_users() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    probe.install()
    try:
        for _ in probe.wrap([1, 2]):
            with probe.phase("named"):
                probe.step()
        assert torch.equal(torch.rand(4), expected)
    finally:
        while api._installed is not None:
            probe.uninstall()


@pytest.mark.fault
def test_200_000_batches_outside_of_steps_are_kept_nowhere(tmp_path: Path) -> None:
    script = (
        TRAIN
        + """
    digest = train()
    batches = DataLoader(range(1_000), batch_size=1)
    for _ in batches:
        pass
    print(digest, flush=True)
    sys.stdin.readline()
    for _ in range(200):
        for _ in batches:
            pass
    print("fetched", flush=True)
    sys.stdin.readline()
    """
    )
    with started(script, tmp_path) as run:
        assert run.line() == bare()
        before = resident_bytes(run.pid)
        run.send()
        assert run.line() == "fetched"
        assert resident_bytes(run.pid) - before < MOST_GROWTH_BYTES
        assert hello_of(run.pid).fault is None
        # Nobody watched, so the count is an estimate (2,337 on a busy machine); they are no steps.
        least = 0 if word_of(run.pid, page.WORD_LOST_MARKS) else 59
        assert least <= word_of(run.pid, page.WORD_STEPS) < 200_000 / 50
        run.send()
        assert run.finish() == (0, "", "")
