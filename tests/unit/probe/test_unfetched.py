"""Steps that no fetch ends: their batch came earlier, came ahead, or never comes here."""

from collections.abc import Iterator

import pytest
from torch.utils.data import DataLoader

from tests.unit.probe.held_clock import Model, Rows, SlowSGD, Watched, phases_ms, watched

UPDATE: dict[str, float] = {"forward": 6, "backward": 9, "optimizer": 3}


@pytest.fixture
def run() -> Iterator[Watched]:
    with watched() as one:
        yield one


def test_an_iterator_that_is_made_and_never_fetched_from_hides_no_steps(run: Watched) -> None:
    """Accelerate's dispatcher makes one on every rank, and fetches on the first alone."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    unused = iter(DataLoader(Rows(run.clock), batch_size=2))
    batch = model.weight.detach()
    for _ in range(4):
        model(batch).backward()
        optimizer.step()
    steps = run.steps()
    assert [phases_ms(step) for step in steps[1:]] == [UPDATE] * 2
    assert [step.number for step in steps] == [1, 2, 3]
    del unused


def test_a_batch_that_is_used_for_ever_is_many_steps(run: Watched) -> None:
    """16 updates on one batch may be a step of a strange loop; from there on each is one."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    batch = next(iter(DataLoader(Rows(run.clock), batch_size=2)))
    for _ in range(20):
        model(batch).backward()
        optimizer.step()
    steps = run.steps()
    assert [step.count for step in steps] == [16, 1, 1, 1]
    assert [phases_ms(step) for step in steps[1:]] == [UPDATE] * 3
    assert steps[-1].number == 19


def test_updates_on_one_batch_are_one_step_while_batches_come(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for batch in DataLoader(Rows(run.clock, rows=20), batch_size=2):
        for _ in range(5):
            model(batch).backward()
            optimizer.step()
    assert [step.optimizer_steps for step in run.steps()] == [5] * 10


@pytest.mark.parametrize("ahead", [True, False])
def test_the_last_step_is_reported_as_the_run_ends(run: Watched, ahead: bool) -> None:
    """Accelerate and Lightning fetch one batch ahead: nothing is fetched behind the last step."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    batches = iter(DataLoader(Rows(run.clock, rows=8), batch_size=2))
    batch = next(batches)
    while batch is not None:
        following = next(batches, None) if ahead else None
        model(batch).backward()
        optimizer.step()
        batch = following if ahead else next(batches, None)
    reported = run.steps()
    assert len(reported) == (3 if ahead else 4)
    run.recorder.end()
    last = run.steps()
    assert [phases_ms(step) for step in last] == ([UPDATE] if ahead else [])


def test_a_run_that_ends_between_backward_and_optimizer_shows_no_more_steps(run: Watched) -> None:
    model = Model(run.clock)
    for batch in DataLoader(Rows(run.clock, rows=2), batch_size=2):
        model(batch).backward()
    assert run.steps() == []
    run.recorder.end()
    assert run.steps() == []
