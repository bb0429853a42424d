"""Missing signals that the verdict would rest on."""

from dataclasses import replace
from typing import Any

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import MissingSignal, Verdict
from gpuwatch.tui.verdict.rules.compute import compute
from gpuwatch.tui.verdict.rules.incomplete import idle_gpu
from gpuwatch.tui.verdict.scoring import missing_of
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, stacks, window

WORK: dict[str, Any] = {"data_ms": 0.2, "forward_ms": 4, "backward_ms": 5, "optimizer_ms": 0.5}


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_a_loop_whose_fetches_nobody_sees_is_incomplete() -> None:
    rows = even(60, forward_ms=40, backward_ms=20, fetches=0)
    finding = verdict(window(rows, loaders=())).finding
    assert (finding.kind, finding.sub) == ("incomplete", "loader")
    assert "probe.wrap" in finding.advice[0]


def test_a_loop_without_a_loader_whose_samples_leave_none_for_batches_is_complete() -> None:
    """On a CPU nothing but samples parts the making of a batch from the forward."""
    rows = even(60, forward_ms=40, backward_ms=20, fetches=0)
    net = stacks([(0.9, "forward (model.py:12)", "<module> (train.py:9)")])
    seen = Engine().judge(window(rows, loaders=(), stacks=replace(net, main_unplaced=0.04)))
    assert seen.finding.kind == "healthy"
    assert any("4% of the samples are beside the net" in e.text for e in seen.finding.evidence)
    more = window(rows, loaders=(), stacks=replace(net, main_unplaced=0.12))
    assert verdict(more).finding.sub == "loader"


def test_time_that_nobody_claims_is_reported() -> None:
    finding = verdict(window(even(60, **WORK, unknown_ms=5))).finding
    assert (finding.kind, finding.sub) == ("incomplete", "unattributed")
    bigger = even(60, **WORK, unknown_ms=5, other_ms=20)
    assert verdict(window(bigger)).finding.kind == "host"


LAUNCHING = even(60, data_ms=0.2, forward_ms=12, backward_ms=16, optimizer_ms=4)

LAUNCHING_ON_GPU = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 4}


def test_a_badly_aligned_clock_is_reported() -> None:
    seen = gpu_window(LAUNCHING, {**LAUNCHING_ON_GPU, "uncertain_ns": 400_000})
    assert any("not aligned well enough" in one.why for one in missing_of(seen))
    found = compute(seen)
    assert found is not None
    assert "kernel launches are the limit" in found.headline


def test_an_idle_gpu_is_not_called_the_limit_before_stacks_are_there() -> None:
    steps = even(60, data_ms=0.2, forward_ms=12, backward_ms=8, optimizer_ms=2)
    on_gpu = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 8, "optimizer_ms": 2, "lag_ms": 3}
    early = Engine().judge(gpu_window(steps, on_gpu, activity=activity(60))).finding
    assert (early.kind, early.sub, early.advice) == ("incomplete", "stacks", ())
    never = (MissingSignal("stacks", "py-spy is not installed"),)
    without = gpu_window(steps, on_gpu, activity=activity(60), missing=never)
    assert Engine().judge(without).finding.advice == ("enable py-spy: see `gpuwatch doctor`",)
    main = stacks([(0.9, "forward (model.py:12)", None)])
    later = Engine().judge(gpu_window(steps, on_gpu, activity=activity(60), stacks=main)).finding
    assert later.kind == "launch"
    assert "for 63% of the time it had no launch queued" in later.evidence[0].text


def test_a_gpu_that_idles_for_many_small_reasons_is_not_the_limit() -> None:
    """Each part of its idle time is below a tenth of the time: they are named, and none leads."""
    steps = even(60, data_ms=6, forward_ms=40, backward_ms=45, optimizer_ms=2, other_ms=7)
    on_gpu = {"data_ms": 6, "forward_ms": 40, "backward_ms": 45, "optimizer_ms": 2, "other_ms": 7}
    main = stacks([(0.9, "forward (model.py:12)", None), (0.05, "log (train.py:9)", None)])
    seen = gpu_window(steps, {**on_gpu, "lag_ms": 41}, activity=activity(81), stacks=main)
    found = Engine().judge(seen).finding
    assert (found.kind, found.sub) == ("incomplete", "idle")
    assert "the GPU is idle 19% of the time, and no single cause holds 10%" in found.headline
    assert "Python 7%" in found.headline
    full = gpu_window(steps, {**on_gpu, "lag_ms": 41}, activity=activity(86), stacks=main)
    assert Engine().judge(full).finding.kind == "compute"


def test_a_cause_that_holds_a_tenth_is_not_said_to_hold_less() -> None:
    """ "No single cause holds 10%: launching 15%" stood over an LSTM whose launches may give that
    back or not."""
    main = stacks([(0.9, "forward (model.py:12)", None)])
    seen = gpu_window(LAUNCHING, LAUNCHING_ON_GPU, activity=activity(70), stacks=main)
    found = idle_gpu(seen)
    assert found is not None
    assert found.headline.startswith("the GPU is idle 30% of the time: launching ")


def test_a_busy_gpu_is_the_limit_whatever_the_loader() -> None:
    """A loop that draws its tokens in a function of its own."""
    rows = even(60, forward_ms=40, backward_ms=20, fetches=0)
    on_gpu = {"forward_ms": 40, "backward_ms": 20, "lag_ms": 60}
    main = stacks([(0.9, "forward (model.py:12)", None)])
    seen = gpu_window(rows, on_gpu, activity=activity(99), stacks=main, loaders=())
    assert Engine().judge(seen).finding.kind == "compute"
    unplaced = gpu_window(rows, on_gpu, activity=activity(70), stacks=main, loaders=())
    assert Engine().judge(unplaced).finding.sub == "loader"
    placed = replace(main, main_unplaced=0.02)
    idle = gpu_window(rows, on_gpu, activity=activity(70), stacks=placed, loaders=())
    assert Engine().judge(idle).finding.sub == "idle", "no sample is where batches may be made"


def fetched(samples: int, of: int) -> Stacks:
    """Samples of a loop that marks no fetch: so many are in a function that makes a batch."""
    rest = FrameShare((of - samples) / of, "forward (model.py:12)", None, phase="forward")
    made = FrameShare(samples / of, "get_batch (train.py:8)", None, phase="data")
    return Stacks(of, (rest, made) if samples else (rest,), 0, (), None, main_unplaced=0.0)


def test_samples_that_exclude_a_wait_make_up_for_fetches_that_nobody_marks() -> None:
    rows = even(60, forward_ms=40, backward_ms=20, fetches=0)
    for samples, kind in ((0, "healthy"), (1, "healthy"), (4, "incomplete")):
        found = verdict(window(rows, loaders=(), stacks=fetched(samples, 38)))
        assert found.finding.kind == kind, samples
    likely = verdict(window(rows, loaders=(), stacks=fetched(3, 38)))
    assert likely.finding.kind == "healthy"
    assert 0.5 < likely.confidence < 0.7, "three of 38 leave a chance of a third"
    few = verdict(window(rows, loaders=(), stacks=fetched(0, 12)))
    assert few.finding.kind == "incomplete", "a dozen samples exclude nothing"
    one = verdict(window(rows, loaders=(), stacks=fetched(1, 38))).finding
    assert any("(at most 11% of the time)" in each.text for each in one.evidence)
