"""Two threads that train at once: one of them is followed, the steps of the other do not count."""

from collections.abc import Callable, Iterator
from threading import Thread

import pytest
import torch

from gpuwatch.probe.wire import marks
from tests.unit.probe.held_clock import (
    Model,
    Rows,
    SlowSGD,
    Watched,
    loader_of,
    phases_ms,
    watched,
)


@pytest.fixture
def run() -> Iterator[Watched]:
    with watched() as one:
        yield one


def training(run: Watched) -> Callable[[], None]:
    """One step of a model of its own."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    (batch,) = (Rows(run.clock, 0, 1)[0][None],)

    def step() -> None:
        model(batch).backward()
        optimizer.step()

    return step


def elsewhere(step: Callable[[], object]) -> None:
    """Take a step on another thread."""
    thread = Thread(target=step)
    thread.start()
    thread.join()


def test_from_its_first_backward_on_a_thread_is_followed(run: Watched) -> None:
    ours, theirs = training(run), training(run)
    for _ in range(4):
        ours()
        elsewhere(theirs)
    steps = run.steps()
    assert len(steps) == 3
    assert all(phases_ms(step)["backward"] == 9 for step in steps)


class Interrupted(torch.utils.data.Dataset[torch.Tensor]):
    """Somebody else trains while its row is loaded."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = meanwhile

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        elsewhere(self._meanwhile)
        return torch.ones(3)


def test_a_fetch_that_lost_the_timeline_meanwhile_does_not_end_in_it(run: Watched) -> None:
    batches = iter(torch.utils.data.DataLoader(Interrupted(training(run))))
    next(batches)
    kinds = [kind for _, kind, _, _ in run.marks()]
    assert kinds[-1] == marks.OPTIMIZER_LEAVE
    assert marks.FETCH_LEAVE not in kinds


def test_the_next_to_train_takes_the_timeline_from_its_prefetcher(run: Watched) -> None:
    """Trials in threads, each with a loader that another thread reads ahead: of the second only its
    fetches were seen, and it was called inference."""
    for _ in range(2):
        ours = training(run)

        def trial(step: Callable[[], None] = ours) -> None:
            elsewhere(lambda: next(iter(loader_of(run))))
            for _ in range(4):
                step()

        elsewhere(trial)
        run.recorder.lose_owner()  # as the publisher does once the thread has ended
        kinds = [kind for _, kind, _, _ in run.marks()]
        assert kinds.count(marks.BACKWARD_ENTER) == 4
