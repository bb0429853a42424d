"""Python between the phases, single slow steps, and a training thread that sleeps."""

import random
from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.cpu_wait import asleep
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.pauses import outliers
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, run, stacks, step, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}

METRICS = (0.6, "spread_in_python (train.py:70)", None)

CONVOLUTION = (0.4, "conv2d (conv.py:543)", "train (train.py:31)")


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_twenty_ms_a_step_outside_are_the_hosts() -> None:
    rows = even(60, **WORK, other_ms=20)
    judged = verdict(window(rows, stacks=stacks(main=[METRICS, CONVOLUTION])))
    assert judged.finding.kind == "host"
    assert judged.finding.share == pytest.approx(20 / 29.7)
    assert judged.finding.advice[0] == (
        "do it less often, or on another thread, or in one tensor expression: "
        "spread_in_python (train.py:70)"
    )
    assert judged.confidence >= 0.8


def test_tensors_between_the_phases_are_no_python() -> None:
    """A memory bank that is searched in each step was "in Python", and to be done "in one tensor
    expression", which it was: 5.2x without it."""
    rows = even(60, **WORK, other_ms=20)
    line = "sim = feat @ bank.t()"
    searched = FrameShare(0.6, "knn_accuracy (train.py:22)", None, line, "forward", 95)
    finding = verdict(window(rows, stacks=Stacks(95, (searched,), 0, (), None))).finding
    assert finding.headline.endswith("of each step is computed between the phases")
    assert finding.advice[0].startswith("do it less often, or on a part of it: knn_accuracy")


def test_a_forward_between_two_fetches_is_no_python() -> None:
    """Two loaders feed a step: no mark tells the first one's forward from Python (DANN: 37 %)."""
    rows = even(60, data_ms=2, forward_ms=45, backward_ms=45, optimizer_ms=2, other_ms=35)
    line = "conv2d (torch/nn/modules/conv.py:5)", "train (train.py:131)"
    backward = FrameShare(0.4, "_engine_run_backward (torch/autograd/graph.py:1)", None,
                          phase="backward", samples=80)  # fmt: skip

    def judged(in_net: bool) -> str:
        phase: Any = "forward" if in_net else "other"
        other = FrameShare(0.58, *line, phase=phase, in_net=in_net, samples=80)
        seen = replace(stacks(main=[METRICS]), main=(other, backward))
        return verdict(window(rows, stacks=seen)).finding.kind

    assert judged(in_net=True) == "healthy"
    assert judged(in_net=False) == "host"


def test_a_slow_loop_is_named_by_its_function() -> None:
    places = [
        (0.2, "spread.<locals>.<genexpr> (train.py:60)", None),
        (0.2, "Random.randrange (random.py:240)", "spread.<locals>.<genexpr> (train.py:60)"),
        (0.1, "spread (train.py:61)", None),
        CONVOLUTION,
    ]
    finding = verdict(window(even(60, **WORK, other_ms=20), stacks=stacks(main=places))).finding
    assert finding.evidence[1].text == "50% of main-thread samples are in spread (train.py:60)"


def test_a_line_that_reads_tensors_is_named_where_there_is_no_gpu() -> None:
    """Norms, read one by one: "do it less often" named no line."""
    norms = FrameShare(
        *(0.5, "<listcomp> (train.py:20)", None, "norms = [p.grad.norm().item() for p in some]"),
        *("synchronisation", 100),
    )
    convolution = FrameShare(*CONVOLUTION, phase="forward", samples=100, in_net=True)
    seen = Stacks(200, (norms, convolution), 0, (), None)
    finding = verdict(window(even(60, **WORK, other_ms=20), stacks=seen)).finding
    assert finding.advice[0].endswith("in one tensor expression: <listcomp> (train.py:20)")


def test_a_phase_of_the_users_is_the_hosts_under_its_name() -> None:
    rows = even(60, **WORK, phases_ms={"logging": 12.0})
    finding = verdict(window(rows)).finding
    assert finding.kind == "host"
    assert 'in your phase "logging"' in finding.headline
    model = even(60, **WORK, phases_ms={"model": 12.0})
    assert verdict(window(model)).finding.kind == "healthy"


def test_waiting_for_the_gpu_is_not_python() -> None:
    rows = even(60, **WORK, other_ms=60)
    item = (0.86, "item (_tensor.py:10)", "train (train.py:40)")
    waits = window(rows, gpu_present=True, stacks=stacks(main=[item]))
    assert verdict(waits).finding.kind == "compute"
    computes = window(rows, gpu_present=True, stacks=stacks(main=[METRICS]))
    judged = verdict(computes)
    assert judged.finding.kind == "host"
    assert judged.confidence <= 0.6
    assert any(one.text.startswith("gpu clock: not measured") for one in judged.missing)
    blind = verdict(window(rows, gpu_present=True)).finding
    assert (blind.kind, blind.sub) == ("incomplete", "stacks")


LONG_WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 30, "backward_ms": 60, "optimizer_ms": 5}

LOGGER = (0.3, "write (tensorlog.py:20)", "train (train.py:70)")

LONG_CONVOLUTION = (0.7, "conv2d (conv.py:543)", "train (train.py:31)")


def now_and_then(every: int, **longer: float) -> StepWindow:
    """A step in so many is longer in these phases."""

    def parts(number: int) -> dict[str, Any]:
        held = longer if number % every == 0 else {}
        return {**LONG_WORK, **{name: LONG_WORK.get(name, 0) + ms for name, ms in held.items()}}

    return window(run(400, parts), stacks=stacks(main=[LOGGER, LONG_CONVOLUTION]))


def test_a_slow_logger_every_fiftieth_step_is_the_hosts_with_its_line() -> None:
    """2.4 s every 50 steps of 95 ms: a third of the time, and twice in a window of 100."""
    seen = now_and_then(50, other_ms=2_400)
    finding = Engine().judge(seen).finding
    assert finding.kind == "host"
    assert finding.share == pytest.approx(2_400 / (2_400 + 50 * 95.2), abs=0.02)
    assert finding.evidence[0].text == (
        "one step in 50 takes 2.4 s longer, up to 2.4 s; the others take 95 ms"
    )
    assert finding.advice[0].startswith("done every 1,300 steps it would cost 2%")
    assert finding.advice[0].endswith("on another thread: train (train.py:70)")


def test_a_thread_that_waits_for_autograds_own_does_not_sleep() -> None:
    """It walks the graph of what lies on a GPU, also for `autograd.grad` within the forward."""
    grad = "_engine_run_backward (torch/autograd/graph.py:869)"
    derives = FrameShare(0.6, grad, "derived (pinn.py:48)", phase="backward", samples=100)
    rows = even(60, forward_ms=80, backward_ms=20)
    stacks = Stacks(100, (derives,), 0, (), None, main_unplaced=0.0)
    seen = window(rows, gpu_present=True, thread_cpu=0.1, run_delay=0.0)
    assert asleep(replace(seen, stacks=stacks)) == pytest.approx(0.3, abs=0.01)
    assert asleep(seen) == pytest.approx(0.7, abs=0.01)


def test_an_evaluation_that_samples_show_is_no_slow_step_as_well() -> None:
    """A GPT's `estimate_loss` every 50 steps was an evaluation and "single slow steps" as well."""
    seen = now_and_then(20, forward_ms=900)
    place = FrameShare(
        0.4, "linear (torch/nn/functional.py:9)", "check (a.py:8)", phase="evaluation"
    )
    evaluated = replace(seen, stacks=Stacks(200, (place,), 0, (), None))
    assert host(seen) is not None
    found = host(evaluated)
    assert found is None or "single slow steps" not in found.headline


def test_a_pause_within_the_forward_is_the_hosts_too() -> None:
    found = host(now_and_then(20, forward_ms=900))
    assert found is not None
    assert found.share == pytest.approx(900 / (900 + 20 * 95.2), abs=0.02)


@pytest.mark.parametrize(
    "longer",
    [
        {"forward_ms": 60, "backward_ms": 120},
        {"backward_ms": 200},
        {"data_ms": 900},
        {"evaluation_ms": 900, "other_ms": 90},
        {"checkpoint_ms": 900, "other_ms": 400},
        {"compile_ms": 900},
        {"optimizer_ms": 900},
    ],
    ids=["batch", "backward", "data", "evaluation", "checkpoint", "compile", "optimizer"],
)
def test_what_has_a_name_or_grows_with_the_batch_is_no_outlier(longer: dict[str, float]) -> None:
    assert outliers(now_and_then(20, **longer)) is None


def test_lengths_that_vary_are_no_outliers() -> None:
    chance = random.Random(1)

    def parts(_: int) -> dict[str, Any]:
        length = chance.lognormvariate(0, 0.7)
        return {"data_ms": 0.2, "forward_ms": 30 * length, "backward_ms": 60 * length}

    found = host(window(run(400, parts), stacks=stacks(main=[LONG_CONVOLUTION])))
    assert found is None


def test_batches_of_an_inference_that_vary_are_no_outliers() -> None:
    longer = {"inference": True, "backwards": 0, "optimizer_steps": 0, "data_ms": 1}
    rows = run(400, lambda n: {**longer, "forward_ms": 400 if n % 20 == 0 else 40})
    assert outliers(window(rows)) is None
    held = run(400, lambda n: {**longer, "forward_ms": 40, "other_ms": 400 if n % 20 == 0 else 0})
    assert outliers(window(held)) is not None


def test_a_slower_pace_is_no_row_of_outliers() -> None:
    slower = run(400, lambda n: {**LONG_WORK, "other_ms": 200 if n > 360 else 0})
    assert outliers(window(slower)) is None
    was_slower = run(400, lambda n: {**LONG_WORK, "other_ms": 200 if 20 < n < 60 else 0})
    assert outliers(window(was_slower)) is None


def test_spikes_of_a_crowded_machine_are_not_the_hosts() -> None:
    seen = now_and_then(20, forward_ms=400)
    assert host(seen) is not None
    rows = seen.all_recent
    crowded = window(rows, stacks=seen.stacks, run_delay=0.2)
    assert host(crowded) is None


def test_a_loss_that_is_read_now_and_then_waits_for_work_that_is_done() -> None:
    """`.item()` every 20 steps: a second on the host's clock, and the GPU is never idle."""
    rows = run(400, lambda n: {"forward_ms": 3, "backward_ms": 5, "other_ms": 900 * (n % 20 == 0)})
    on_gpu = {"forward_ms": 18, "backward_ms": 35, "lag_ms": 200}
    item = (0.8, "train (train.py:40)", None)
    places = stacks(main=[item])
    assert host(gpu_window(rows, on_gpu, activity=activity(99.0), stacks=places)) is None
    idle = host(gpu_window(rows, on_gpu, activity=activity(30.0), stacks=places))
    assert idle is not None
    assert idle.share == pytest.approx(0.70)
    assert host(gpu_window(rows, on_gpu, activity=activity(None), stacks=places)) is None


def test_one_stall_is_an_event_and_no_share() -> None:
    """A process that was stopped and went on, a cell that a person came back to: the steps after
    it are as they were."""
    rows = run(400, lambda n: {"forward_ms": 200, "other_ms": 35_000 if n == 360 else 0})
    judged = Engine().judge(window(rows))
    assert judged.finding.kind == "healthy"
    assert judged.contributors == ()


def test_few_steps_and_no_steps_have_no_outliers() -> None:
    assert outliers(window([])) is None
    assert outliers(window([step(n, n * 10**9, forward_ms=5) for n in range(1, 8)])) is None


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


def test_longer_batches_of_a_frozen_backbone_hold_nothing_up() -> None:
    def parts(number: int) -> dict[str, float]:
        return {
            "forward_ms": 250.0 if number % 12 == 0 else 50.0,
            "backward_ms": 3.0,
            "optimizer_ms": 1.0,
        }

    assert host(window(run(120, parts))) is None


def test_python_between_the_steps_is_what_the_gpu_stands_idle_for() -> None:
    steps = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=30)
    on_gpu = {"data_ms": 0.1, "forward_ms": 6, "backward_ms": 9, "optimizer_ms": 1, "other_ms": 20}
    main = stacks([(0.8, "score (metrics.py:10)", "evaluate (train.py:88)")])
    found = host(gpu_window(steps, on_gpu, activity=activity(45.0), stacks=main))
    assert found is not None
    assert found.share == pytest.approx(20 / 36.1, abs=0.01)


def loop_without_loader(idle: float, waits: float = 0.0) -> StepWindow:
    """The marks have one long forward; samples show half of the step in a logger's NumPy."""
    rows = even(60, forward_ms=70, backward_ms=25, optimizer_ms=5, fetches=0)
    logger = FrameShare(
        0.5, "clip (numpy/core.py:9)", "log (train.py:70)", "", "other", samples=200
    )
    waiting = FrameShare(waits, "train (train.py:80)", None, "loss.item()", "other", samples=200)
    net = FrameShare(0.5 - waits, "linear (torch/nn/functional.py:9)", None, "", "forward")
    on_gpu = {"forward_ms": 70, "backward_ms": 25, "optimizer_ms": 5}
    return gpu_window(
        rows,
        on_gpu,
        loaders=(),
        activity=activity(100.0 * (1 - idle)),
        stacks=Stacks(200, (logger, waiting, net), 0, (), None),
    )


def test_python_in_a_loop_without_a_loader_is_the_hosts() -> None:
    """Nothing marks where it ends: it is booked as forward."""
    finding = Engine().judge(loop_without_loader(idle=0.6)).finding
    assert finding.kind == "host"
    assert finding.share == pytest.approx(0.5, abs=0.01)
    assert finding.speedup == pytest.approx(2.0, rel=0.15)
    assert "log (train.py:70)" in finding.advice[0]


def test_python_that_a_busy_gpu_hides_is_no_cause() -> None:
    assert host(loop_without_loader(idle=0.02)) is None


def test_a_line_that_could_not_be_read_may_launch() -> None:
    seen = loop_without_loader(idle=0.6)
    assert seen.stacks is not None
    unread = FrameShare(0.5, "learn (train.py:70)", None, "", "other", samples=200)
    main = (unread, *seen.stacks.main[1:])
    assert host(replace(seen, stacks=replace(seen.stacks, main=main))) is None
    known = (replace(unread, line="rows = sorted(table)"), *seen.stacks.main[1:])
    assert host(replace(seen, stacks=replace(seen.stacks, main=known))) is not None


def test_python_in_a_phase_that_the_user_named_is_that_phases() -> None:
    """A loop with `probe.phase("load")` is Python from end to end, and says what three quarters of
    it are."""
    rows = even(60, phases_ms={"load": 15}, other_ms=5, fetches=0, backwards=0)
    reading = FrameShare(0.75, "<module> (toy.py:9)", None, "read_rows(9)", "other", samples=200)
    writing = FrameShare(0.25, "<module> (toy.py:10)", None, "write(rows)", "other", samples=200)
    seen = window(rows, loaders=(), stacks=Stacks(200, (reading, writing), 0, (), None))
    found = host(seen)
    assert found is not None
    assert found.share == pytest.approx(0.25, abs=0.01)


def test_lines_that_launch_are_no_python_of_the_hosts() -> None:
    seen = loop_without_loader(idle=0.6)
    assert seen.stacks is not None
    launching = [replace(one, phase="forward") for one in seen.stacks.main]
    assert host(replace(seen, stacks=replace(seen.stacks, main=tuple(launching)))) is None


def test_sleep_in_a_phase_that_the_user_named_is_that_phases() -> None:
    rows = even(60, phases_ms={"load": 15}, other_ms=5, fetches=0, backwards=0)
    seen = window(rows, loaders=(), thread_cpu=0.01, run_delay=0.0)
    assert asleep(seen) == pytest.approx(0.24, abs=0.01)


def test_an_evaluation_that_samples_show_is_no_python_between_the_phases() -> None:
    """Generated run 1448: 39 % between the phases were an evaluation; without it 1.64x."""
    rows = even(60, data_ms=1, forward_ms=18, backward_ms=27, optimizer_ms=1, other_ms=29)
    net = "conv2d (torch/nn/functional.py:9)"
    checks = FrameShare(0.36, net, "check (a.py:8)", phase="evaluation")
    trains = FrameShare(0.64, net, "learn (a.py:40)", phase="forward")
    seen = window(rows, stacks=Stacks(200, (checks, trains), 0, (), None))
    assert host(seen) is None
    assert Engine().judge(seen).finding.kind == "evaluation"
    assert host(replace(seen, stacks=Stacks(200, (trains,), 0, (), None))) is not None


def test_what_a_step_leaves_to_be_freed_is_no_python_of_the_loops() -> None:
    """Generated run 1378, nothing to fix: 7 of 57 samples on the line that calls the step."""
    rows = even(60, forward_ms=40, backward_ms=20, optimizer_ms=5, fetches=0)
    backward = "_engine_run_backward (torch/autograd/graph.py:869)"
    net = FrameShare(0.8, backward, "Training.learn (train.py:40)", phase="backward")
    line = "self.learn(self.get_batch())"
    calls = FrameShare(0.2, "Training.loop (train.py:9)", None, line, phase="other")
    seen = window(rows, loaders=(), stacks=Stacks(200, (net, calls), 0, (), None))
    assert host(seen) is None
    other = replace(calls, line="self.report(self.losses)")
    assert host(replace(seen, stacks=Stacks(200, (net, other), 0, (), None))) is not None
