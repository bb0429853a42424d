"""What a `torch.save` is a part of, by the real hooks."""

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
    phases_ms,
    steady,
    watched,
)
from tests.unit.probe.test_loops import SlowFile


@pytest.fixture
def run() -> Iterator[Watched]:
    with watched() as one:
        yield one


def saved(run: Watched, is_zipped: bool = True) -> None:
    torch.save({}, cast(Any, SlowFile(run, 1)), _use_new_zipfile_serialization=is_zipped)


@pytest.mark.parametrize("is_zipped", [True, False])
def test_what_a_dataset_keeps_is_waited_for_and_no_checkpoint(
    run: Watched, is_zipped: bool
) -> None:
    """Features are worked out once and saved: "save less often" was advised."""

    class Keeps(Rows):
        def __getitem__(self, index: int) -> torch.Tensor:
            saved(run, is_zipped)
            return super().__getitem__(index)

    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    for index, batch in enumerate(DataLoader(Keeps(run.clock), batch_size=2)):
        model(batch).backward()
        optimizer.step()
        if index == 4:
            saved(run, is_zipped)
    steps = [phases_ms(step) for step in run.steps()[1:]]
    assert [step.pop("checkpoint", 0) > 0 for step in steps] == [at == 3 for at in range(9)]
    assert all(step.pop("data") > PLAIN["data"] for step in steps)
    assert steps == [{name: PLAIN[name] for name in ("forward", "backward", "optimizer")}] * 9


def test_what_is_saved_within_a_backward_is_a_part_of_it(run: Watched) -> None:
    model = Model(run.clock)
    optimizer = SlowSGD(model, run.clock)
    model.weight.register_hook(lambda _: saved(run))
    for batch in loader_of(run):
        model(batch).backward()
        optimizer.step()
    for step in steady(run):
        assert step.pop("backward") > PLAIN["backward"]
        assert step == {name: PLAIN[name] for name in ("data", "forward", "optimizer")}
