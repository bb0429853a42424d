"""Batches that a loop makes itself, which no mark shows: what of the GPU's idle time is theirs."""

from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.stack_samples import Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.test_idle_ledger import ledger_of, placed
from tests.unit.verdict.windows import even


def test_a_function_that_draws_its_batches_is_a_fetch_though_no_mark_shows_it() -> None:
    """A loop without a loader: what it draws is part of the forward by the marks."""
    rows = even(60, forward_ms=40, backward_ms=20, fetches=0)
    on_gpu = {"forward_ms": 40, "backward_ms": 20}
    main = placed(
        (0.5, "get_batch (train.py:20)", "x = torch.stack([...])", "data"),
        (0.4, "forward (model.py:12)", "", "forward"),
    )
    seen = gpu_window(rows, on_gpu, activity=activity(40.0), stacks=main, loaders=())
    found = Engine().judge(seen).finding
    assert found.kind == "input"
    assert found.share == pytest.approx(0.5, abs=0.01)
    assert "100 of 200 main-thread samples (50%) are in get_batch" in found.evidence[0].text


def test_batches_and_python_that_a_gpu_waits_for_alike_share_its_idle_time() -> None:
    """A loop that draws its batches and logs in each step: a queue of 16 ms outlasts the log and
    not the draw. Without the log it was 1.54x as fast, with batches ready 1.17x."""
    rows = even(60, forward_ms=38.6, backward_ms=7.2, optimizer_ms=1.4, other_ms=1.2, fetches=0)
    on_gpu = {"forward_ms": 31.5, "backward_ms": 17.5, "optimizer_ms": 0.7, "lag_ms": 16}
    main = placed(
        (0.27, "augment (feeding.py:59)", "x = np.roll(x, 1)", "data"),
        (0.36, "log (train.py:80)", "y = np.sort(y)", "other"),
        (0.37, "linear (torch/nn/functional.py:9)", "", "forward"),
    )
    seen = gpu_window(rows, on_gpu, activity=activity(57.0), stacks=main, loaders=())
    shares = ledger_of(seen).shares
    assert shares["input"] + shares["host"] == pytest.approx(0.43, abs=0.01)
    assert shares["host"] > 1.2 * shares["input"]
    assert Engine().judge(seen).finding.kind == "host"


def test_idle_time_of_a_checkpoint_or_between_the_phases_is_no_wait_for_a_drawn_batch() -> None:
    """Of 60 ms a step 10 are a checkpoint's, 10 lie between the phases and 16 are idle within them:
    the draw is half of the samples, and may claim those 16."""
    parts = {"forward_ms": 20.0, "backward_ms": 20.0, "other_ms": 10.0}
    rows = even(60, **parts, checkpoint_ms=10, fetches=0)
    main = placed(
        (0.5, "get_batch (train.py:20)", "x = torch.stack([...])", "data"),
        (0.5, "linear (torch/nn/functional.py:9)", "", "forward"),
    )
    given: dict[str, Any] = {"activity": activity(40.0), "stacks": main, "loaders": ()}
    shares = ledger_of(gpu_window(rows, parts, **given)).shares
    assert shares["pauses"] == pytest.approx(1 / 6, abs=0.01)
    assert shares["host"] >= 0.15
    assert shares["input"] == pytest.approx(16 / 60)


def drawing(main: Stacks, busy: float, thread_cpu: float) -> StepWindow:
    """A loop that draws its batches, whose GPU keeps up: its fetch is part of the forward."""
    parts = {"forward_ms": 24.0, "backward_ms": 9.0, "optimizer_ms": 1.0}
    given: dict[str, Any] = {"thread_cpu": thread_cpu, "run_delay": 0.0, "loaders": ()}
    rows = even(60, **parts, fetches=0)
    return gpu_window(rows, parts, activity=activity(busy), stacks=main, **given)


def test_a_fetch_that_sleeps_leaves_the_gaps_of_the_net_to_launching() -> None:
    """A batch from a service takes four tenths of a step that no mark shows: of the GPU's time
    "unexplained" was a quarter, and "Python" a sixth, for lines beside the sleep."""
    main = placed(
        (0.39, "Chore.__call__ (feeding.py:38)", "time.sleep(self.seconds)", "data"),
        (0.16, "train (train.py:30)", "loss = loss / pieces", "other"),
        (0.45, "linear (torch/nn/functional.py:9)", "", "forward"),
    )
    shares = ledger_of(drawing(main, busy=22.0, thread_cpu=0.32)).shares
    assert shares["input"] == pytest.approx(0.39, abs=0.06)
    assert shares["launch"] >= 0.2
    assert shares["unexplained"] < 0.05


def test_a_batch_given_back_is_counted_once_where_no_fetch_is_marked() -> None:
    rows = even(60, forward_ms=40, backward_ms=20, fetches=0)
    main = placed(
        (0.2, "train (train.py:30)", "for images, labels in loader:", "data"),
        (0.8, "linear (torch/nn/functional.py:9)", "", "forward"),
    )
    on_gpu = {"forward_ms": 40, "backward_ms": 20}
    seen = gpu_window(rows, on_gpu, activity=activity(40.0), stacks=main, loaders=())
    assert ledger_of(seen).shares["input"] == pytest.approx(0.2, abs=0.01)


def test_a_draw_that_computes_takes_no_sleep_from_the_hosts_own() -> None:
    """A quarter of the time a core draws the batch, and half of it the training thread sleeps in a
    call of the user's own: that was launching, beside "sleeps in your code"."""
    main = placed(
        (0.25, "get_batch (train.py:20)", "x = np.roll(x, 1)", "data"),
        (0.5, "push (train.py:60)", "reply = ask(loss)", "forward"),
        (0.25, "linear (torch/nn/functional.py:9)", "", "forward"),
    )
    seen = drawing(main, busy=25.0, thread_cpu=0.48)
    shares = ledger_of(seen).shares
    assert shares["host"] >= 0.25
    assert shares["launch"] == 0.0
    assert Engine().judge(seen).finding.kind == "host"
