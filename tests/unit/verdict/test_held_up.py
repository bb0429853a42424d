"""Single steps that are held up, and a training thread that sleeps where it should work."""

import random
from typing import Any

import pytest

from gpuwatch.tui.verdict.cpu_wait import asleep
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.outliers import outliers
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, run, stacks, step, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 30, "backward_ms": 60, "optimizer_ms": 5}
LOGGER = (0.3, "write (tensorlog.py:20)", "train (train.py:70)")
CONVOLUTION = (0.7, "conv2d (conv.py:543)", "train (train.py:31)")


def now_and_then(every: int, **longer: float) -> StepWindow:
    """A step in so many is longer in these phases."""

    def parts(number: int) -> dict[str, Any]:
        held = longer if number % every == 0 else {}
        return {**WORK, **{name: WORK.get(name, 0) + ms for name, ms in held.items()}}

    return window(run(400, parts), stacks=stacks(main=[LOGGER, CONVOLUTION]))


def test_a_slow_logger_every_fiftieth_step_is_the_hosts_with_its_line() -> None:
    """2.4 s every 50 steps of 95 ms: a third of the time, and twice in a window of 100."""
    seen = now_and_then(50, other_ms=2_400)
    finding = Engine().judge(seen).finding
    assert finding.kind == "host"
    assert finding.share == pytest.approx(2_400 / (2_400 + 50 * 95.2), abs=0.02)
    assert finding.evidence[0].text == (
        "one step in 49 takes 2.4 s longer, up to 2.4 s; the others 95 ms"
    )
    assert finding.advice[0] == "look at train (train.py:70)"
    assert finding.advice[1].startswith("every 1,300 steps it would cost 2%")


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

    found = host(window(run(400, parts), stacks=stacks(main=[CONVOLUTION])))
    assert found is None


def test_batches_of_an_inference_that_vary_are_no_outliers() -> None:
    longer = {"inference": True, "backwards": 0, "optimizer_steps": 0, "data_ms": 1}
    rows = run(400, lambda n: {**longer, "forward_ms": 400 if n % 20 == 0 else 40})
    assert outliers(window(rows)) is None
    held = run(400, lambda n: {**longer, "forward_ms": 40, "other_ms": 400 if n % 20 == 0 else 0})
    assert outliers(window(held)) is not None


def test_a_slower_pace_is_no_row_of_outliers() -> None:
    slower = run(400, lambda n: {**WORK, "other_ms": 200 if n > 360 else 0})
    assert outliers(window(slower)) is None
    was_slower = run(400, lambda n: {**WORK, "other_ms": 200 if 20 < n < 60 else 0})
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


def test_one_stall_of_half_a_minute_is_said_however_rare() -> None:
    rows = run(400, lambda n: {"forward_ms": 2_000, "other_ms": 35_000 if n == 200 else 0})
    said = Engine().judge(window(rows))
    assert said.finding.kind == "healthy"
    assert [finding.kind for finding in said.contributors] == ["host"]


def test_few_steps_and_no_steps_have_no_outliers() -> None:
    assert outliers(window([])) is None
    assert outliers(window([step(n, n * 10**9, forward_ms=5) for n in range(1, 8)])) is None


# -- asleep --------------------------------------------------------------------------------------

REQUEST = (0.6, "send (telemetry.py:20)", "train (train.py:50)")


def sleeping(**fields: Any) -> StepWindow:
    """60 % of the step goes by in a request between the loss and its backward."""
    rows = even(60, data_ms=0.2, forward_ms=70, backward_ms=25, optimizer_ms=5)
    given = {
        "main_cpu_percent": 40.0,
        "run_delay": 0.0,
        "stacks": stacks(main=[REQUEST, (0.4, "conv2d (conv.py:543)", None)]),
        **fields,
    }
    return window(rows, **given)


def test_sleep_within_the_forward_is_the_hosts_with_its_line() -> None:
    finding = Engine().judge(sleeping()).finding
    assert finding.kind == "host"
    assert finding.share == pytest.approx(0.6, abs=0.01)
    assert finding.advice[0].startswith("look at train (train.py:50)")


@pytest.mark.parametrize(
    "fields",
    [
        {"main_cpu_percent": 100.0},
        {"main_cpu_percent": 190.0},
        {"main_cpu_percent": None},
        {"run_delay": 0.6},
        {"run_delay": None},
        {"stacks": None},
        {
            "stacks": stacks(
                main=[(1.0, "_engine_run_backward (torch/autograd/graph.py:800)", None)]
            )
        },
    ],
    ids=["works", "threads", "CPU unknown", "no core", "delay unknown", "no stacks", "in PyTorch"],
)
def test_no_sleep_is_claimed(fields: dict[str, Any]) -> None:
    assert host(sleeping(**fields)) is None


def test_waiting_for_data_is_no_sleep_of_its_own() -> None:
    rows = even(60, data_ms=70, forward_ms=20, backward_ms=10)
    given = {"main_cpu_percent": 30.0, "run_delay": 0.0, "stacks": stacks(main=[REQUEST])}
    assert host(window(rows, **given)) is None


def test_who_calls_backward_on_a_gpu_sleeps_meanwhile_and_nothing_is_lost() -> None:
    """Autograd walks a CUDA graph on a thread of its own; its caller runs for the rest alone."""
    steps = even(60, data_ms=0.2, forward_ms=20, backward_ms=36, optimizer_ms=4)
    on_gpu = {"data_ms": 0.2, "forward_ms": 20, "backward_ms": 36, "optimizer_ms": 4}
    calls = [(0.6, "_engine_run_backward (torch/autograd/graph.py:800)", "train (train.py:50)")]
    mine = (0.4, "train (train.py:48)", None)
    seen = gpu_window(
        steps,
        on_gpu,
        activity=activity(17.0),
        main_cpu_percent=40.0,
        run_delay=0.0,
        stacks=stacks(main=[*calls, mine]),
    )
    assert asleep(seen) == pytest.approx(0.0, abs=0.01)
    assert host(seen) is None
    assert launch(seen) is not None


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
