"""Loops of every shape, by the real hooks: data 4, forward 6, backward 9, optimizer 3 ms."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch
from torch.utils.data import DataLoader

from tests.unit.probe.held_clock import (
    PLAIN,
    Model,
    Rows,
    SlowSGD,
    Watched,
    loader_of,
    partition_ns,
    phases_ms,
    steady,
    watched,
)


@pytest.fixture
def run() -> Iterator[Watched]:
    with watched() as one:
        yield one


class SlowFile:
    """Each write takes so long."""

    def __init__(self, run: Watched, write_ms: float) -> None:
        self.run, self.write_ms = run, write_ms

    def write(self, data: bytes) -> int:
        self.run.clock.work(self.write_ms)
        return len(data)

    def flush(self) -> None: ...


def test_plain_loop_with_a_gap_after_backward(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for batch in loader_of(run):
        model(batch).backward()
        run.clock.work(2)
        optimizer.step()
    assert steady(run) == [{**PLAIN, "other": 2}] * 9


def test_first_fetch_of_an_iterator_is_start_up_not_data_wait(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for _ in range(2):
        for batch in loader_of(run, rows=4):
            model(batch).backward()
            optimizer.step()
    first, second, third, last = run.steps()
    rest = {"forward": 6, "backward": 9, "optimizer": 3}
    assert phases_ms(first) == {"startup": 4, **rest}
    assert phases_ms(second) == PLAIN
    assert phases_ms(third) == {"startup": 4, **rest}
    assert phases_ms(last) == PLAIN


def test_gradient_accumulation_is_one_step(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(loader_of(run)):
        model(batch).backward()
        if index % 2:
            optimizer.step()
    assert steady(run) == [{"data": 8, "forward": 12, "backward": 18, "optimizer": 3}] * 4


def test_accumulation_that_fetches_all_micro_batches_first(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    fetched = iter(loader_of(run))
    for _ in range(5):
        for batch in [next(fetched), next(fetched)]:
            model(batch).backward()
        optimizer.step()
    assert steady(run) == [{"data": 8, "forward": 12, "backward": 18, "optimizer": 3}] * 3


def test_closure_runs_forward_and_backward_inside_the_optimizer(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for batch in loader_of(run):

        def closure(batch: torch.Tensor = batch) -> torch.Tensor:
            loss: torch.Tensor = model(batch)
            loss.backward()
            return loss

        optimizer.step(closure)
    assert steady(run) == [PLAIN] * 9


def test_lbfgs_calls_its_closure_many_times(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3, tolerance_grad=0)
    for batch in loader_of(run):

        def closure(batch: torch.Tensor = batch) -> torch.Tensor:
            optimizer.zero_grad()
            loss: torch.Tensor = (model(batch) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
    steps = run.steps()
    assert len(steps) == 10
    assert all(step.optimizer_steps == 1 for step in steps)
    assert all(step.backward_ns == 9_000_000 * step.backwards for step in steps)
    assert max(step.backwards for step in steps) > 1


def test_two_optimizers_of_a_gan_are_one_step(run: Watched) -> None:
    one, two = Model(run.clock), Model(run.clock)
    first, second = SlowSGD(one, run.clock), SlowSGD(two, run.clock)
    for batch in loader_of(run):
        one(batch).backward()
        first.step()
        two(batch).backward()
        second.step()
    assert steady(run) == [{"data": 4, "forward": 12, "backward": 18, "optimizer": 6}] * 9


def test_two_zipped_loaders(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for batch, _ in zip(loader_of(run), loader_of(run), strict=True):
        model(batch).backward()
        optimizer.step()
    assert steady(run) == [{**PLAIN, "data": 8}] * 9


def test_no_loader_and_no_wrap_puts_data_into_forward(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    rows = Rows(run.clock)
    for _ in range(6):
        batch = torch.stack([rows[0], rows[1]])
        model(batch).backward()
        optimizer.step()
    assert steady(run) == [{"forward": 10, "backward": 9, "optimizer": 3}] * 4


@pytest.mark.parametrize("is_zipped", [True, False])
def test_no_loader_with_a_checkpoint_between_steps_still_adds_up(
    run: Watched, is_zipped: bool
) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    batch = torch.ones(2, 3)

    for _ in range(4):
        model(batch).backward()
        optimizer.step()
        torch.save({}, cast(Any, SlowFile(run, 1)), _use_new_zipfile_serialization=is_zipped)
    steps = run.steps()[1:]
    assert len(steps) > 1
    for step in steps:
        assert step.checkpoint_ns > 0
        assert phases_ms(step)["forward"] == 6


def test_early_break_starts_a_new_iterator_and_the_steps_go_on(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for _ in range(3):
        for index, batch in enumerate(loader_of(run)):
            model(batch).backward()
            optimizer.step()
            if index == 2:
                break
    steps = run.steps()
    assert [step.number for step in steps] == list(range(1, 9))
    assert [step.startup_ns > 0 for step in steps] == [True, False, False] * 2 + [True, False]


@pytest.mark.parametrize("where", ["forward", "backward", "optimizer"])
def test_an_exception_in_a_step_spoils_that_step_alone(run: Watched, where: str) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(loader_of(run)):
        try:
            if index == 4 and where == "forward":
                raise RuntimeError(where)
            loss = model(batch)
            if index == 4 and where == "backward":
                loss.sum().backward(torch.ones(7))
            loss.backward()
            if index == 4 and where == "optimizer":
                optimizer.step(closure=lambda: [][1])
            optimizer.step()
        except (RuntimeError, IndexError):
            continue
    phases = steady(run)
    assert phases.count(PLAIN) == 7
    assert len(phases) == 8
    assert all(partition_ns(step) for step in run.steps())


def test_skipped_optimizer_of_a_grad_scaler_merges_two_steps(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(loader_of(run)):
        model(batch).backward()
        if index != 4:
            optimizer.step()
    phases = steady(run)
    assert len(phases) == 8
    assert {"data": 8, "forward": 12, "backward": 18, "optimizer": 3} in phases


def test_without_an_optimizer_each_backward_becomes_a_step_after_patience(run: Watched) -> None:
    model = Model(run.clock)
    for batch in loader_of(run, rows=80):
        model(batch).backward()
    steps = run.steps()
    assert steps[0].count == 16
    assert [step.count for step in steps[1:]] == [1] * 24
    assert phases_ms(steps[-1]) == {"data": 4, "forward": 6, "backward": 9}


def test_long_steps_without_an_optimizer_need_less_patience(run: Watched) -> None:
    """Sixteen steps of half a second were eight seconds without a verdict."""
    model = Model(run.clock)
    for batch in loader_of(run, rows=40):
        run.clock.work(480)
        model(batch).backward()
    assert [step.count for step in run.steps()] == [7, *[1] * 13]


def test_long_micro_steps_are_learnt_with_the_first_optimizer_step(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(loader_of(run, rows=80)):
        run.clock.work(480)
        model(batch).backward()
        if index % 10 == 9:
            optimizer.step()
    steps = run.steps()
    assert [step.backwards for step in steps if step.optimizer_steps][-2:] == [10, 10]
    assert all(step.optimizer_steps for step in steps[-3:])


def test_without_an_optimizer_and_a_loader_a_step_is_backward_to_backward(run: Watched) -> None:
    model = Model(run.clock)
    for _ in range(40):
        run.clock.work(2)
        model(torch.ones(3)).backward()
        run.clock.work(1)
    steps = run.steps()
    assert [step.count for step in steps] == [16, *[1] * 23]
    assert phases_ms(steps[-1]) == {"forward": 1 + 2 + 6, "backward": 9}
    assert run.counted().steps == 39


def test_a_checkpoint_of_such_a_loop_is_in_the_step_that_it_ends(run: Watched) -> None:
    """A step of 198 ms had a checkpoint of 1.5 s, and the next 2.7 s in phases of 1.2 (an H200)."""
    model = Model(run.clock)

    for index in range(40):
        model(torch.ones(3)).backward()
        run.clock.work(2)
        if index % 10 == 9:
            torch.save({}, cast(Any, SlowFile(run, 50)))
        run.clock.work(1)
    rows = [step for step in run.steps() if step.count == 1]
    saved = [step for step in rows if step.checkpoint_ns]
    assert len(saved) == 2
    for step in rows:
        assert partition_ns(step) == step.end_ns - step.start_ns
    for step in saved:
        assert phases_ms(step)["other"] == 2


def test_accumulation_without_a_loader_is_learnt(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for index in range(240):
        model(torch.ones(3)).backward()
        if index % 24 == 23:
            optimizer.step()
    assert [step.backwards for step in run.steps()][-3:] == [24, 24, 24]


def test_accumulation_beyond_patience_is_learnt(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(loader_of(run, rows=240)):
        model(batch).backward()
        if index % 24 == 23:
            optimizer.step()
    assert [step.backwards for step in run.steps()][-3:] == [24, 24, 24]


def test_inference_goes_from_fetch_to_fetch(run: Watched) -> None:
    model = Model(run.clock)
    with torch.no_grad():
        for batch in loader_of(run):
            model(batch)
    steps = run.steps()
    assert all(step.inference for step in steps)
    assert [phases_ms(step) for step in steps][1:] == [{"data": 4, "forward": 6}] * 9


def test_batches_that_no_backward_follows_are_steps_behind_the_first_sixteen(run: Watched) -> None:
    model = Model(run.clock)
    for batch in loader_of(run, rows=80):
        torch.autograd.grad(model(batch), model.weight)
    assert [step.count for step in run.steps()] == [16, *[1] * 24]
    assert run.counted().steps == run.timeline.steps == 40


def test_a_sanity_check_before_training_does_not_make_it_inference(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    with torch.no_grad():
        for batch in loader_of(run, rows=6):
            model(batch)
    for batch in loader_of(run):
        model(batch).backward()
        optimizer.step()
    trained = [step for step in run.steps() if not step.inference]
    assert [phases_ms(step) for step in trained[1:]] == [PLAIN] * 9


def test_samples_are_the_leading_dimension_of_the_batches(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for batch in DataLoader(Rows(run.clock), batch_size=4):
        model(batch).backward()
        optimizer.step()
    assert [step.samples for step in run.steps()] == [4] * 5


def test_optimizer_in_backward_is_counted_and_has_no_phase(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.weight.register_post_accumulate_grad_hook(lambda _: optimizer.step())
    for batch in loader_of(run):
        model(batch).backward()
    steps = run.steps()
    assert [step.optimizer_steps for step in steps] == [1] * 10
    assert [phases_ms(step) for step in steps[1:]] == [{"data": 4, "forward": 6, "backward": 9}] * 9


def test_the_probe_counts_the_steps_that_the_monitor_makes_of_the_marks(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for _ in range(3):
        for at, batch in enumerate(loader_of(run, rows=20)):
            model(batch).backward()
            if at % 2:
                optimizer.step()
    assert run.counted().steps == run.timeline.steps == 15


def test_without_a_loader_they_are_counted_at_the_next_backward(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for _ in range(10):
        model(torch.ones(3)).backward()
        optimizer.step()
    assert run.counted().steps == run.timeline.steps == 9


def test_without_a_backward_a_step_is_update_to_update(run: Watched) -> None:
    """MAML takes its gradients by `torch.autograd.grad`: "no step seen yet" was shown for ever."""
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for _ in range(10):
        run.clock.work(2)
        model(torch.ones(3))
        optimizer.step()
    first, *others = [phases_ms(step) for step in run.steps()]
    assert first == {"optimizer": 3}, "it began before its first mark"
    assert others == [{"forward": 8, "optimizer": 3}] * 8
    assert run.counted().steps == run.timeline.steps == 9


def test_a_loader_shows_what_its_batches_look_like(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    rows = loader_of(run, rows=40)
    for _ in range(6):
        for batch in rows:
            model(batch).backward()
            optimizer.step()
    run.steps()
    (loader,) = run.timeline.loaders.all()
    assert loader.batch_bytes == 2 * 3 * 4
    assert (loader.batch_tensors, loader.batch_device, loader.pinned) == (1, "cpu", None)
