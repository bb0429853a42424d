"""The GPU waits for launches; also for want of a core."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.rules.contention import contention
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.thresholds.gpu import FILLED_TAKES, GRAPH_LEFT, GRAPH_LEFT_NS
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_step, gpu_window
from tests.unit.verdict.windows import even, loader, run, stacks, window

LAUNCHING = even(60, data_ms=0.2, forward_ms=12, backward_ms=16, optimizer_ms=4)

LAUNCHING_ON_GPU = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 4}


def test_a_gpu_that_keeps_up_and_idles_waits_for_launches() -> None:
    seen = gpu_window(LAUNCHING, LAUNCHING_ON_GPU, activity=activity(17.0, sm=2.0))
    found = launch(seen)
    assert found is not None
    assert found.share is not None
    assert found.share == pytest.approx(32 / 32.2 - 0.17, abs=0.01)
    assert found.speedup is not None
    assert 2 < found.speedup < 1 / (1 - found.share), "a graph leaves some of it"
    verdict = Engine().judge(seen)
    assert verdict.finding.kind == "launch"
    assert verdict.confidence > 0.8


def test_batches_that_differ_in_size_are_for_a_graph_of_each() -> None:
    """DETR's pictures: a graph of the step, it was advised, and no two batches were alike. Compiled
    for all sizes an LSTM became slower, and a graph's forecast stood beside it."""
    pictures = loader(2, varies=True)
    held_out = loader(2, varies=True, evaluation=True)
    for loaders, padded in (((pictures,), True), ((held_out, loader(2)), False)):
        seen = gpu_window(
            LAUNCHING, LAUNCHING_ON_GPU, activity=activity(17.0, sm=2.0), loaders=loaders
        )
        found = launch(seen)
        assert found is not None
        assert ("pad batches" in found.advice[0]) is padded
        assert "dynamic=True" not in found.advice[0]


def test_a_net_that_asks_for_numbers_is_no_graph_before_it_stops() -> None:
    """FastSpeech's length regulator reads a length for every sound."""
    line = "expand_size = predicted[i].item()"
    asks = FrameShare(0.2, "expand (train.py:575)", None, line, "synchronisation", in_net=True)
    net = FrameShare(0.8, "conv1d (torch/nn/functional.py:9)", None, "", "forward", in_net=True)
    for held, places in ((True, (asks, net)), (False, (net,))):
        seen = gpu_window(
            LAUNCHING, LAUNCHING_ON_GPU, activity=activity(17.0, sm=2.0),
            stacks=Stacks(200, places, 0, (), None),
        )  # fmt: skip
        found = launch(seen)
        assert found is not None
        assert ("no graph holds `predicted[i].item()`" in found.advice[0]) is held


def test_a_graph_leaves_what_an_optimizer_does_between_its_closures() -> None:
    """L-BFGS on an H200, a step from closure to closure: 4.3x was said, 2.4x measured."""
    steps = even(60, forward_ms=9.2, backward_ms=6.5, optimizer_steps=0)
    on_gpu = {"forward_ms": 9.2, "backward_ms": 6.5}
    between = [(0.3, "LBFGS.step (torch/optim/lbfgs.py:434)", "train (train.py:246)")]
    net = [(0.7, "Linear.forward (torch/nn/modules/linear.py:134)", "forward (net.py:128)")]
    seen = gpu_window(steps, on_gpu, activity=activity(23.0, sm=3.0), stacks=stacks(between + net))
    bare = gpu_window(steps, on_gpu, activity=activity(23.0, sm=3.0), stacks=stacks(net))
    closure, without = launch(seen), launch(bare)
    assert closure is not None
    assert without is not None
    assert closure.speedup is not None
    assert without.speedup is not None
    assert closure.speedup == pytest.approx(2.4, abs=0.3)
    assert without.speedup > 3.5


def test_a_little_queued_work_explains_no_long_idleness() -> None:
    """Kernels issued one by one drain now and then: 0.9 ms behind at 26 ms of idling a step."""
    behind = {**LAUNCHING_ON_GPU, "lag_ms": 0.9}
    assert launch(gpu_window(LAUNCHING, behind, activity=activity(17.0))) is not None
    assert launch(gpu_window(LAUNCHING, behind, activity=activity(60.0))) is None


def test_epochs_that_begin_between_the_measured_steps_are_not_launching() -> None:
    """20 steps of 32 ms and a start-up as long as all of them: the rest of the time is its own."""
    rows = run(
        120,
        lambda n: {
            "data_ms": 0.2,
            "startup_ms": 644 * (n % 20 == 2),
            "forward_ms": 12,
            "backward_ms": 16,
            "optimizer_ms": 4,
        },
    )
    whole = window(rows, gpu_present=True, loaders=(loader(4),), activity=activity(9.0))
    measured = tuple(gpu_step(row, **LAUNCHING_ON_GPU) for row in whole.steps if not row.startup_ns)
    seen = replace(whole, gpu_steps=measured[::3])
    begins, waits = input_bound(seen), launch(seen)
    assert begins is not None
    assert waits is not None
    assert begins.share == pytest.approx(0.5, abs=0.03)
    assert waits.share is not None
    assert waits.share == pytest.approx(0.5 - 0.09, abs=0.03)
    assert begins.speedup == pytest.approx(2.0, rel=0.05)
    assert waits.speedup is not None
    assert 1.4 < waits.speedup < 1 / (1 - waits.share), "a graph leaves some of it"


@pytest.mark.parametrize(
    ("on_gpu", "reported"),
    [
        ({**LAUNCHING_ON_GPU, "lag_ms": 4.0}, activity(17.0)),
        (LAUNCHING_ON_GPU, activity(95.0)),
        (LAUNCHING_ON_GPU, activity(None)),
        (LAUNCHING_ON_GPU, None),
        ({**LAUNCHING_ON_GPU, "lag_ms": None, "uncertain_ns": None}, activity(17.0)),
        ({**LAUNCHING_ON_GPU, "uncertain_ns": 900_000}, activity(17.0)),
    ],
    ids=["behind", "busy", "busy unknown", "no counters", "not aligned", "badly aligned"],
)
def test_launching_is_not_claimed_without_its_signals(on_gpu: dict, reported: object) -> None:  # type: ignore[type-arg]
    assert launch(gpu_window(LAUNCHING, on_gpu, activity=reported)) is None


FORWARD = stacks([(0.9, "forward (model.py:12)", None)])

ON_GPU = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 4}


def launching(**fields: Any) -> StepWindow:
    given = {"main_cpu_percent": 50.0, "stacks": FORWARD, "beside_cores": 0.0, **fields}
    return gpu_window(LAUNCHING, ON_GPU, activity=activity(17.0), **given)


def test_launches_that_wait_for_a_core_want_cores() -> None:
    seen = launching(run_delay=0.5, others_cores=6.0, cores=1.0)
    found = launch(seen)
    assert found is not None
    assert (found.kind, found.sub) == ("launch", "cpu-starved")
    assert found.share == pytest.approx(0.5)
    assert "compile" not in " ".join(found.advice)
    assert "1 core alone" in found.advice[0]
    assert Engine().judge(seen).finding.sub == "cpu-starved"
    assert contention(seen) is None, "the GPU is nobody else's"


def test_a_quota_is_raised() -> None:
    found = launch(launching(run_delay=0.6, cpu_throttled=0.55, others_cores=0.2, cores=0.5))
    assert found is not None
    assert found.sub == "cpu-starved"
    assert "raise its CPU quota" in found.advice[0]


def test_its_own_processes_are_made_fewer() -> None:
    found = launch(launching(run_delay=0.5, others_cores=0.1, beside_cores=7.0, cores=8.0))
    assert found is not None
    assert found.sub == "cpu-starved"
    assert found.advice[0].startswith("use fewer processes and threads")


@pytest.mark.parametrize("delay", [0.05, 0.3, None])
def test_a_small_or_unknown_wait_leaves_it_to_fewer_kernels(delay: float | None) -> None:
    found = launch(launching(run_delay=delay, others_cores=0.1, main_cpu_percent=70.0))
    assert found is not None
    assert found.sub is None
    assert "torch.compile" in found.advice[0]


REQUEST = (0.6, "send (telemetry.py:20)", "train (train.py:50)")


def test_a_thread_that_sleeps_does_not_launch() -> None:
    steps = even(60, data_ms=0.2, forward_ms=40, backward_ms=16, optimizer_ms=4)
    on_gpu = {"data_ms": 0.2, "forward_ms": 40, "backward_ms": 16, "optimizer_ms": 4}
    given = {"activity": activity(17.0), "run_delay": 0.0, "stacks": stacks(main=[REQUEST])}
    sleeps = gpu_window(steps, on_gpu, main_cpu_percent=30.0, **given)
    assert launch(sleeps) is None
    assert Engine().judge(sleeps).finding.kind == "host"
    works = gpu_window(steps, on_gpu, main_cpu_percent=100.0, **given)
    assert launch(works) is not None
    assert host(works) is None


def test_launches_of_the_optimizer_are_mended_there() -> None:
    parts = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 6, "optimizer_ms": 40}
    given = {"activity": activity(17, sm=2), "settings": settings(foreach=False)}
    finding = launch(gpu_window(even(60, **parts), parts, **given))
    assert finding is not None
    assert finding.advice[0] == (
        "most launches are the optimizer's: AdamW(..., fused=True): its 161 tensors are "
        "updated together"
    )


def test_launches_under_anomaly_detection_end_with_it() -> None:
    parts = {"data_ms": 0.2, "forward_ms": 50, "backward_ms": 50, "optimizer_ms": 1}
    found = launch(
        gpu_window(even(60, **parts), parts, activity=activity(30), settings=settings(anomaly=True))
    )
    assert found is not None
    assert found.advice[0].startswith("torch.autograd.set_detect_anomaly(False)")


CELL = (0.3, "LSTMCell.forward (torch/nn/modules/rnn.py:1767)", "Reader.forward (read.py:41)")
BACKWARD = (0.65, "_engine_run_backward (torch/autograd/graph.py:869)", None)


def phased(*places: tuple[float, str, str | None]) -> Stacks:
    """Those of the backward are its own."""
    return Stacks(
        200,
        tuple(
            FrameShare(*place, phase="backward" if "backward" in place[1] else "forward")
            for place in places
        ),
        0,
        (),
        None,
    )


def test_a_loop_over_a_recurrent_cell_wants_another_algorithm() -> None:
    """4.3x was forecast for fewer launches, and cuDNN's LSTM gave 16x."""
    found = launch(launching(stacks=phased(CELL, BACKWARD)))
    assert found is not None
    assert found.advice[0] == (
        "nn.LSTM instead of LSTMCell in a loop (Reader.forward (read.py:41)), if it is not fed "
        "with its own answers: all time steps in one call"
    )
    assert found.forecast is not None
    assert found.forecast.kind == "at-least"
    assert found.speedup is not None
    assert found.forecast.speedup < found.speedup


LOOP = "Training.forward (train.py:41)"
PART = FrameShare(
    *(0.3, "Linear.forward (torch/nn/modules/linear.py:134)", "Net.forward (net.py:9)"),
    phase="forward",
    in_parts=LOOP,
)
RECURRENT = replace(PART, frame="LSTM.forward (torch/nn/modules/rnn.py:1140)")


def in_parts(place: FrameShare, **given: Any) -> StepWindow:
    below = Stacks(200, (place, FrameShare(*BACKWARD, phase="backward")), 0, (), None)
    seen = launching(stacks=below, settings=settings(parameters=20), **given)
    return replace(seen, activity=activity(17.0, sm=3.4))


def test_a_net_that_is_called_for_parts_of_a_batch_wants_one_call() -> None:
    """2.7x was forecast for fewer launches, and 9.6x measured for one call. It leaves 0.15 ms for
    each of 20 tensors, and what is beside the net; kernels fill five times as much."""
    found = launch(in_parts(PART))
    assert found is not None
    assert found.advice[0].startswith(
        "one call of the net for the whole batch, instead of one for each part of it in a loop "
        f"({LOOP})"
    )
    assert found.speedup == pytest.approx(32.2 / (20 * 0.15 + 0.2 + 4), rel=0.03)
    forecast = forecast_of(found)
    assert forecast is not None
    assert forecast.kind == "estimate"


def test_kernels_of_a_whole_batch_take_less_than_those_of_its_parts() -> None:
    """Of a GPU that is busy for most of the step they are what one call leaves: an MLP on an H200
    gained 12.5x, where 7.0x was said."""
    found = launch(replace(in_parts(PART), activity=activity(80.0, sm=50.0)))
    assert found is not None
    net, update = 28 / 32, 4 / 32
    left = 0.8 * (net * FILLED_TAKES * 50 / 80 + update)
    assert found.speedup == pytest.approx(1 / left, rel=0.05)


def test_a_recurrent_net_gives_at_least_that() -> None:
    found, every = launch(in_parts(RECURRENT)), launch(in_parts(PART))
    assert found is not None
    assert every is not None
    assert found.forecast is not None
    assert found.forecast.kind == "at-least"
    assert found.forecast.speedup == pytest.approx(0.9 * (every.speedup or 0))


@pytest.mark.parametrize(("dram", "kind"), [(3, "estimate"), (9, "at-least")])
def test_parts_for_each_of_which_the_weights_are_read_anew(dram: float, kind: str) -> None:
    """An MLP of 800 MB on an H200 in eight parts: 2.0x was forecast, 6.9x measured."""
    reads = replace(in_parts(PART), activity=activity(17.0, sm=3.4, dram=dram))
    found = launch(reads)
    assert found is not None
    forecast = forecast_of(found)
    assert forecast is not None
    assert forecast.kind == kind


def test_parts_that_hold_few_of_the_launches_are_not_the_advice() -> None:
    rest = FrameShare(0.5, "embed (net.py:70)", None, phase="forward")
    below = Stacks(200, (PART, rest, FrameShare(*BACKWARD, phase="backward")), 0, (), None)
    found = launch(replace(in_parts(PART), stacks=below))
    assert found is not None
    assert "one call" not in found.advice[0]


def test_fewer_launches_have_an_interval() -> None:
    found = launch(launching())
    assert found is not None
    forecast = forecast_of(found)
    assert forecast is not None
    assert forecast.high is not None
    assert forecast.low < forecast.speedup < forecast.high


def test_a_loop_is_a_share_of_the_forward_and_no_module() -> None:
    """The backward repeats its launches under one frame; a net's own modules are no loop."""
    loop = (0.3, "contrast (train.py:29)", None)
    found = launch(launching(stacks=phased(loop, BACKWARD)))
    assert found is not None
    assert "100% of the forward's launches come from contrast (train.py:29)" in found.advice[-1]
    module = (0.3, "Block.forward (net.py:29)", None)
    found = launch(launching(stacks=phased(module, BACKWARD)))
    assert found is not None
    assert not any("launches come from" in advice for advice in found.advice)


def test_python_between_the_phases_is_no_loop_that_launches() -> None:
    """ "72% of launches come from tokenize (feeding.py:49)", which launches nothing."""
    tokens = FrameShare(0.5, "tokenize (feeding.py:49)", None, "split(text)", phase="other")
    rest = FrameShare(0.1, "Block.forward (net.py:29)", None, phase="forward")
    seen = Stacks(200, (tokens, rest, FrameShare(*BACKWARD, phase="backward")), 0, (), None)
    found = launch(launching(stacks=seen))
    assert found is not None
    assert not any("launches come from" in one for one in found.advice)


def test_its_own_threads_leave_it_to_fewer_kernels() -> None:
    """OpenMP's 16 threads spin on 16 cores: what launches less needs a core for less time."""
    found = launch(
        launching(
            run_delay=0.5, others_cores=0.1, beside_cores=15.3, cores=16.0,
            main_cpu_percent=1_580.0, thread_cpu=0.5, settings=settings(threads=16),
        )
    )  # fmt: skip
    assert found is not None
    assert found.sub is None
    assert "torch.compile" in found.advice[0]
    assert "torch.set_num_threads(8)" in found.advice[1]


def test_a_graph_of_the_net_leaves_its_loss_and_the_optimizer() -> None:
    """Of 28 ms in forward and backward 15 % and 0.7 ms are left, of the optimizer all of its 4:
    200 layers on an H200, launched in 28 ms, became 3.5x as fast (recording launch_layers)."""
    found = launch(gpu_window(LAUNCHING, LAUNCHING_ON_GPU, activity=activity(3.0)))
    assert found is not None
    left_ms = GRAPH_LEFT * 28 + GRAPH_LEFT_NS / 1e6
    assert found.speedup == pytest.approx(32.2 / (0.2 + left_ms + 4), rel=0.03)
    assert found.speedup == pytest.approx(3.5, rel=0.12)


def test_the_gpus_clock_alone_tells_python_between_the_phases_from_launching() -> None:
    """Generated run 5: 4.3 of 8.5 ms a step in a logger were launches for four seconds, until the
    first sample. A host that waits there for the GPU leaves it no gap."""
    rows = even(60, forward_ms=2, backward_ms=2, optimizer_ms=0.5, other_ms=4)
    phases = {"forward_ms": 2, "backward_ms": 2, "optimizer_ms": 0.5}
    idles = gpu_window(rows, {**phases, "other_ms": 4}, activity=activity(15.0))
    works = {"forward_ms": 4, "backward_ms": 4, "optimizer_ms": 0.5, "lag_ms": 3}
    assert Engine().judge(idles).finding.kind == "host"
    assert host(gpu_window(rows, works, activity=activity(95.0))) is None


def test_python_within_the_forward_is_no_launching() -> None:
    """Half of the step is a logger's, in a loop whose marks book it as forward."""
    logger = FrameShare(0.5, "clip (numpy/core.py:9)", "log (train.py:70)", "", "other", 200)
    net = FrameShare(0.5, "linear (torch/nn/functional.py:9)", None, "", "forward", 200)
    rows = even(60, forward_ms=28, backward_ms=4, fetches=0)
    on_gpu = {"forward_ms": 28, "backward_ms": 4}
    given: dict[str, Any] = {"activity": activity(10.0), "loaders": ()}
    without = launch(gpu_window(rows, on_gpu, stacks=Stacks(200, (net,), 0, (), None), **given))
    beside = launch(
        gpu_window(rows, on_gpu, stacks=Stacks(200, (logger, net), 0, (), None), **given)
    )
    assert without is not None
    assert without.share == pytest.approx(0.9, abs=0.02)
    assert beside is not None
    assert beside.share == pytest.approx(0.4, abs=0.02)
    assert beside.speedup is not None
    assert beside.speedup < 2
