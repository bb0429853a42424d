"""Evaluation inside training."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.messages import Loader
from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding, Verdict
from gpuwatch.tui.verdict.forecast.gain import gain_without
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.rules.evaluation import evaluation
from gpuwatch.tui.verdict.stack_samples import FrameShare, StackPhase, Stacks
from gpuwatch.tui.verdict.step_time import spent
from gpuwatch.tui.verdict.window import OpenStep, StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader, run, window, worker_use

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_a_slow_validation_loader_is_not_the_training_loader() -> None:
    """TraceML says input-bound, 73 %."""
    rows = run(
        100,
        lambda n: {**WORK, "evaluation_ms": 600 if n % 20 == 0 else 0, "startup_ms": 0},
    )
    judged = verdict(window(rows, loaders=(loader(2),)))
    assert judged.finding.kind == "evaluation"
    assert "input" not in [finding.kind for finding in judged.contributors]
    assert judged.finding.advice[0].startswith("evaluate every 3,")


@pytest.mark.parametrize(("size", "named"), [(1, True), (8, True), (32, False), (None, False)])
def test_an_evaluation_of_batches_of_one(size: int | None, named: bool) -> None:
    """57 % of a segmentation's time on an H200 went to 400 pictures one by one."""
    rows = run(100, lambda n: {**WORK, "evaluation_ms": 400 if n % 20 == 0 else 0})
    held_out = loader(batch_size=size, evaluation=True)
    found = evaluation(
        window(rows, loaders=(loader(batch_size=32),), evaluation_loaders=(held_out,))
    )
    assert found is not None
    assert found.advice[1].startswith(f"batch_size {size} → 32 in its loader") == named


def test_workers_that_an_evaluation_starts_are_the_evaluations() -> None:
    rows = run(
        100,
        lambda n: {
            **WORK,
            "evaluation_ms": 700 if n % 20 == 0 else 0,
            "evaluation_startup_ns": 400_000_000 if n % 20 == 0 else 0,
        },
    )
    judged = verdict(window(rows, loaders=(loader(2, iterations=1),)))
    assert judged.finding.kind == "evaluation"
    assert "input" not in [finding.kind for finding in judged.contributors]


def unmarked(share: float, function: str, samples: int = 200, **parts: Any) -> StepWindow:
    """A function under `no_grad` without a loader or a switch: no mark shows it."""
    phase: StackPhase = "evaluation"
    place = FrameShare(share, "linear (torch/nn/functional.py:9)", function, phase=phase)
    places = Stacks(samples, (place,), 0, (), None)
    rows = even(60, data_ms=1, forward_ms=60, backward_ms=30, **parts)
    return window(rows, stacks=places)


def test_evaluation_that_no_mark_shows_is_seen_by_samples() -> None:
    found = evaluation(unmarked(0.46, "estimate_loss (train.py:80)"))
    assert found is not None
    assert (found.kind, found.sub, found.share) == ("evaluation", None, 0.46)
    likely = forecast_of(found)
    assert likely is not None
    assert 1.0 < likely.low < 1 / 0.54 < (likely.high or 0), "no upper end without a GPU"
    assert "estimate_loss (train.py:80)" in found.evidence[0].text


def in_pauses(
    every: int, share: float, loaders: tuple[Loader, ...] = (), **beside: int
) -> StepWindow:
    """Steps of 10 ms, some of which hold 200 ms more, booked as forward where no loader is seen;
    and 57 samples, of which this part is in a function that evaluates."""
    held = {"other_ms": 200, **beside} if loaders else {"forward_ms": 204}
    rows = run(200, lambda n: {**WORK, "fetches": len(loaders), **(held if n % every == 0 else {})})
    place = FrameShare(share, "estimate_loss (train.py:80)", None, phase="evaluation")
    return window(rows, loaders=loaders, stacks=Stacks(57, (place,), 0, (), None))


@pytest.mark.parametrize("loaders", [(), (loader(0),)])
def test_an_evaluation_in_each_so_many_steps_is_measured_by_the_marks(
    loaders: tuple[Loader, ...],
) -> None:
    """Generated runs: 68 % of 57 samples, 42 % of the time (1521, 1.8x measured); 56 % and 71 %
    (1257, 3.5x)."""
    found = evaluation(in_pauses(40, 0.68, loaders))
    assert found is not None
    assert found.share == pytest.approx(200 / (200 + 40 * 9.7), abs=0.02)
    assert found.evidence[1].text.startswith("evaluation every 40 steps, 200 ms each")


def test_rollouts_between_updates_are_measured_by_the_marks_on_a_gpu_too() -> None:
    """CleanRL's PPO on an H200: one step in 16 takes 0.22 s longer, 71 % of the time, and of 76
    samples 43 % are in what acts by its source: "at most 1.8x", and 3.2x was measured."""
    rows = run(200, lambda n: {**WORK, "forward_ms": 204 if n % 16 == 0 else 4})
    place = FrameShare(0.43, "CartPoleEnv.step (gym/envs/cartpole.py:9)", None, phase="evaluation")
    parts = {"forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}
    places = Stacks(76, (place,), 0, (), None)
    seen = gpu_window(rows, parts, activity=activity(20, sm=5), stacks=places, loaders=())
    found = evaluation(seen)
    assert found is not None
    assert (found.sub, found.speedup_is) == ("rollout", "bound")
    assert found.share == pytest.approx(200 / (200 + 16 * 9.7), abs=0.02)
    assert found.speedup == pytest.approx((200 + 16 * 9.7) / (16 * 9.7), rel=0.05)


def test_an_evaluation_beside_a_checkpoint_is_measured_by_the_marks() -> None:
    """Generated runs 1765 and 1843 save in the steps that evaluate: 2.2x and 3.8x by 57 samples,
    1.7x and 2.5x measured."""
    found = evaluation(in_pauses(40, 0.5, (loader(0),), checkpoint_ms=8))
    assert found is not None
    assert found.share == pytest.approx(200 / (200 + 40 * 9.7), abs=0.02)


def between_measured_steps(lag_ms: float) -> Finding:
    """Samples show 30 % in an evaluation, the steps that the GPU's clock has measured hold none."""
    rows = even(100, data_ms=1, forward_ms=4, backward_ms=5, optimizer_ms=0.5)
    place = FrameShare(0.3, "estimate_loss (train.py:80)", None, phase="evaluation")
    parts = {"data_ms": 1, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5, "lag_ms": lag_ms}
    known = activity(70, sm=60)
    places = Stacks(56, (place,), 0, (), None)
    found = evaluation(gpu_window(rows, parts, activity=known, stacks=places, loaders=()))
    assert found is not None
    assert found.speedup is not None
    return found


def test_an_evaluation_between_measured_steps_gives_its_part() -> None:
    """nanoGPT on an H200: a replay of those steps gave 1.34x for 30 % of the time; 1.71x was
    measured. Generated runs 1889 and 2031: 3.9x and 4.8x by the part, "at most" 5.7x and 8.1x was
    said by its upper end, and 3.9x and 4.4x measured."""
    found = between_measured_steps(0.5)
    likely = forecast_of(found)
    assert found.speedup == pytest.approx(1 / 0.7)
    assert likely is not None
    assert likely.high is not None
    assert likely.kind == "estimate"
    assert 1.0 < likely.low < likely.speedup < 1.71 < likely.high


def test_an_evaluation_that_waits_for_the_training_is_not_all_its_own() -> None:
    """A net that is the limit, 0.9 of a step ahead of its GPU: 14 % of samples, 1.05x at most."""
    found = between_measured_steps(9.0)
    assert found.speedup_is == "bound"
    assert (found.speedup or 0) < 1.35


@pytest.mark.parametrize(("lag_ms", "share"), [(0.3, 0.23), (40.0, None)])
def test_pauses_in_which_an_evaluation_waits_for_the_training_cost_nothing(
    lag_ms: float, share: float | None
) -> None:
    """Generated run 1629: one batch of 1 ms every 40 steps, 40 ms behind as it reads its result.
    "Evaluation takes 20 % of the time" was said of a GPU that is busy for 95 %."""
    parts = {"forward_ms": 1.5, "backward_ms": 1.7}
    rows = run(400, lambda n: {**parts, "forward_ms": 41.5 if n % 40 == 0 else 1.5})
    place = FrameShare(0.26, "estimate_loss (train.py:80)", None, phase="evaluation")
    places, busy = Stacks(38, (place,), 0, (), None), activity(95, sm=86)
    seen = gpu_window(rows, {**parts, "lag_ms": lag_ms}, activity=busy, stacks=places, loaders=())
    found = evaluation(seen)
    assert found is None if share is None else found is not None
    assert found is None or found.share == pytest.approx(share, abs=0.02)


def test_pauses_that_are_not_what_the_samples_show_do_not_measure_it() -> None:
    found = evaluation(in_pauses(40, 0.12))
    assert found is not None
    assert found.share == pytest.approx(0.12), "three times as long: something else is in them"


def test_few_samples_may_miss_half_of_evaluations_that_are_alone_between_the_phases() -> None:
    """Generated run 2763: 24 % of 38 samples, 49 % of the time, 2.06x measured."""
    alone = in_pauses(20, 0.24, (loader(0),))
    found = evaluation(alone)
    assert found is not None
    assert found.share == pytest.approx(200 / (200 + 20 * 9.7), abs=0.02)
    assert alone.stacks is not None
    logs = FrameShare(0.1, "log (train.py:90)", None, phase="other")
    beside = replace(alone, stacks=replace(alone.stacks, main=(*alone.stacks.main, logs)))
    found = evaluation(beside)
    assert found is not None
    assert found.share == pytest.approx(0.24), "nobody knows which of them is long"


def test_the_function_that_evaluates_is_named_and_not_one_that_training_calls_too() -> None:
    """nanoGPT's `get_batch` was named, which its `estimate_loss` calls."""
    trains = ("<module> (train.py:303)", "get_batch (train.py:125)")
    evaluates = ("<module> (train.py:264)", "estimate_loss (train.py:222)", trains[1])
    phases: dict[tuple[str, ...], StackPhase] = {trains: "data", evaluates: "evaluation"}
    stacks = [
        StackCount(role="main", pid=1, thread="", frames=frames, count=100) for frames in phases
    ]
    seen = unmarked(0.5, "")
    seen = replace(seen, stacks=summarise(stacks, lambda stack: phases[stack.frames]))
    found = evaluation(seen)
    assert found is not None
    assert "are in estimate_loss (train.py:222)" in found.evidence[0].text
    assert found.advice[0] == "evaluate less often: estimate_loss (train.py:222)"


def test_of_an_evaluation_without_a_function_the_line_is_named() -> None:
    seen = unmarked(0.5, "")
    own = "<module> (ode_demo.py:170)"
    line = "pred_y = odeint(func, true_y0, t)"
    places = (
        FrameShare(0.1, "F.mse_loss (torch/nn/functional.py:3)", own, phase="evaluation"),
        FrameShare(0.4, "Linear.forward (torch/nn/modules/linear.py:9)", own, line, "evaluation"),
    )
    assert seen.stacks is not None
    found = evaluation(replace(seen, stacks=replace(seen.stacks, main=places)))
    assert found is not None
    assert found.advice[0] == f'evaluate less often: {own}: "{line}"'
    unread = tuple(replace(one, line="") for one in places)
    found = evaluation(replace(seen, stacks=replace(seen.stacks, main=unread)))
    assert found is not None
    assert found.advice[0].endswith("that no mark shows")


def test_a_first_evaluation_under_way_has_no_share_yet() -> None:
    """The batches of a first epoch lay ready: 24 steps in 0.4 s, then 2 s of evaluation."""
    seen = unmarked(0.97, "validate (train.py:80)")
    lasted_s = spent(seen.steps).wall_ns / 1e9
    now = OpenStep("forward", 0.1, lasted_s, evaluating=False, frame=None)
    assert evaluation(replace(seen, open_step=now)) is None
    assert evaluation(replace(seen, open_step=replace(now, step_age_s=lasted_s / 2))) is not None


def test_few_samples_of_an_evaluation_are_no_finding() -> None:
    assert evaluation(unmarked(0.1, "estimate_loss (train.py:80)", samples=20)) is None


def test_the_kernels_of_an_evaluation_that_the_host_waits_for_are_its_own() -> None:
    """A graph network that evaluates its whole graph in each epoch: 1.53x without, and "the GPU is
    the limit" of a host that works for 1.4 of its 23 ms."""
    rows = even(60, forward_ms=21.5, backward_ms=1.5, optimizer_ms=0.4, other_ms=0.1)
    parts = {"forward_ms": 16.8, "backward_ms": 6.5, "optimizer_ms": 0.1, "lag_ms": 4.7}
    line = "[int((pred[mask] == y[mask]).sum()) for mask in masks]"
    tests = FrameShare(0.4, "test (graph_net.py:92)", None, phase="evaluation", line=line)
    waits = FrameShare(
        0.2, "train (graph_net.py:86)", None, phase="synchronisation", line=".item()"
    )
    places = Stacks(200, (tests, waits), 0, (), None)
    known = activity(94, sm=90, tensor=1, fp32=4, dram=34)
    seen = gpu_window(rows, parts, activity=known, stacks=places)
    found = evaluation(seen)
    assert found is not None
    assert found.speedup is not None
    assert 1.4 < found.speedup < 2.0
    assert verdict(seen).finding.kind == "evaluation"


@pytest.mark.parametrize(("lag_ms", "least", "most"), [(0.7, 1.25, 1.45), (19.0, 1.0, 1.1)])
def test_the_kernels_of_an_evaluation_that_counts_as_forward_are_its_own(
    lag_ms: float, least: float, most: float
) -> None:
    """ogb's GCN tests in each epoch, without a loader: "a fix gives back about 1 %", and 1.54x was
    measured. Where the GPU is a step behind its first result waits for the training."""
    rows = even(60, data_ms=0, forward_ms=10.2, backward_ms=9.3, optimizer_ms=0.6, other_ms=0.1)
    parts = {"forward_ms": 12, "backward_ms": 8, "optimizer_ms": 0.1, "lag_ms": lag_ms}
    tests = FrameShare(0.26, "test (gnn.py:92)", None, phase="evaluation", line="y[mask].sum()")
    places = Stacks(200, (tests,), 0, (), None)
    busy = activity(98, sm=90, tensor=1, fp32=4, dram=34)
    gain = gain_without("evaluation", gpu_window(rows, parts, activity=busy, stacks=places))
    assert gain is not None
    assert least <= gain.speedup <= most


@pytest.mark.parametrize(
    ("cpu", "ready", "most", "kind"),
    [(20, 2, 1.8, "estimate"), (85, 2, 1.2, "estimate"), (20, 0, 1.8, "bound")],
    ids=["a loader with time", "busy workers", "batches that are late"],
)
def test_an_evaluation_gives_no_more_than_its_loader_allows(
    cpu: float, ready: int, most: float, kind: str
) -> None:
    """On a GPU that keeps up; workers that make batches 85 % of the time leave 1.18x."""
    given = {"fetches": 1, "ready": ready}
    rows = even(60, data_ms=0.1, forward_ms=20, backward_ms=2, optimizer_ms=0.4, **given)
    parts = {"forward_ms": 2, "backward_ms": 2, "optimizer_ms": 0.1, "lag_ms": 0.1}
    tests = FrameShare(0.4, "test (gnn.py:92)", None, phase="evaluation")
    found = evaluation(
        gpu_window(
            rows,
            parts,
            activity=activity(20, sm=5),
            stacks=Stacks(200, (tests,), 0, (), None),
            loaders=(loader(2),),
            workers=worker_use(2, cpu),
        )
    )
    assert found is not None
    assert most - 0.2 < (found.speedup or 0.0) <= most
    assert found.speedup_is == kind


def test_an_inference_is_no_evaluation() -> None:
    assert evaluation(unmarked(0.9, "evaluate (infer.py:9)", backwards=0, inference=True)) is None


def test_a_rhythm_needs_three() -> None:
    once = run(100, lambda n: {**WORK, "evaluation_ms": 900 if n == 30 else 0})
    assert evaluation(window(once)) is None, "an event is no share"
    twice = run(100, lambda n: {**WORK, "evaluation_ms": 900 if n in (30, 60) else 0})
    found = evaluation(window(twice))
    assert found is not None
    assert found.evidence[0].text.startswith("2 evaluations so far")
    assert "every" not in found.evidence[0].text
    rows = run(100, lambda n: {**WORK, "evaluation_ms": 900 if n in (20, 50, 80) else 0})
    found = evaluation(window(rows))
    assert found is not None
    assert found.evidence[0].text.startswith("evaluation every 30 steps, 900 ms each")
