"""Workers that are started for an evaluation are no start of the training's, by the real hooks."""

from collections.abc import Iterator
from itertools import islice
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from gpuwatch.probe.wire import marks
from gpuwatch.tui.sources.marks.merging import merge_steps
from gpuwatch.tui.steps import Step
from tests.unit.probe.device_runs import on_a_device, train
from tests.unit.probe.held_clock import MS, Model, Rows, SlowSGD, Watched, loader_of, watched

FORK_MS = 7


def starts_slowly(monkeypatch: pytest.MonkeyPatch, clock: Any, fork_ms: float) -> None:
    starts = BaseProcess.start

    def start(process: BaseProcess) -> None:
        clock.work(fork_ms)
        starts(process)

    monkeypatch.setattr(BaseProcess, "start", start)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    with watched() as one:
        starts_slowly(monkeypatch, one.clock, FORK_MS)
        yield one


def held_out(run: Watched, rows: int = 4) -> DataLoader[torch.Tensor]:
    return DataLoader(Rows(run.clock, 0, rows), batch_size=2, num_workers=1)


def starts_nothing(steps: list[Step]) -> bool:
    return bool(steps) and not any(step.startup_ns for step in steps)


def test_an_evaluation_that_breaks_off(run: Watched) -> None:
    model, held = Model(run.clock), held_out(run, rows=20)
    optimizer = SlowSGD(model, run.clock)
    for batch in loader_of(run, rows=12):
        model(batch).backward()
        optimizer.step()
        with torch.no_grad():
            for at, one in enumerate(held):
                if at == 1:
                    break
                model(one)
    assert starts_nothing(run.steps()[1:])


def test_a_step_that_is_marked_behind_its_evaluation(run: Watched) -> None:
    model, held = Model(run.clock), held_out(run)
    optimizer = SlowSGD(model, run.clock)
    for batch in loader_of(run, rows=12):
        model(batch).backward()
        optimizer.step()
        with torch.no_grad():
            for one in held:
                model(one)
        run.recorder.mark(marks.STEP)
    assert starts_nothing(run.steps()[2:])


def test_an_evaluation_between_two_batches_of_a_step(run: Watched) -> None:
    model, held = Model(run.clock), held_out(run)
    optimizer = SlowSGD(model, run.clock)
    for at, batch in enumerate(loader_of(run, rows=24)):
        model(batch).backward()
        if at % 2:
            optimizer.step()
        elif at:
            with torch.no_grad():
                for one in held:
                    model(one)
    assert starts_nothing(run.steps()[1:])


def test_two_held_out_loaders_side_by_side(run: Watched) -> None:
    model, first, second = Model(run.clock), held_out(run), held_out(run)
    optimizer = SlowSGD(model, run.clock)
    for batch in loader_of(run, rows=12):
        model(batch).backward()
        optimizer.step()
        with torch.no_grad():
            for one, _ in zip(first, second, strict=True):
                model(one)
    assert starts_nothing(run.steps()[1:])


def test_an_iterator_made_ahead_does_not_take_the_trainings_place(run: Watched) -> None:
    model, held = Model(run.clock), held_out(run)
    optimizer = SlowSGD(model, run.clock)
    for batch in loader_of(run, rows=12):
        loss = model(batch)
        ahead = iter(held)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for one in ahead:
                model(one)
    assert all(step.evaluation_ns for step in run.steps()[1:])
    assert [loader.evaluation for loader in run.timeline.loaders.all()] == [False, True]


@pytest.mark.parametrize("workers", [0, 1])
def test_time_of_the_users_own_behind_an_iterators_making_is_no_start(
    run: Watched, workers: int
) -> None:
    model, held = Model(run.clock), held_out(run)
    optimizer = SlowSGD(model, run.clock)
    rows = Rows(run.clock, 0 if workers else 4, 6)
    training: DataLoader[torch.Tensor] = DataLoader(rows, batch_size=2, num_workers=workers)
    for _epoch in range(4):
        batches = iter(training)
        run.clock.work(50)
        with torch.no_grad():
            for one in held:
                model(one)
        for batch in batches:
            model(batch).backward()
            optimizer.step()
    known = {step.evaluation_startup_ns for step in run.steps()}
    assert known <= {0, FORK_MS * MS}


def test_on_the_devices_clock_they_are_no_wait_for_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is never short of batches idles while an evaluation's workers are forked: that was
    taken for half of the wait for data."""
    with on_a_device() as run:
        clock, count, done = run.host.clock, 0, []
        starts_slowly(monkeypatch, clock, 300)
        held: DataLoader[torch.Tensor] = DataLoader(Rows(clock, 0, 4), batch_size=2, num_workers=1)

        def after() -> None:
            nonlocal count
            count += 1
            if count % 4 == 0:
                with torch.no_grad():
                    for _ in held:
                        clock.work(2)

        feed = run.host.timeline.feed_all

        def kept(some: Any) -> list[Step]:
            done.extend(feed(some))
            return []

        monkeypatch.setattr(run.host.timeline, "feed_all", kept)
        train(run, 40, wait_ms=10, forward=(2, 15), backward=(2, 20), after=after)
        rows = run.reported()[2:]
    assert any(step.evaluation_startup_ns for step in done)
    # The GPU has nothing left to do behind an evaluation, so that the next wait is exposed.
    evaluations = sum(step.evaluation_ns > 0 for step in done)
    assert sum(row.exposed_ns for row in rows) <= evaluations * 10 * MS


def test_behind_an_epoch_they_are_no_wait_for_data_on_the_devices_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The training's own start lies in the same step: a GPU that never waits was said to wait for
    23 % of the time."""
    with on_a_device() as run:
        clock = run.host.clock
        starts_slowly(monkeypatch, clock, 300)
        held: DataLoader[torch.Tensor] = DataLoader(Rows(clock, 0, 4), batch_size=2, num_workers=1)
        for _epoch in range(6):
            train(run, 8, wait_ms=10, forward=(2, 15), backward=(2, 20))
            with torch.no_grad():
                for _ in held:
                    clock.work(2)
        rows = run.reported()[2:]
    assert any(row.startup_ns for row in rows)
    # The training's own first batch, behind an evaluation, is all that it waits for.
    assert sum(row.exposed_ns for row in rows) <= 6 * 10 * MS


def test_another_loader_of_the_training_may_be_fetched_from_without_gradients(run: Watched) -> None:
    """A teacher's batches: to start its workers for each epoch is the training's, and no evaluation
    takes 20 % of the time."""
    model, teachers = Model(run.clock), held_out(run, rows=8)
    optimizer = SlowSGD(model, run.clock)
    for _epoch in range(4):
        other: Iterator[torch.Tensor] | None = None
        for batch in loader_of(run, rows=8):
            with torch.no_grad():
                other = iter(teachers) if other is None else other
                model(next(other))
            model(batch).backward()
            optimizer.step()
    steps = run.steps()[4:]
    assert any(step.startup_ns >= FORK_MS * MS for step in steps)
    assert not any(step.evaluation_startup_ns for step in steps)


@pytest.mark.parametrize("no_grad_around_the_loader", [True, False])
def test_workers_that_persist_for_a_loader_made_anew_are_started_too(
    run: Watched, no_grad_around_the_loader: bool
) -> None:
    """`val_loader()` in each epoch: its workers persist, and it does not. A start of theirs that
    took as long as all before was called a stall."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for _epoch in range(3):
        for batch in loader_of(run, rows=8):
            model(batch).backward()
            optimizer.step()
        held: DataLoader[torch.Tensor] = DataLoader(
            Rows(run.clock, 0, 4), batch_size=2, num_workers=1, persistent_workers=True
        )
        with torch.set_grad_enabled(not no_grad_around_the_loader):
            for one in held:
                with torch.no_grad():
                    model(one)
    starts = [step.evaluation_startup_ns for step in run.steps() if step.evaluation_ns]
    assert starts == [FORK_MS * MS] * len(starts)
    assert starts


def test_one_start_of_workers_that_persist_is_one(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    held: DataLoader[torch.Tensor] = DataLoader(
        Rows(run.clock, 0, 4), batch_size=2, num_workers=1, persistent_workers=True
    )
    for batch in loader_of(run, rows=16):
        model(batch).backward()
        optimizer.step()
        with torch.no_grad():
            for one in held:
                model(one)
    starts = [step.evaluation_startup_ns for step in run.steps() if step.evaluation_ns]
    assert sum(starts) in (0, FORK_MS * MS)
    assert len(starts) > 4
    assert not any(starts[1:])


def test_merged_steps_share_the_starts_of_each_of_them(run: Watched) -> None:
    """Of two evaluations one starts its workers beside the training's: merged, both seemed to."""
    model, held = Model(run.clock), held_out(run)
    optimizer = SlowSGD(model, run.clock)
    for _epoch in range(3):
        for at, batch in enumerate(loader_of(run, rows=8)):
            model(batch).backward()
            optimizer.step()
            if at in (1, 3):
                with torch.no_grad():
                    for one in held:
                        model(one)
    steps = run.steps()[4:]
    shared = sum(step.shared_startup_ns for step in steps)
    assert 0 < shared < sum(step.evaluation_startup_ns for step in steps)
    (row,) = merge_steps(steps, 1)
    assert row.startup_ns
    assert row.shared_startup_ns == shared


def test_an_evaluation_before_the_steps_backward_that_breaks_off_is_one_each_time(
    run: Watched,
) -> None:
    """At the top of the loop: the backward that follows is of the batch before, and its loader is
    none of the training's."""
    model, held = Model(run.clock), held_out(run, rows=20)
    optimizer = SlowSGD(model, run.clock)
    for at, batch in enumerate(loader_of(run, rows=60)):
        if at % 5 == 0:
            with torch.no_grad():
                for one in islice(held, 2):
                    model(one)
        model(batch).backward()
        optimizer.step()
    steps = [step for step in run.steps()[1:] if step.evaluation_ns]
    assert len(steps) >= 4
    assert starts_nothing(steps)
    assert {step.evaluation_startup_ns for step in steps} == {FORK_MS * MS}
