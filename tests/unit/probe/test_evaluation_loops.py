"""Evaluations in loops of every shape, by the real hooks."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing.process import BaseProcess

import pytest
import torch
from torch.utils.data import DataLoader

from gpuwatch.probe.wire.marks import PHASE_ENTER, PHASE_LEAVE
from gpuwatch.tui.sources.marks.loaders import DescribedLoaders
from tests.unit.probe.held_clock import (
    PLAIN,
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


def train(
    run: Watched, validation: DataLoader[torch.Tensor], no_grad_around_the_loader: bool
) -> None:
    """Ten steps, with an evaluation after each."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for batch in loader_of(run):
        model(batch).backward()
        optimizer.step()
        with torch.set_grad_enabled(not no_grad_around_the_loader):
            for held_out in validation:
                with torch.no_grad():
                    model(held_out)


@pytest.mark.parametrize("no_grad_around_the_loader", [True, False])
def test_nested_evaluation_is_named(run: Watched, no_grad_around_the_loader: bool) -> None:
    validation: DataLoader[torch.Tensor] = loader_of(run, rows=4, ms=6)
    train(run, validation, no_grad_around_the_loader)
    steps = run.steps()[1:]
    assert [phases_ms(step) for step in steps] == [{**PLAIN, "evaluation": 24}] * 9
    assert [step.evaluation_data_ns for step in steps] == [12_000_000] * 9, "two batches of 6 ms"
    assert [loader.evaluation for loader in run.timeline.loaders.all()] == [False, True]


@pytest.mark.parametrize("no_grad_around_the_loader", [True, False])
def test_of_an_evaluation_the_start_of_its_workers_is_known(
    run: Watched, no_grad_around_the_loader: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where no gradients are needed around it, as it begins, their end as well."""
    monkeypatch.setattr(DescribedLoaders, "starts_workers", lambda self, iterator: iterator != 0)

    class Sampler(torch.utils.data.Sampler[int]):
        def __iter__(self) -> Iterator[int]:
            yield from range(4)
            run.clock.work(5)  # as long as the workers' end takes

    validation: DataLoader[torch.Tensor] = DataLoader(
        Rows(run.clock, 6, 4), batch_size=2, sampler=Sampler()
    )
    train(run, validation, no_grad_around_the_loader)
    steps = run.steps()[1:]
    evaluated = 29 if no_grad_around_the_loader else 24
    assert [phases_ms(step)["evaluation"] for step in steps] == [evaluated] * 9
    known = 5 if no_grad_around_the_loader else 0  # not the first batch, which takes 6
    assert [step.evaluation_startup_ns for step in steps] == [known * 1_000_000] * 9
    assert [loader.evaluation for loader in run.timeline.loaders.all()] == [False, True]


@pytest.mark.parametrize("no_grad_around_the_loader", [True, False])
def test_workers_that_are_started_for_an_evaluation_are_a_part_of_it(
    run: Watched, no_grad_around_the_loader: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real one, which is forked between two marks of one iterator's beginning: that was taken for
    the training's start."""
    starts = BaseProcess.start

    def start(process: BaseProcess) -> None:
        run.clock.work(7)
        starts(process)

    monkeypatch.setattr(BaseProcess, "start", start)
    validation: DataLoader[torch.Tensor] = DataLoader(
        Rows(run.clock, 0, 4), batch_size=2, num_workers=1
    )
    train(run, validation, no_grad_around_the_loader)
    for step in run.steps()[1:]:
        assert phases_ms(step)["evaluation"] == 2 * 6 + 7
        assert (step.startup_ns, step.evaluation_startup_ns) == (0, 7_000_000)


def test_a_loader_of_the_evaluation_ends_no_step_of_a_loop_that_has_none(run: Watched) -> None:
    """`get_batch` trains, a DataLoader validates after every tenth step: the next steps are not
    merged until the one that fetches again."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for index in range(40):
        model(torch.ones(3)).backward()
        optimizer.step()
        if index % 10 == 9:
            with torch.no_grad():
                for batch in loader_of(run, rows=4):
                    model(batch)
    steps = run.steps()
    assert [step.count for step in steps] == [1] * len(steps)
    assert len(steps) >= 39
    assert sum(step.evaluation_ns > 0 for step in steps) >= 3
    assert all(loader.evaluation for loader in run.timeline.loaders.all())


def test_the_end_of_an_evaluation_before_the_training_is_no_step(run: Watched) -> None:
    """Its last fetch brings no batch; counted as one, the page was a step ahead of the monitor, and
    how long the first training step had lasted was not known. The step before it has ended."""
    model = Model(run.clock)
    with torch.no_grad():
        for batch in loader_of(run, rows=20):
            model(batch)
    assert run.counted().steps == run.timeline.steps == 10
    for batch in loader_of(run):
        assert run.counted().steps == run.timeline.steps == 10
        model(batch)
        break


@contextmanager
def named(run: Watched) -> Iterator[None]:
    """As `probe.phase("evaluation")` does."""
    recorder = run.recorder
    recorder.mark(PHASE_ENTER, "evaluation", sight=recorder.name)
    yield
    recorder.mark(PHASE_LEAVE, "evaluation", sight=recorder.name)


def test_a_named_evaluation_that_nobody_reads_to_its_end_hides_one_step(run: Watched) -> None:
    """A generator of predictions, of which the first is looked at: the rest of the training was one
    evaluation."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)

    def predictions() -> Iterator[torch.Tensor]:
        with named(run):
            for held_out in loader_of(run):
                yield model(held_out)

    kept = predictions()
    for index, batch in enumerate(loader_of(run, rows=40)):
        model(batch).backward()
        optimizer.step()
        if index == 9:
            next(kept)
    steps = run.steps()
    assert (run.timeline.unended, run.timeline.open().user_phase) == (1, None)
    assert [phases_ms(step) for step in (*steps[1:9], *steps[10:])] == [PLAIN] * 17
    looked_at = phases_ms(steps[9])  # its own update, and behind the look the whole of a step
    assert looked_at["evaluation"] + looked_at["optimizer"] == 3 + 10 + sum(PLAIN.values())


@pytest.mark.parametrize("is_same_loader", [True, False])
def test_a_named_evaluation_may_learn_something(run: Watched, is_same_loader: bool) -> None:
    """A layer over features as of a self-supervised net, or what adapts to each batch."""
    model, layer = Model(run.clock), Model(run.clock)
    optimizer, adapts = SlowSGD(model, run.clock), SlowSGD(layer, run.clock)
    training = loader_of(run, rows=4)
    for _ in range(3):
        for batch in training:
            model(batch).backward()
            optimizer.step()
        with named(run):
            for batch in training if is_same_loader else loader_of(run, rows=4):
                layer(batch).backward()
                adapts.step()
    evaluated = [phases_ms(step).get("evaluation", 0) for step in run.steps()]
    assert evaluated == [0, 0, 44, 0, 44, 0]
    assert run.timeline.unended == 0


def evaluate_in_part(model: Model, validation: DataLoader[torch.Tensor]) -> None:
    """Ten batches of more, with gradients off around the forward alone: `max_eval_steps`."""
    for index, held_out in enumerate(validation):
        with torch.no_grad():
            model(held_out)
        if index == 9:
            break


IN_PART_MS = 10 * (40 + 6)


def test_an_evaluation_that_is_left_early_is_no_wait_for_data(run: Watched) -> None:
    model, validation = Model(run.clock), loader_of(run, rows=60, ms=40)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(loader_of(run, rows=60)):
        model(batch).backward()
        optimizer.step()
        if index % 5 == 4:
            evaluate_in_part(model, validation)
    steps = run.steps()[1:]
    evaluated = [{**PLAIN, "evaluation": IN_PART_MS} if at % 5 == 4 else PLAIN for at in range(29)]
    assert [phases_ms(step) for step in steps] == evaluated
    assert {(step.samples, step.fetches, step.data_max_ns) for step in steps} == {(2, 1, 4_000_000)}
    assert [loader.evaluation for loader in run.timeline.loaders.all()] == [False, True]


def test_at_the_top_of_the_loop_the_backward_is_of_the_batch_before(run: Watched) -> None:
    """What follows the evaluation's last batch is one phase with the training's forward."""
    model, validation = Model(run.clock), loader_of(run, rows=60, ms=40)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(loader_of(run, rows=60)):
        if index % 5 == 4:
            evaluate_in_part(model, validation)
        model(batch).backward()
        optimizer.step()
    with_evaluation = {**PLAIN, "evaluation": IN_PART_MS - 6, "forward": 12}
    steps = run.steps()[1:]
    assert [phases_ms(step) for step in steps] == [
        with_evaluation if at % 5 == 3 else PLAIN for at in range(29)
    ]
    assert {step.samples for step in steps} == {2}
    assert [loader.evaluation for loader in run.timeline.loaders.all()] == [False, True]


def test_behind_an_epoch_the_next_one_may_have_its_iterators_address(run: Watched) -> None:
    model, validation = Model(run.clock), loader_of(run, rows=60, ms=40)
    optimizer = SlowSGD(model, run.clock)
    training = loader_of(run, rows=12)
    for _epoch in range(4):
        for batch in training:
            model(batch).backward()
            optimizer.step()
        evaluate_in_part(model, validation)
    steps = run.steps()
    begun = {**PLAIN, "startup": 4, "evaluation": IN_PART_MS}
    del begun["data"]
    assert [phases_ms(step) for step in steps[6::6]] == [begun] * 3
    assert sum(step.evaluation_ns > 0 for step in steps) == 3
    assert {step.samples for step in steps} == {2}
    assert {loader.evaluation for loader in run.timeline.loaders.all()} == {False, True}


def test_beside_a_training_without_a_loader_it_is_one_too(run: Watched) -> None:
    model, validation = Model(run.clock), loader_of(run, rows=60, ms=40)
    optimizer = SlowSGD(model, run.clock)
    for index in range(20):
        model(torch.ones(3)).backward()
        optimizer.step()
        if index % 5 == 4:
            evaluate_in_part(model, validation)
    steps = run.steps()
    assert [step.count for step in steps] == [1] * 20
    assert sum(step.evaluation_ns for step in steps) == 3 * (IN_PART_MS - 6) * 1_000_000
    assert not any(step.data_ns or step.samples for step in steps)
    assert all(loader.evaluation for loader in run.timeline.loaders.all())


@pytest.mark.parametrize("first", [True, False])
def test_batches_that_each_step_takes_several_of_are_the_trainings(
    run: Watched, first: bool
) -> None:
    """Unlabelled ones, in front of the labelled one or behind it, made anew in each epoch."""
    model, unlabelled = Model(run.clock), loader_of(run, rows=36)
    optimizer = SlowSGD(model, run.clock)
    labelled = loader_of(run, rows=12)
    for _epoch in range(3):
        others, batches = iter(unlabelled), iter(labelled)
        for _ in range(6):
            if first:
                list(islice(others, 3))
            batch = next(batches)
            if not first:
                list(islice(others, 3))
            model(batch).backward()
            optimizer.step()
    steps = run.steps()
    assert not any(step.evaluation_ns for step in steps)
    assert {step.samples for step in steps} == {8}


def test_gradients_that_are_on_around_the_forward_alone_make_no_evaluation(run: Watched) -> None:
    """`torch.set_grad_enabled(False)` at a notebook's top: the start of each epoch was one."""
    model, training = Model(run.clock), loader_of(run, rows=6)
    optimizer = SlowSGD(model, run.clock)
    validation = loader_of(run, rows=4)
    with torch.no_grad():
        for _epoch in range(4):
            for batch in training:
                with torch.enable_grad():
                    model(batch).backward()
                optimizer.step()
            for held_out in validation:
                model(held_out)
    steps = run.steps()
    begun = {"startup": 4, "forward": 6, "backward": 9, "optimizer": 3}
    assert [phases_ms(step) for step in steps[3:]] == [
        {**begun, "evaluation": 20},
        PLAIN,
        PLAIN,
    ] * 3
    assert {(step.samples, step.fetches) for step in steps} == {(2, 1)}
    assert {loader.evaluation for loader in run.timeline.loaders.all()} == {False, True}


def test_batches_that_are_taken_ahead_are_no_evaluation(run: Watched) -> None:
    """A replay's, before the step's own in each fifth step: nothing is computed between them."""
    model, replay = Model(run.clock), loader_of(run, rows=60, ms=40)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(loader_of(run, rows=40)):
        held = list(islice(replay, 4)) if index % 5 == 4 else []
        for one in (*held, batch):
            model(one).backward()
        optimizer.step()
    assert not any(step.evaluation_ns for step in run.steps())
    assert not any(loader.evaluation for loader in run.timeline.loaders.all())


def test_a_named_evaluation_that_updates_each_time_stays_whole(run: Watched) -> None:
    """A linear probe, with batches of the training's own endless iterator."""
    model, head = Model(run.clock), Model(run.clock)
    optimizer, adapts = SlowSGD(model, run.clock), SlowSGD(head, run.clock)
    endless = iter(loader_of(run, rows=80))
    for index in range(12):
        model(next(endless)).backward()
        optimizer.step()
        if index % 4 == 3:
            with named(run):
                for _ in range(5):
                    head(next(endless)).backward()
                    adapts.step()
    steps = run.steps()
    # The first, of which nobody knows yet that it ends, is torn into five steps.
    assert [phases_ms(step).get("evaluation", 0) for step in steps[9:]] == [0, 0, 110, 0, 0, 0]
    assert run.timeline.unended == 0
