"""The replay against a simulated run in which the cause is really removed."""

from dataclasses import replace
from functools import cache

import pytest
from msgspec import structs

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Kind
from gpuwatch.tui.verdict.forecast.gain import Gain, gain_without, gain_without_both
from gpuwatch.tui.verdict.forecast.measured import replay_of
from gpuwatch.tui.verdict.forecast.replay import replay
from gpuwatch.tui.verdict.format import times
from gpuwatch.tui.verdict.rules.sync import sync
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.thresholds.gpu import GRAPH_LEFT, GRAPH_LEFT_NS
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.simulated_run import NO_SYNC, PHASES, SCENARIOS, Loop, Ran, gain, ran
from tests.unit.verdict.windows import even, loader, stacks, window

NET = sum(part for name, part in PHASES if name != "optimizer")
"""Of a step's kernels those of forward and backward."""
ITEM = "Tensor.item (train.py:41)"
LAYER = "Linear.forward (linear.py:134)"


@cache
def seen(name: str) -> StepWindow:
    """What the monitor would know of a scenario."""
    return window_of(SCENARIOS[name], ran(SCENARIOS[name]))


def window_of(loop: Loop, run: Ran) -> StepWindow:
    python = loop.python_ms / run.step_ms
    places = [(run.waits, ITEM, None), (1 - run.waits - python, LAYER, None)]
    line = FrameShare(python, "tokens (train.py:9)", None, "ids = text.split()", phase="other")
    samples = stacks(places, made_in(loop, run), 1 - run.worker_busy if loop.workers else None)
    return window(
        run.steps,
        gpu_present=True,
        gpu_steps=run.gpu_steps,
        activity=activity(100 * run.busy, sm=100 * run.busy),
        loaders=(loader(loop.workers),),
        cores=16.0,
        stacks=replace(samples, main=(*samples.main, line)),
    )


def made_in(loop: Loop, run: Ran) -> list[tuple[float, str, None]]:
    return [(run.worker_busy, "load (data.py:9)", None)] if loop.workers else []


def forecast(name: str, kind: Kind) -> Gain:
    found = gain_without(kind, seen(name))
    assert found is not None
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_replay_with_nothing_removed_is_what_was_measured(name: str) -> None:
    course = replay_of(seen(name))
    assert course is not None
    assert replay(course) == pytest.approx(course.step_ns, rel=0.01)


@pytest.mark.parametrize("name", SCENARIOS)
def test_free_data_give_what_the_replay_shows(name: str) -> None:
    truth = gain(SCENARIOS[name], data_free=True)
    found = forecast(name, "input")
    assert found.speedup == pytest.approx(truth, rel=0.03)
    assert found.speedup_is == "estimate"


@pytest.mark.parametrize("name", ["B", "C"])
def test_a_hidden_wait_gives_nothing(name: str) -> None:
    waited = sum(row.data_ns for row in seen(name).steps)
    whole = sum(row.end_ns - row.start_ns for row in seen(name).steps)
    assert waited > 0.25 * whole, "the host waits for a quarter of the time"
    assert forecast(name, "input").speedup == pytest.approx(1.0, abs=0.005)


@pytest.mark.parametrize("name", ["A", "B", "C", "D", "E", "F", "J"])
def test_no_wait_for_the_gpu_gives_what_the_replay_shows(name: str) -> None:
    truth = gain(SCENARIOS[name], sync_every=NO_SYNC)
    assert forecast(name, "sync").speedup == pytest.approx(truth, rel=0.03)


def test_a_late_loader_makes_a_gain_elsewhere_a_bound() -> None:
    """The workers of G could keep up, but for their spikes: what of those would hide behind a GPU
    that is no longer waited for depends on the launch queue."""
    truth = gain(SCENARIOS["G"], sync_every=NO_SYNC)
    found = forecast("G", "sync")
    assert found.speedup_is == "bound"
    assert found.speedup >= 0.98 * truth


PYTHON_THEN_ITEM = (
    Loop(3_000, 0.033, 0.02, make_ms=100, sync_every=1, python_ms=30),
    Loop(40, 0.1, 0.009, make_ms=6.4, sync_every=1, python_ms=1.2),
)
"""Python that runs while the GPU works, right before `loss.item()`."""


@pytest.mark.parametrize("loop", PYTHON_THEN_ITEM, ids=["long", "short"])
def test_python_before_a_wait_is_not_the_wait(loop: Loop) -> None:
    known = window_of(loop, ran(loop))
    python, sync = gain_without("host", known), gain_without("sync", known)
    assert python is not None
    assert sync is not None
    assert python.speedup == pytest.approx(gain(loop, python_ms=0.0), rel=0.03)
    assert sync.speedup == pytest.approx(gain(loop, sync_every=NO_SYNC), rel=0.03)


@pytest.mark.parametrize("name", ["H", "I"])
def test_kernels_issued_at_once_give_what_the_replay_shows(name: str) -> None:
    loop = SCENARIOS[name]
    graphed = replace(loop, kernels=27, kernel_ms=loop.kernel_ms * loop.kernels / 27)
    assert ran(loop).step_ms / ran(graphed).step_ms > 2
    net_ms = NET * loop.kernels * loop.issue_ms
    left_ms = GRAPH_LEFT_NS / 1e6 + GRAPH_LEFT * net_ms
    left = replace(graphed, python_ms=graphed.python_ms + left_ms)
    truth = ran(loop).step_ms / ran(left).step_ms
    # The optimizer's own launches are in no graph of the net.
    assert forecast(name, "launch").speedup == pytest.approx(truth, rel=0.1)


def test_no_counter_no_gain_from_fewer_launches() -> None:
    """How long the GPU would take alone is not known then: the replay gives nothing away."""
    blind = replace(seen("H"), activity=None)
    found = gain_without("launch", blind)
    assert found is not None
    assert found.speedup == pytest.approx(1.0, abs=0.01)


def test_there_is_no_forecast_where_the_clocks_are_not_aligned() -> None:
    rows = tuple(structs.replace(row, uncertain_ns=None) for row in seen("D").gpu_steps)
    assert gain_without("input", replace(seen("D"), gpu_steps=rows)) is None
    assert gain_without("input", replace(seen("D"), gpu_steps=())) is None


def test_a_wait_and_a_sync_that_hide_each_other_are_either_fix() -> None:
    verdict = Engine().judge(seen("D"))
    assert {verdict.finding.kind, *verdict.either} == {"input", "sync"}
    assert len(verdict.either) == 1
    assert "either fix gives about the same, both hardly more" in verdict.finding.advice[1]
    both = [verdict.finding, *verdict.contributors]
    assert {f.kind: f.speedup for f in both} == {
        "input": pytest.approx(1.33, abs=0.02),
        "sync": pytest.approx(1.33, abs=0.02),
    }


@pytest.mark.parametrize("name", ["E", "F", "G", "I"])
def test_a_cause_of_its_own_has_no_other_way(name: str) -> None:
    verdict = Engine().judge(seen(name))
    assert verdict.either == ()
    assert not any("either fix" in advice for advice in verdict.finding.advice)


def test_the_loader_is_blamed_and_not_the_sync_that_shows_it() -> None:
    verdict = Engine().judge(seen("F"))
    assert verdict.finding.kind == "input"
    assert verdict.finding.speedup == pytest.approx(1.29, abs=0.03)


READ = FrameShare(
    0.2, "train (train.py:131)", None, "total += loss.item() * x.size(0)", "synchronisation"
)
COPIED = FrameShare(
    0.195, "DenseCapsule.forward (capsulelayers.py:58)", None,
    "b = Variable(torch.zeros(n, 10, 1152)).to(device)", "forward", in_net=True,
)  # fmt: skip


def reads_its_loss(*places: FrameShare, pinned: bool) -> StepWindow:
    """CapsNet on an H200: 4 ms of 20 in a read of its loss, what is queued by then is 3.8 ms long,
    and nothing as its forward begins."""
    parts = {"data_ms": 0.4, "forward_ms": 10.0, "backward_ms": 4.5, "optimizer_ms": 0.9}
    on_gpu = {"data_ms": 0.5, "forward_ms": 9.9, "backward_ms": 8.3, "optimizer_ms": 0.9}
    rest = FrameShare(
        1.0 - sum(one.share for one in places),
        "_engine_run_backward (torch/autograd/graph.py:869)", None, "", "backward",
    )  # fmt: skip
    feeds = loader(1, batch_bytes=314_400, batch_tensors=2, batch_device="cpu", pinned=pinned)
    known = gpu_window(
        even(300, **parts, other_ms=4.0), {**on_gpu, "other_ms": 0.2},
        activity=activity(45.0, pcie_rx_mb_s=290.0), loaders=(feeds,),
        stacks=Stacks(113, (*places, rest), 0, (), None),
    )  # fmt: skip
    behind = tuple(structs.replace(row, lag_backward_ns=3_800_000) for row in known.gpu_steps)
    return replace(known, gpu_steps=behind)


def test_a_copy_takes_what_a_read_of_the_loss_gives_back() -> None:
    """It copies zeros of 4.6 MB in its forward, for 4 ms: 1.04x measured without the read, 1.24x
    without the copy, 1.50x without both. 1.29x was said of the read, and of both "hardly more"."""
    known = reads_its_loss(COPIED, READ, pinned=True)
    read = gain_without("sync", known, at_most=False)
    copy = gain_without("h2d", known, at_most=False)
    assert read is not None
    assert copy is not None
    assert read.speedup == pytest.approx(1.04, abs=0.04)
    assert copy.speedup == pytest.approx(1.24, abs=0.03)
    assert gain_without_both("sync", "h2d", known) == pytest.approx(1.5, abs=0.15)
    assert Engine().judge(known).finding.kind == "h2d"


def test_a_read_gives_little_where_batches_from_pageable_memory_wait_next() -> None:
    """MONet without its read: 1.03x, and 1.26x was said. What it gives beside pinned batches, whose
    copies need not wait, stands in the advice."""
    pinned, pageable = (sync(reads_its_loss(READ, pinned=one)) for one in (True, False))
    assert pinned is not None
    assert pageable is not None
    assert pinned.speedup == pytest.approx(1.25, abs=0.03)
    assert pageable.speedup == pytest.approx(1.04, abs=0.04)
    assert pageable.advice[0].endswith(f"; both {times(pinned.speedup or 0.0)} at the most")
    assert "both" not in pinned.advice[0]
