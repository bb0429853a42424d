"""The optimizer: its share of the step, and the first advice on it."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.between_phases import clipped_part
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.forecast.gain import with_the_other_way
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.rules.optimizer import for_this_optimizer, optimizer
from gpuwatch.tui.verdict.scoring import state, worth
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.thresholds.hysteresis import ENTER_LOW
from gpuwatch.tui.verdict.window import InCollectives, StepWindow
from tests.unit.verdict.advice_runs import optimizing
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import gpu_window
from tests.unit.verdict.windows import even, loader, run, stacks, watch, window


def verdict(seen: StepWindow) -> Verdict:
    return Engine().judge(seen)


def test_a_heavy_optimizer() -> None:
    rows = even(60, data_ms=1, forward_ms=10, backward_ms=20, optimizer_ms=60)
    assert verdict(window(rows)).finding.kind == "optimizer"


def test_accumulation_amortises_the_optimizer() -> None:
    part = {"forward_ms": 80, "backward_ms": 160, "optimizer_ms": 15}
    rows = even(60, **part, fetches=8, backwards=8, optimizer_steps=1)
    assert verdict(window(rows)).finding.kind == "healthy"


def test_an_ordinary_optimizer_of_a_small_net_is_part_of_training() -> None:
    judged = watch(even(60, forward_ms=28, backward_ms=56, optimizer_ms=13))
    assert judged[-1][1].finding.kind == "healthy"


def test_the_same_action_is_no_other_way() -> None:
    mended = replace(state("optimizer", None, "warning", ""), advice=("fused=True", "rarely"))
    launches = replace(
        state("launch", None, "warning", ""), advice=("in the optimizer: fused=True",)
    )
    others = replace(state("sync", None, "warning", ""), advice=("read it rarely",))
    found = with_the_other_way(mended, (launches, others), ("launch", "sync"))
    assert found.advice[0] == "fused=True"
    assert found.advice[1].startswith("or instead: read it rarely")
    assert len(found.advice) == 3


def test_one_large_tensor_wants_fewer_rows_though_its_optimizer_is_fused() -> None:
    """Measured on an H200: an embedding of 6 GB, whose fused Adam took 89 % of a step."""
    table = {"parameters": 1, "parameter_bytes": 6_144_000_000}
    window = optimizing(optimizer="Adam", fused=True, **table)
    assert not any("sparse" in advice for advice in for_this_optimizer(window)), "a wide layer?"
    one = for_this_optimizer(replace(window, stacks=EMBEDDING))
    many = for_this_optimizer(optimizing(optimizer="Adam", fused=True))
    assert "SparseAdam" in one[0]
    assert "accumulate" in many[0]
    sparse = replace(optimizing(optimizer="SparseAdam", **table), stacks=EMBEDDING)
    assert not any("sparse=True" in advice for advice in for_this_optimizer(sparse)), "it is"


EMBEDDING = Stacks(
    100, (FrameShare(0.02, "embedding_bag (torch/nn/functional.py:2726)", None),), 0, (), None
)


def test_the_optimizer_by_the_gpus_clock() -> None:
    steps = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=30)
    on_gpu = {"forward_ms": 16, "backward_ms": 16, "optimizer_ms": 3.0, "lag_ms": 20}
    assert optimizer(gpu_window(steps, {**on_gpu, "optimizer_ms": 1.0})) is None
    found = optimizer(gpu_window(steps, on_gpu))
    assert found is not None
    assert found.share == pytest.approx(3 / 35, abs=0.01)
    assert found.evidence[0].source == "event"


CLIPS = "_get_total_norm (torch/nn/utils/clip_grad.py:75)"


def clipping(share: float) -> StepWindow:
    """Ten of 60 ms lie between the backward and the optimizer."""
    clip = FrameShare(share, CLIPS, "train (a.py:9)")
    other = FrameShare(0.02, "log (a.py:12)", None, phase="other")
    rows = even(60, data_ms=1, forward_ms=19, backward_ms=20, other_ms=16, optimizer_ms=4)
    return window(rows, stacks=Stacks(100, (clip, other), 0, (), None))


@pytest.mark.parametrize(
    ("held", "known", "within"),
    [
        (4_100_000_000, {}, (1.6, 1.8)),
        (100_000_000, {}, (1.6, 3.6)),
        (4_100_000_000, {"optimizer": "RAdam"}, None),
        (4_100_000_000, {"foreach": False}, None),
    ],
    ids=["memory is the limit", "it waits for launches", "no fused form", "one by one"],
)
def test_on_a_gpu_fusing_adam_spares_nine_of_sixteen_passes(
    held: int, known: dict[str, Any], within: tuple[float, float] | None
) -> None:
    """AdamW over 4.1 GB, 23 of 32 ms on an H200: 1 to 3.6x was said, and 1.71x measured."""
    parts = {"forward_ms": 3, "backward_ms": 6, "optimizer_ms": 23}
    rows = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=2, other_ms=25)
    its = settings(**{"parameters": 17, "parameter_bytes": held, **known})
    found = optimizer(gpu_window(rows, {**parts, "lag_ms": 0.01}, settings=its))
    assert found is not None
    if within is None:
        assert found.forecast is None
        return
    assert found.forecast is not None
    least, most = within
    assert found.forecast.low == pytest.approx(least, abs=0.05)
    assert found.forecast.speedup == pytest.approx(1.69, abs=0.03)
    assert found.forecast.high == pytest.approx(most, abs=0.1)


def test_a_fused_update_gains_nothing_of_evaluations_and_exchanges() -> None:
    """Half of the time in evaluations that no measured step has: 1.54x was said for 1.24x. And of
    a sharded update, of which a fifth of the step is its own: 1.69x for 1.13x."""
    parts = {"forward_ms": 3, "backward_ms": 6, "optimizer_ms": 23}
    each = {"data_ms": 0.1, "forward_ms": 2, "backward_ms": 3, "optimizer_ms": 2, "other_ms": 25}
    rows = run(90, lambda number: {**each, **({"evaluation_ms": 320} if number % 9 == 5 else {})})
    its = settings(parameters=17, parameter_bytes=4_100_000_000)
    found = optimizer(gpu_window(rows, {**parts, "lag_ms": 0.01}, settings=its))
    assert found is not None
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(1.24, abs=0.03)
    exchanges = InCollectives(waiting=0.05, transfer=0.75)
    shared = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 16, "optimizer_ms": 72}
    seen = gpu_window(even(60, **shared), {**shared, "lag_ms": 20}, settings=its, world_size=4)
    found = optimizer(replace(seen, collectives=exchanges))
    assert found is not None
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(1.13, abs=0.02)
    assert (found.forecast.high or 9.0) < 1.3


def test_an_update_that_is_seen_to_walk_through_its_tensors_is_no_group() -> None:
    """`foreach` is not set, and one tensor of another type makes it walk."""
    single = FrameShare(0.5, "_single_tensor_adamw (torch/optim/adamw.py:9)", None, "", "optimizer")
    parts = {"forward_ms": 3, "backward_ms": 6, "optimizer_ms": 23}
    rows = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=2, other_ms=25)
    walks = Stacks(200, (single,), 0, (), None)
    found = optimizer(
        gpu_window(rows, {**parts, "lag_ms": 0.01}, settings=settings(), stacks=walks)
    )
    assert found is not None
    assert found.forecast is None


@pytest.mark.parametrize("idle", [0.4, 0.24, 0.2])
def test_an_update_is_worth_what_the_loader_leaves_of_its_fix(idle: float) -> None:
    """At the bound itself half of it was counted: the optimizer fell behind smaller causes."""
    parts = {"forward_ms": 20, "backward_ms": 36, "optimizer_ms": 44}
    rows = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=2, other_ms=92.9)
    seen = gpu_window(
        rows,
        {**parts, "lag_ms": 0.01},
        settings=settings(parameters=17, parameter_bytes=8_000_000_000),
        loaders=(loader(2),),
        stacks=stacks(workers=[(1 - idle, "f (a.py:1)", None)], idle=idle),
    )
    found = optimizer(seen)
    assert found is not None
    assert found.forecast is not None
    assert worth(found) == pytest.approx(1 - 1 / found.forecast.speedup, abs=0.001)


def test_clipping_is_the_optimizers() -> None:
    found = optimizer(clipping(0.18))
    assert found is not None
    assert found.share == pytest.approx((4 + 0.9 * 16) / 60, abs=0.001)
    assert "_get_total_norm" not in found.evidence[1].text, "a library's name is folded"
    assert "train (a.py:9)" in found.evidence[1].text
    assert host(clipping(0.18)) is None
    assert host(clipping(0.0)) is not None


def test_a_fused_form_clips_no_faster() -> None:
    """Generated run 2227, two cores: 1.29x was said, of an update that was half clipping, and 1.10x
    measured; the log beside it gave 1.62x."""
    on_cpu = settings(optimizer="AdamW", parameter_device="cpu", capability=None, parameters=27)
    seen = replace(clipping(0.18), settings=on_cpu)
    found = optimizer(seen)
    assert found is not None
    assert found.advice[0].startswith("AdamW(..., fused=True)")
    assert found.share == pytest.approx((4 + 0.9 * 16) / 60, abs=0.001)
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(1 / (1 - 0.75 * 4 / 60), rel=0.01)


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        ("Optimizer.zero_grad (torch/optim/optimizer.py:1093)", ""),
        ("_disable_dynamo.<locals>.inner (torch/_compile.py:54)", "opt.zero_grad()"),
        ("_fused_adam (torch/optim/adam.py:879)", ""),
    ],
    ids=["by its frame", "in a wrapper", "the update"],
)
def test_gradients_that_are_dropped_are_no_python_of_the_users(frame: str, line: str) -> None:
    """Generated run 100131, 2.5 ms a step: "12 % of each step is in Python between the phases"."""
    zero = FrameShare(0.18, frame, "train (a.py:9)", line, "other")
    other = FrameShare(0.02, "log (a.py:12)", None, phase="other")
    seen = replace(clipping(0.0), stacks=Stacks(100, (zero, other), 0, (), None))
    assert host(seen) is None
    metric = replace(zero, frame="tolist (torch/_tensor.py:9)", line="log(y.tolist())")
    assert host(replace(seen, stacks=Stacks(100, (metric, other), 0, (), None))) is not None


def test_of_few_samples_nobody_knows_that_it_is_python_and_not_clipping() -> None:
    """Generated run 2686: "host, 1.14x, 97 % sure", before there were samples and by one of 19 in
    clipping and one beside it."""
    clip, other = (FrameShare(0.05, name, None, phase="other") for name in (CLIPS, "log (a.py:12)"))
    one_of_each = Stacks(20, (clip, other), 0, (), None)
    for few in (None, one_of_each):
        finding = host(replace(clipping(0.0), clips=True, stacks=few))
        assert finding is None or (finding.share_low or 0.0) < ENTER_LOW
    none_in_it = Stacks(200, (replace(other, share=0.3),), 0, (), None)
    finding = host(replace(clipping(0.0), clips=True, stacks=none_in_it))
    assert finding is not None
    assert (finding.share_low or 0.0) > ENTER_LOW


def test_the_update_on_the_line_that_clips_is_no_clipping() -> None:
    line = "clip_grad_norm_(net.parameters(), 1.0); opt.step()"
    step = FrameShare(0.3, "_single_tensor_adam (torch/optim/adam.py:4)", "train (a.py:9)", line)
    seen = replace(clipping(0.0), stacks=Stacks(100, (step,), 0, (), None))
    assert clipped_part(seen).mean == 0.0


@pytest.mark.parametrize(("optimizer_ms", "slow"), [(4.1, True), (1.2, False)])
def test_an_update_that_is_slower_than_its_arithmetic_may_meet_denormal_numbers(
    optimizer_ms: float, slow: bool
) -> None:
    """Lightning's autoencoder on MNIST: 4.1 ms for 204,000 numbers, 1.2 ms without denormals."""
    rows = even(60, data_ms=0.2, forward_ms=0.6, backward_ms=0.4, optimizer_ms=optimizer_ms)
    known: dict[str, Any] = {"optimizer": "Adam", "parameter_device": "cpu", "parameters": 12}
    known |= {"parameter_bytes": 816_000, "capability": None}
    found = optimizer(window(rows, settings=settings(**known), loaders=(loader(0),)))
    assert found is not None
    assert found.advice[0].startswith("Adam(..., fused=True)")
    assert found.advice[1].startswith("or torch.set_flush_denormal(True): 19 ns") is slow
    waits = window(rows, settings=settings(**known), loaders=(loader(0),), run_delay=0.5)
    assert not any("denormal" in each for each in (optimizer(waits) or found).advice)


def test_an_optimizer_is_worth_what_its_first_advice_gives() -> None:
    """Generated run 1245: a fifth of the step, 1.18x by fused=True; half of it was no cause."""
    rows = even(60, data_ms=1, forward_ms=34, backward_ms=44, optimizer_ms=21)
    known = {"optimizer": "AdamW", "parameter_device": "cpu", "capability": None, "parameters": 27}
    found = optimizer(window(rows, settings=settings(**known)))
    assert found is not None
    assert found.forecast is not None
    assert worth(found) == pytest.approx(1 - 1 / found.forecast.speedup)
    whole = replace(found.forecast, speedup=found.speedup or 0.0, low=1.0)
    none_of_it = worth(replace(found, forecast=whole))
    assert none_of_it < worth(found), "by samples alone no update is left: not worth all"
    assert Engine().judge(window(rows, settings=settings(**known))).finding.kind == "optimizer"


@pytest.mark.parametrize(
    ("mib", "foreach", "first"), [(118, True, True), (118, None, False), (2, True, False)]
)
def test_groups_that_no_cache_holds_are_taken_apart_on_a_cpu(
    mib: int, foreach: bool | None, first: bool
) -> None:
    """A U-Net's `RMSprop(..., foreach=True)` as its repository has it: fewer updates was all there
    was to read, and an update takes 0.72 of the time without groups."""
    how = settings(
        optimizer="RMSprop", foreach=foreach, fused=None, parameter_bytes=mib << 20, parameters=64
    )
    seen = window(even(60, forward_ms=100, backward_ms=190, optimizer_ms=170), settings=how)
    text = "RMSprop(..., foreach=False): in groups each operation goes through all 118 MiB"
    assert for_this_optimizer(seen)[0].startswith(text) is first


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ({"optimizer": "AdamW", "fused": True}, "healthy"),
        ({"optimizer": "Adadelta"}, "healthy"),
        ({"optimizer": "AdamW"}, "optimizer"),
        ({"optimizer": "Adadelta", "fusible": False}, "healthy"),
        ({"optimizer": "Lion"}, "optimizer"),
        ({"optimizer": "AdamW", "fusible": False}, "optimizer"),
    ],
)
def test_an_update_that_nothing_makes_faster_is_a_note_and_no_cause(
    how: dict[str, Any], kind: str
) -> None:
    """Generated run 1889: a fused AdamW, 24 % of each step, "at most 1.31x", and no change gave
    1.05x. What a class of somebody's own could do better is not known."""
    rows = even(60, data_ms=1, forward_ms=30, backward_ms=44, optimizer_ms=24)
    seen = window(rows, settings=settings(parameter_device="cpu", capability=None, **how))
    found = Engine().judge(seen)
    assert found.finding.kind == kind
    texts = [note.text for note in found.notes]
    is_noted = any("only fewer updates take less" in text for text in texts)
    assert is_noted == (kind == "healthy")
