"""Sleep within a phase is the host's."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.cpu_wait import asleep
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.host import host, within_phases
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, stacks, window

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
    assert finding.advice[0].endswith("on another thread: train (train.py:50)")


def test_how_long_a_logger_sleeps_the_kernel_knows_better_than_samples() -> None:
    """A logger that sleeps for half of a step was met in 15 of 57 samples: 1.5x for 2.05x."""
    logger = FrameShare(
        *(0.26, "Logger.write (train.py:20)", None),
        phase="other",
        line="time.sleep(self.seconds)",
        samples=57,
    )
    net = FrameShare(
        *(0.74, "Linear.forward (torch/nn/modules/linear.py:134)", "Net.forward (train.py:8)"),
        phase="forward",
        line="return self.layer(x)",
        in_net=True,
        samples=57,
    )
    given = window(
        even(60, forward_ms=142, backward_ms=68, optimizer_ms=5, fetches=0),
        stacks=Stacks(57, (logger, net), 0, (), None, main_unplaced=0.0),
        main_cpu_percent=50.0,
        run_delay=0.0,
    )
    found = within_phases(given)
    assert found is not None
    assert found.share == pytest.approx(0.5, abs=0.04)


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


def test_sleep_is_seen_behind_other_threads() -> None:
    """The process uses 1.4 cores, and its training thread sleeps for a third of the time."""
    fields: dict[str, Any] = {"main_cpu_percent": 140.0, "thread_cpu": 0.68, "run_delay": 0.0}
    at = (0.32, "post (requests/api.py:115)", "train (train.py:9)")
    seen = stacks(main=[at])
    finding = host(window(even(60, forward_ms=70, backward_ms=30), stacks=seen, **fields))
    assert finding is not None
    assert finding.share == pytest.approx(0.32, abs=0.01)


@pytest.mark.parametrize(("line", "claims"), [("post(loss)", True), ("x.to(device)", False)])
def test_a_copy_to_the_gpu_is_no_sleep_in_the_users_code(line: str, claims: bool) -> None:
    """A pointwise net on an H200: "do it less often, or on another thread" of `inputs.to(device)`,
    where the driver slept."""
    parts = {"data_ms": 0.2, "forward_ms": 30, "backward_ms": 8, "optimizer_ms": 2}
    at = FrameShare(0.4, "train (train.py:48)", None, line, "forward", samples=100)
    called = "conv2d (torch/nn/modules/conv.py:543)"
    net = FrameShare(0.6, called, None, phase="forward", samples=100)
    seen = gpu_window(
        even(60, **parts),
        parts,
        activity=activity(30.0),
        main_cpu_percent=40.0,
        run_delay=0.0,
        stacks=Stacks(100, (at, net), 0, (), None),
    )
    assert (host(seen) is not None) is claims
