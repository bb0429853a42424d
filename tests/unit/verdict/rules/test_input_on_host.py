"""Batches that are only copied, of a dataset that the GPU's memory would hold."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.messages import Loader
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.advice_runs import device_memory
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader, run

LOOP = "<module> (train.py:135)"
FOR = "for batch_idx, data_batch in enumerate(train_loader):"
COPIES = "data_batch = [tensor.to(device) for tensor in data_batch]"
PARTS = {
    "data_ms": 2.3, "forward_ms": 28.5, "backward_ms": 5.1, "optimizer_ms": 1.1,
    "other_ms": 1.3,
}  # fmt: skip


def batches(**fields: Any) -> Loader:
    given = {"batches": 48, "batch_bytes": 61_000_000, "batch_tensors": 3, "pinned": False}
    return loader(4, **{**given, "batch_device": "cpu", **fields})


def c_swm(
    idle: float = 0.6, given_back: float = 0.27, startup_ms: float = 3.5, **fields: Any
) -> StepWindow:
    """C-SWM on an H200: transitions from HDF5 in memory, 59 MiB a batch; its workers are idle for
    `idle` of the time."""
    main = (
        FrameShare(given_back, LOOP, None, FOR, "data"),
        FrameShare(0.37, "<module> (train.py:136)", None, COPIES, "forward"),
        FrameShare(0.1, "_engine_run_backward (torch/autograd/graph.py:869)", None, "", "backward"),
    )
    every = {
        "loaders": (batches(**fields),),
        "cores": 16.0,
        "activity": activity(11.4, pcie_rx_mb_s=1495.0, sm=8.2),
        "stacks": Stacks(114, main, 200, (), idle),
        **device_memory(0.01, 0.005),
    }
    parts = {**PARTS, "startup_ms": startup_ms}
    return gpu_window(even(127, **parts), {**parts, "wait_ms": 2.3}, **every)


def test_a_dataset_that_is_only_copied_is_best_held_on_the_gpu() -> None:
    """5.0x was measured, where "copies, pinned memory, 1.5x" was the verdict."""
    verdict = Engine().judge(c_swm())
    found = verdict.finding
    assert (found.kind, found.sub) == ("input", "on-host")
    assert found.advice[0].startswith("hold the dataset on the GPU and take batches there by index")
    assert "2.7 GiB of 99 GiB that are free" in found.advice[0]
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(5.0, rel=0.2)
    texts = " ".join(one.text for one in found.evidence)
    assert f"{LOOP}: the memory of the batch before is given back" in texts


@pytest.mark.parametrize(
    "fields",
    [
        {"batches": 2_000},
        {"batches": None},
        {"batch_device": "cuda", "pinned": None},
        {"batch_bytes": 6_000_000},
    ],
    ids=["larger than the memory", "of unknown length", "on the GPU", "made slowly"],
)
def test_other_datasets_stay_where_they_are(fields: dict[str, Any]) -> None:
    held = input_bound(c_swm(idle=0.0))
    assert held is not None
    assert held.sub == "on-host"
    found = input_bound(c_swm(idle=0.0, **fields))
    assert found is not None
    assert found.sub != "on-host"


def test_giving_batches_back_is_no_start_of_an_epoch() -> None:
    """It was, for 47 % of the time of which "a fix gives back about 12 %"."""
    found = input_bound(c_swm(batches=None))
    assert found is not None
    assert found.sub != "epoch-start"
    without = input_bound(c_swm(batches=None, given_back=0.01))
    assert without is not None
    assert without.sub == "epoch-start"


@pytest.mark.parametrize(("startup_ms", "sub"), [(9, "on-host"), (60, "epoch-start")])
def test_workers_that_stay_come_first_where_they_give_half(startup_ms: float, sub: str) -> None:
    """Generated run 1083: 2.1x by that one argument, and 3.9x forecast by more work."""
    seen = c_swm(idle=0.97, given_back=0.01, startup_ms=startup_ms)
    found = input_bound(seen)
    assert found is not None
    assert found.sub == sub
    ours = [line for line in found.advice if "hold the dataset on the GPU" in line]
    assert ours == [found.advice[0 if sub == "on-host" else 1]]


def evaluating(**held_out: Any) -> StepWindow:
    """The same with 23 % of its time in an evaluation, which has a loader of its own."""
    parts = {**PARTS, "startup_ms": 3.5}
    evaluated_ms = 0.3 * 127 * sum(parts.values())
    rows = run(127, lambda at: {**parts, "evaluation_ms": evaluated_ms if at == 64 else 0})
    given = {"batches": 10, "evaluation": True, "key": 2, **held_out}
    return replace(
        c_swm(), steps=tuple(rows), all_recent=tuple(rows), evaluation_loaders=(batches(**given),)
    )


def test_an_evaluation_reads_its_batches_from_the_gpu_too() -> None:
    """DiffPool on an H200, 24 % of it in evaluation: 3.0x without its batches, 7.9x measured."""
    found, without = input_bound(evaluating()), input_bound(c_swm())
    assert found is not None
    assert without is not None
    assert found.forecast is not None
    assert without.forecast is not None
    assert "dataset, and evaluation's, on the GPU" in found.advice[0]
    assert "3.3 GiB of 99 GiB" in found.advice[0]
    assert "evaluation" not in without.advice[0]
    assert found.forecast.speedup == pytest.approx(without.forecast.speedup, rel=0.15)
    assert found.forecast.low < 0.7 * without.forecast.speedup


@pytest.mark.parametrize(
    "held_out",
    [{"dataset": "Captions"}, {"batches": None}, {"batches": 100_000}],
    ids=["other samples", "of unknown length", "too many"],
)
def test_other_evaluations_stay_as_long(held_out: dict[str, Any]) -> None:
    found = input_bound(evaluating(**held_out))
    assert found is not None
    assert found.advice[0].startswith("hold the dataset on the GPU")
    assert found.forecast is not None
    assert found.forecast.speedup < 3.0
