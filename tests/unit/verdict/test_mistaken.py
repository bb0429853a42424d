"""Runs that look like a cause and have another, or none: each was called wrongly once."""

from typing import Any

import pytest

from gpuwatch.probe.wire.messages import Settings
from gpuwatch.tui.verdict.cpu_wait import starved
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.compute import precision, work_of
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.rules.sync import sync
from gpuwatch.tui.verdict.window_selection import new_work
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader, run, stacks, watch, window


@pytest.mark.parametrize(
    ("frame", "caller", "waits"),
    [
        ("_conv_forward (torch/nn/modules/conv.py:549)", "train (train.py:9)", False),
        ("train (train.py:9)", None, True),
    ],
    ids=["in the model", "on the line"],
)
def test_only_the_call_that_takes_the_time_waits_for_the_gpu(
    frame: str, caller: str | None, waits: bool
) -> None:
    """`out = model(x).item()`: the samples deep in the model are the model's."""
    at = (0.5, frame, caller, "score = model(x).item()")
    seen = gpu_window(
        even(60, forward_ms=20, backward_ms=10, optimizer_ms=2),
        {"forward_ms": 20, "backward_ms": 10, "optimizer_ms": 2},
        activity=activity(35.0),
        stacks=stacks(main=[at]),
    )
    assert (sync(seen) is not None) == waits


def test_gradient_clipping_on_a_busy_gpu_is_no_python() -> None:
    seen = gpu_window(
        even(60, forward_ms=30, backward_ms=45, optimizer_ms=2, other_ms=14),
        {"forward_ms": 30, "backward_ms": 45, "optimizer_ms": 2, "other_ms": 14, "lag_ms": 60},
        activity=activity(99.0, tensor=45.0, fp32=5.0, dram=40.0),
        stacks=stacks(
            main=[(0.9, "clip_grad_norm_ (torch/nn/utils/clip_grad.py:40)", "t (t.py:3)")]
        ),
    )
    assert host(seen) is None


def test_what_a_fix_would_not_give_back_is_no_verdict() -> None:
    """Python holds a quarter of the step, and the workers are busy all the time: without it the
    loader is the limit."""
    steps = even(60, data_ms=4, forward_ms=20, backward_ms=40, other_ms=22, optimizer_ms=2)
    at = (0.25, "log (train.py:5)", None)
    seen = stacks(main=[at], workers=[(0.97, "load (data.py:3)", None)], idle=0.03)
    said = watch(steps, stacks=seen, loaders=(loader(2),), cores=2.0)
    assert said[-1][1].finding.kind != "host"


def test_an_ordinary_optimizer_of_a_small_net_is_part_of_training() -> None:
    said = watch(even(60, forward_ms=28, backward_ms=56, optimizer_ms=13))
    assert said[-1][1].finding.kind == "healthy"


@pytest.mark.parametrize(
    "settings",
    [
        Settings(autocast="bfloat16"),
        Settings(parameter_dtype="float16"),
        Settings(matmul_precision="high"),
    ],
)
def test_fp32_units_at_work_under_autocast_are_no_matrix_products(settings: Settings) -> None:
    """Depthwise convolutions run there in any precision."""
    told = activity(99.0, sm=90.0, tensor=6.0, fp32=30.0, dram=30.0)
    off = Settings(autocast="", matmul_precision="highest", parameter_dtype="float32")
    unknown, plain, half = work_of(told), work_of(told, off), work_of(told, settings)
    assert unknown is not None
    assert precision(unknown) is not None
    assert plain is not None
    assert precision(plain) is not None
    assert half is not None
    assert precision(half) is None


def test_an_iterator_for_every_step_is_no_start_of_an_epoch() -> None:
    """`next(iter(loader))` without workers: a batch is made there, as anywhere."""
    seen = window(even(60, startup_ms=40, forward_ms=20, backward_ms=30), loaders=(loader(0),))
    finding = input_bound(seen)
    assert finding is not None
    assert finding.sub == "serial"


def test_longer_batches_of_a_frozen_backbone_hold_nothing_up() -> None:
    def parts(number: int) -> dict[str, float]:
        return {
            "forward_ms": 250.0 if number % 12 == 0 else 50.0,
            "backward_ms": 3.0,
            "optimizer_ms": 1.0,
        }

    assert host(window(run(120, parts))) is None


def test_others_cannot_hold_a_core_for_longer_than_they_run() -> None:
    """A thread of its own takes the one core; the monitor beside it uses a twentieth."""
    fields: dict[str, Any] = {"run_delay": 0.3, "others_cores": 0.05, "beside_cores": 0.0}
    lack = starved(window(even(60, forward_ms=50, backward_ms=50), cores=1.0, **fields))
    assert lack is not None
    assert lack.by_others == pytest.approx(0.05)


def test_a_batch_size_that_becomes_known_is_no_new_work() -> None:
    unknown = even(30, forward_ms=20, backward_ms=30, samples=None)
    known = even(60, forward_ms=20, backward_ms=30, samples=64)[30:]
    assert new_work([*unknown, *known]) is None
    assert Engine().judge(window([*unknown, *known])).finding.kind in ("healthy", "warming-up")


def test_sleep_is_seen_behind_other_threads() -> None:
    """The process uses 1.4 cores, and its training thread sleeps for a third of the time."""
    fields: dict[str, Any] = {"main_cpu_percent": 140.0, "thread_cpu": 0.68, "run_delay": 0.0}
    at = (0.32, "post (requests/api.py:115)", "train (train.py:9)")
    seen = stacks(main=[at])
    finding = host(window(even(60, forward_ms=70, backward_ms=30), stacks=seen, **fields))
    assert finding is not None
    assert finding.share == pytest.approx(0.32, abs=0.01)
