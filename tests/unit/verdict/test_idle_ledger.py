"""Where the GPU's time goes: every part of it once, and what nothing explains by that name."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.messages import Loader
from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.verdict.busy_parts import BUSY
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.forecast.measured import replay_of
from gpuwatch.tui.verdict.idle_ledger import (
    IDLE,
    IdleLedger,
    Part,
    idle_ledger,
)
from gpuwatch.tui.verdict.rules.allocator import allocator
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.rules.input import input_bound
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.rules.sync import sync
from gpuwatch.tui.verdict.stack_samples import FrameShare, StackPhase, Stacks
from gpuwatch.tui.verdict.window import StepWindow, WorkerUse
from tests.unit.verdict.on_gpu import activity, gpu_step, gpu_window
from tests.unit.verdict.windows import MIB, S, even, loader, run, stacks, window

FORWARD = stacks([(0.97, "forward (model.py:12)", None)])
PHASES = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 4}


def ledger_of(seen: StepWindow) -> IdleLedger:
    ledger = idle_ledger(seen)
    assert ledger is not None
    assert sum(ledger.shares.values()) == pytest.approx(1.0)
    assert min(ledger.shares.values()) >= 0.0
    assert set(ledger.shares) == {*BUSY, *IDLE}
    return ledger


def largest(ledger: IdleLedger) -> Part:
    return max(IDLE, key=ledger.shares.__getitem__)


def test_idle_time_within_the_phases_is_launching_though_the_gpu_is_behind_at_their_ends() -> None:
    """GPT-2 124M in eager mode: 0.9 ms behind at every mark, and idle between kernels for half of
    the time. A CUDA graph makes it 2.2 times as fast."""
    steps = even(60, forward_ms=7, backward_ms=10, optimizer_ms=2.5, data_ms=0.1)
    on_gpu = {"forward_ms": 7, "backward_ms": 10, "optimizer_ms": 2.5, "data_ms": 0.1}
    seen = gpu_window(steps, {**on_gpu, "lag_ms": 0.9}, activity=activity(49.0), stacks=FORWARD)
    assert ledger_of(seen).shares["launch"] == pytest.approx(0.5, abs=0.02)
    judged = Engine().judge(seen)
    assert judged.finding.kind == "launch"
    assert judged.finding.speedup == pytest.approx(2.0, rel=0.1)
    assert "CUDA graph" in judged.finding.advice[0]


def test_what_was_queued_as_a_phase_began_is_not_short_of_launches() -> None:
    """The GPU is two steps behind at every mark: whatever it idles for, it is not that."""
    seen = gpu_window(
        even(60, **PHASES), {**PHASES, "lag_ms": 64}, activity=activity(70.0), stacks=FORWARD
    )
    ledger = ledger_of(seen)
    assert ledger.shares["launch"] == 0.0
    assert ledger.unexplained == pytest.approx(0.3, abs=0.01)
    assert launch(seen) is None
    found = Engine().judge(seen).finding
    assert (found.kind, found.sub) == ("incomplete", "idle")
    assert "29% for no cause that shows" in found.headline


@pytest.mark.parametrize("busy", [3.0, 40.0, 84.0, 100.0])
def test_it_always_adds_up(busy: float) -> None:
    """Whatever waits, copies and sleeps are seen: together they hold no more than the idle time."""
    steps = even(60, **{**PHASES, "data_ms": 8.0, "other_ms": 9.0, "checkpoint_ms": 2.0})
    on_gpu = {**PHASES, "data_ms": 8.0, "other_ms": 9.0}
    main = stacks(
        [
            (0.4, "train (train.py:40)", None, "loss.item()"),
            (0.3, "train (train.py:30)", None, "images = images.to(device)"),
            (0.2, "empty_cache (torch/cuda/memory.py:224)", "train (train.py:34)"),
        ]
    )
    crowd = {"thread_cpu": 0.2, "run_delay": 0.0}
    seen = gpu_window(steps, on_gpu, activity=activity(busy), stacks=main, **crowd)
    assert ledger_of(seen).busy == pytest.approx(busy / 100)


def test_without_counters_the_marks_show_how_long_it_may_have_idled() -> None:
    behind = gpu_window(even(60, **PHASES), {**PHASES, "lag_ms": 64}, stacks=FORWARD)
    assert ledger_of(behind).shares["busy"] == pytest.approx(0.99, abs=0.01)
    caught_up = ledger_of(gpu_window(even(60, **PHASES), PHASES, stacks=FORWARD))
    assert caught_up.source == "event"
    assert caught_up.shares["launch"] == 0.0, "no counter says that it was idle"
    assert caught_up.unexplained == pytest.approx(0.99, abs=0.01)


def test_products_in_fp32_and_empty_multiprocessors_are_not_used_well() -> None:
    steps = even(60, **PHASES)
    behind = {**PHASES, "lag_ms": 64}
    units = {"tensor": 0.0, "fp32": 77.0, "dram": 5.0}
    fp32 = gpu_window(steps, behind, activity=activity(100.0, **units), stacks=FORWARD)
    assert ledger_of(fp32).shares["fp32"] == pytest.approx(1.0)
    units = {"sm": 20.0, "tensor": 5.0, "fp32": 3.0, "dram": 8.0}
    empty = gpu_window(steps, behind, activity=activity(100.0, **units), stacks=FORWARD)
    assert ledger_of(empty).shares["underfilled"] == pytest.approx(0.8)
    others = activity(100.0, sm=90.0, tensor=60.0, fp32=1.0, dram=20.0, others=1, others_sm=30.0)
    shared = ledger_of(gpu_window(steps, behind, activity=others, stacks=FORWARD))
    assert shared.shares["others"] == pytest.approx(0.3)
    assert shared.shares["used"] == pytest.approx(0.7)


# -- who holds which part ----------------------------------------------------------------------


def placed(*places: tuple[float, str, str, StackPhase], samples: int = 200) -> Stacks:
    """Samples of the main thread: (share, frame, line, phase)."""
    main = tuple(
        FrameShare(share, frame, None, line, phase, samples, ends_workers="popen" in frame)
        for share, frame, line, phase in places
    )
    return Stacks(samples, main, 0, (), None)


def test_a_stack_inside_the_fetch_belongs_to_the_fetch() -> None:
    """A dataset that reads a tensor's value waits for the GPU, and the step waits for the batch."""
    steps = even(60, data_ms=50, forward_ms=1, backward_ms=2, optimizer_ms=0.2)
    on_gpu = {"data_ms": 50, "forward_ms": 1, "backward_ms": 2, "optimizer_ms": 0.2}
    line = "return self.table[index].item()"
    main = placed(
        (0.43, "__getitem__ (photos.py:20)", line, "data"),
        (0.5, "__getitem__ (photos.py:19)", "image = load(index)", "data"),
    )
    seen = gpu_window(steps, on_gpu, activity=activity(4.0), stacks=main, loaders=(loader(0),))
    assert sync(seen) is None
    judged = Engine().judge(seen)
    assert judged.finding.kind == "input"
    assert sum(one.share or 0.0 for one in (judged.finding, *judged.contributors)) <= 1.0


def test_starting_workers_and_ending_them_is_one_cause() -> None:
    """The end of an epoch is Python between the phases by the marks, and the loader's by its
    stacks."""
    rows = even(100, data_ms=1, startup_ms=20, forward_ms=35, backward_ms=30, other_ms=14)
    on_gpu = {"data_ms": 1, "startup_ms": 20, "forward_ms": 35, "backward_ms": 30, "other_ms": 14}
    main = placed(
        (0.14, "poll (popen_fork.py:27)", "for batch in loader:", "data"),
        (0.6, "forward (model.py:12)", "", "forward"),
    )
    for seen in (
        gpu_window(rows, on_gpu, activity=activity(20.0), stacks=main, loaders=(loader(4),)),
        gpu_window(rows, on_gpu, stacks=main, loaders=(loader(4),)),
    ):
        assert host(seen) is None
        found = input_bound(seen)
        assert found is not None
        assert found.share == pytest.approx(0.35, abs=0.01)
        assert found.sub == "epoch-start"
        assert "persistent_workers" in found.advice[0]


def reading(step: int, **fields: Any) -> GpuMemory:
    given = {"device_allocs": 100, "retries": 0, **fields}
    return GpuMemory(
        t_ns=S * step,
        step=step,
        device=0,
        allocated=100 * MIB,
        reserved=200 * MIB,
        active=100 * MIB,
        peak_allocated=150 * MIB,
        peak_reserved=200 * MIB,
        at_backward=None,
        ooms=0,
        **given,
    )


def test_a_device_that_is_asked_for_memory_in_each_step_is_the_allocators() -> None:
    """`empty_cache()` in each step: 12 segments a step at half a millisecond, and fewer launches
    would not help."""
    given: dict[str, Any] = {"activity": activity(80.0), "stacks": FORWARD}
    memory = (reading(20), reading(60, device_allocs=100 + 12 * 40))
    seen = gpu_window(even(60, **PHASES), PHASES, gpu_memory=memory, **given)
    assert ledger_of(seen).shares["allocator"] == pytest.approx(12 * 0.5 / 32.2, abs=0.01)
    found = allocator(seen)
    assert found is not None
    assert "12.0 segments" in " ".join(one.text for one in found.evidence)
    assert Engine().judge(seen).finding.kind == "allocator"
    calm = gpu_window(even(60, **PHASES), PHASES, gpu_memory=(reading(20), reading(60)), **given)
    assert allocator(calm) is None
    assert Engine().judge(calm).finding.kind == "launch"


def test_retries_may_have_taken_any_time() -> None:
    memory = (reading(20), reading(60, retries=5))
    seen = gpu_window(
        even(60, **PHASES), PHASES, gpu_memory=memory, activity=activity(23.0), stacks=FORWARD
    )
    assert ledger_of(seen).shares["allocator"] == pytest.approx(0.76, abs=0.01)
    assert launch(seen) is None


def test_workers_that_hold_the_cores_of_the_training_are_the_loaders() -> None:
    """64 workers on 16 cores: the launching thread waits with them, and fewer are the cure."""
    crowd = WorkerUse(64, 25.0, 0.0, 0.0, run_delay=0.45)
    given: dict[str, Any] = {"activity": activity(30.0), "stacks": FORWARD, "cores": 16.0}
    seen = gpu_window(even(60, **PHASES), PHASES, workers=crowd, loaders=(loader(64),), **given)
    assert largest(ledger_of(seen)) == "input"
    found = Engine().judge(seen).finding
    assert (found.kind, found.sub) == ("input", "oversubscribed")
    few = WorkerUse(8, 25.0, 0.0, 0.0, run_delay=0.0)
    calm = gpu_window(even(60, **PHASES), PHASES, workers=few, loaders=(loader(8),), **given)
    assert largest(ledger_of(calm)) == "launch"


# -- what samples are enough for ---------------------------------------------------------------


def waiting(hits: int, of: int) -> StepWindow:
    """So many of the samples at a line that waits for the GPU, which idles for 20 % of the time."""
    steps = even(60, forward_ms=20, backward_ms=20, other_ms=0.2)
    on_gpu = {"forward_ms": 20, "backward_ms": 20, "other_ms": 0.2, "lag_ms": 45}
    main = placed(
        (hits / of, "train (train.py:40)", "loss.item()", "other"),
        (1 - hits / of, "forward (model.py:12)", "", "forward"),
        samples=of,
    )
    return gpu_window(steps, on_gpu, activity=activity(80.0), stacks=main)


def test_two_of_twenty_samples_are_no_claim() -> None:
    """Wilson's 90 % interval of them begins at 3 %."""
    assert sync(waiting(2, 20)) is None
    found = sync(waiting(20, 200))
    assert found is not None
    assert found.share == pytest.approx(0.1)
    assert found.share_low == pytest.approx(0.07, abs=0.005)
    assert "20 of 200 main-thread samples (10%)" in found.evidence[1].text


def test_the_number_of_samples_is_in_the_evidence() -> None:
    found = sync(waiting(40, 100))
    assert found is not None
    assert any("40 of 100 main-thread samples" in one.text for one in found.evidence)


def test_a_long_step_among_few_that_were_measured_weighs_as_one_of_all() -> None:
    """One step in ten is measured, and so is that with the evaluation that no mark shows: a tenth
    of a second between the phases is in one step of a hundred, and not of ten."""
    rows = run(
        105,
        lambda n: {"forward_ms": 5, "backward_ms": 5, "other_ms": 500 if n == 60 else 0.5},
    )
    whole = window(rows, gpu_present=True, activity=activity(10.0), stacks=FORWARD)
    measured = tuple(
        gpu_step(row, forward_ms=5, backward_ms=5, other_ms=row.other_ns / 1e6)
        for row in whole.steps
        if row.number % 10 == 0
    )
    seen = replace(whole, gpu_steps=measured)
    between = 550 / (100 * 10.5 + 500)
    assert ledger_of(seen).shares["host"] == pytest.approx(between, abs=0.01)
    record = replay_of(seen)
    assert record is not None
    assert record.step_ns == pytest.approx(15.5e6, rel=0.01)


def test_steps_of_a_millisecond_that_travel_in_pairs_are_launching_too() -> None:
    """The host's rows held two steps each and the GPU's one: none of these had its pair, 55 % of
    the time was unexplained idle, and the launches of a net replayed as a graph, of which one of
    the whole step gave 2x, were no verdict after ten seconds."""
    rows = even(60, count=2, forward_ms=0.8, backward_ms=1.2, optimizer_ms=0.4, other_ms=0.1)
    whole = window(rows, gpu_present=True, activity=activity(43.0), stacks=FORWARD)
    times = {"forward_ms": 0.4, "backward_ms": 0.6, "optimizer_ms": 0.2, "other_ms": 0.05}
    measured = tuple(
        gpu_step(structs.replace(row, number=row.number - at % 2, count=1), **times)
        for at, row in enumerate(rows[::3])
    )
    seen = replace(whole, gpu_steps=measured)
    assert ledger_of(seen).shares["launch"] == pytest.approx(0.53, abs=0.03)
    record = replay_of(seen)
    assert record is not None
    assert record.step_ns == pytest.approx(1.25e6, rel=0.01)
    found = launch(seen)
    assert found is not None
    assert "whole step with its optimizer" in found.advice[0]


def test_giving_back_a_batch_is_the_loaders() -> None:
    """At the line that takes the next one: the memory that a worker shared goes back."""
    rows = even(100, data_ms=10, forward_ms=35, backward_ms=35, other_ms=20)
    on_gpu = {"data_ms": 10, "forward_ms": 35, "backward_ms": 35, "other_ms": 20}
    main = placed(
        (0.18, "train (train.py:30)", "for images, labels in loader:", "data"),
        (0.1, "next (torch/utils/data/dataloader.py:700)", "", "data"),
        (0.72, "linear (torch/nn/functional.py:9)", "", "forward"),
    )
    seen = gpu_window(rows, on_gpu, activity=activity(20.0), stacks=main, loaders=(loader(4),))
    assert host(seen) is None
    found = input_bound(seen)
    assert found is not None
    assert found.share == pytest.approx(0.28, abs=0.01)
    assert found.speedup == pytest.approx(1 / (1 - 0.28), rel=0.03)


def test_a_rollout_that_no_mark_shows_is_no_launching() -> None:
    """PPO: the net acts for seven tenths of the time, in what the marks call forward."""
    rows = even(60, forward_ms=90, backward_ms=10, fetches=0)
    on_gpu = {"forward_ms": 90, "backward_ms": 10}
    main = placed(
        (0.7, "linear (torch/nn/functional.py:9)", "", "evaluation"),
        (0.3, "linear (torch/nn/functional.py:9)", "", "forward"),
    )
    seen = gpu_window(rows, on_gpu, activity=activity(5.0), stacks=main, loaders=())
    shares = ledger_of(seen).shares
    assert shares["pauses"] == pytest.approx(0.67, abs=0.02)
    assert shares["launch"] == pytest.approx(0.28, abs=0.02)
    assert Engine().judge(seen).finding.kind == "evaluation"


def evaluating(
    share: float,
    between: tuple[float, str, str],
    parts: dict[str, Any],
    busy: float,
) -> StepWindow:
    """A loop over a loader whose evaluation no mark has, and a place between its phases."""
    linear = "linear (torch/nn/functional.py:9)"
    main = placed(
        (share, linear, "", "evaluation"),
        (*between, "other"),
        (1 - share - between[0], linear, "", "forward"),
    )
    given: dict[str, Any] = {"activity": activity(busy), "stacks": main, "loaders": (loader(0),)}
    return gpu_window(even(60, **parts), parts, **given)


def test_python_beside_an_evaluation_that_no_mark_shows_is_the_hosts() -> None:
    """A logger of 14 ms in each step of 35: what the evaluation takes was taken off twice."""
    parts = {"data_ms": 1, "forward_ms": 12, "backward_ms": 12, "other_ms": 75}
    write = (0.35, "write (log.py:9)", "")
    shares = ledger_of(evaluating(0.4, write, parts, busy=10.0)).shares
    assert shares["pauses"] == pytest.approx(0.36, abs=0.02)
    assert shares["host"] == pytest.approx(0.35, abs=0.02)


def test_the_gpus_own_work_between_the_phases_is_not_the_hosts() -> None:
    """Averages of the parameters keep the GPU busy there, an evaluation has most of the rest: what
    is idle lies within the phases."""
    parts = {"data_ms": 1, "forward_ms": 24, "backward_ms": 25, "other_ms": 50}
    average = (0.2, "lerp_ (torch/_tensor.py:9)", "average.lerp_(each, 0.1)")
    assert ledger_of(evaluating(0.3, average, parts, busy=75.0)).shares["host"] < 0.01


@pytest.mark.parametrize("loaders", [(loader(0),), ()])
def test_a_sleep_of_the_users_leaves_the_gaps_to_launching(loaders: tuple[Loader, ...]) -> None:
    """A logger that waits for a service for half of each step: a third of the GPU's time was idle
    for no cause that showed, and a graph gave 1.4x. In a loop without a loader its time counts as
    the forward's (generated run 1815)."""
    parts = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 4, "other_ms": 32}
    if not loaders:
        parts = {"forward_ms": 44.2, "backward_ms": 16, "optimizer_ms": 4, "fetches": 0}
    waits = FrameShare(0.5, "send (log.py:9)", None, "reply = recv()", "other")
    rest = FrameShare(0.5, "linear (torch/nn/functional.py:9)", "forward (a.py:3)", phase="forward")
    seen = gpu_window(
        *(even(60, **parts), parts),
        activity=activity(12.0),
        run_delay=0.0,
        main_cpu_percent=25.0,
        stacks=Stacks(200, (waits, rest), 0, (), None),
        loaders=loaders,
    )
    ledger = ledger_of(seen)
    assert ledger.shares["host"] == pytest.approx(0.5, abs=0.02)
    assert ledger.shares["launch"] == pytest.approx(0.38, abs=0.02)
    assert ledger.unexplained < 0.01
