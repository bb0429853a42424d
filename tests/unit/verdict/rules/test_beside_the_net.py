"""Tensors that a step computes on a CPU beside its net: the batch's, and not the loss's."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.beside_the_net import beside_the_net
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window

TREE = FrameShare(
    *(0.6, "split (train.py:113)", None, "left = torch.cat([left, middle])"),
    *("forward", 150),
)
SPLIT = FrameShare(
    *(0.25, "split (train.py:120)", None, "left = torch.nonzero(points > cut)"),
    *("synchronisation", 60),
)
CONVOLUTION = FrameShare(
    *(0.1, "_conv_forward (torch/nn/modules/conv.py:5)", "forward (train.py:49)", "x = conv(x)"),
    *("forward", 30),
    in_net=True,
)
LOSS = FrameShare(
    *(0.6, "crf (train.py:30)", None, "best = torch.logsumexp(best + moves, 0)"),
    *("forward", 200),
)
UPDATE = FrameShare(
    *(0.85, "train (train.py:9)", None, "p.data.add_(p.grad, alpha=-rate)"),
    *("forward", 200),
)


def found(*places: FrameShare, backward_ms: float = 5, fetches: int = 1) -> Finding | None:
    rows = even(60, forward_ms=100, backward_ms=backward_ms, optimizer_ms=1, fetches=fetches)
    return beside_the_net(window(rows, stacks=Stacks(250, places, 0, (), None)))


def test_a_tree_that_is_built_for_each_batch_is_the_hosts() -> None:
    """KD-Net: its k-d tree, node by node, took 85 % of each step, and "host, 9 %" was the text it
    read."""
    seen = found(TREE, SPLIT, CONVOLUTION)
    assert seen is not None
    assert seen.share == pytest.approx(0.85 - 2.1 * 5 / 106, abs=0.01)
    assert seen.advice[0].endswith("or once for all epochs: split (train.py:113)")
    rows = even(60, forward_ms=100, backward_ms=5, optimizer_ms=1)
    stacks = Stacks(250, (TREE, SPLIT, CONVOLUTION), 0, (), None)
    verdict = Engine().judge(window(rows, stacks=stacks)).finding
    assert (verdict.kind, verdict.share) == ("host", seen.share)


def test_all_that_was_seen_may_come_back() -> None:
    """Norms of rows, read one by one: 4.0x without them, of 34 % (1.3 to 2.2x) where a net so small
    may have been learned by twice its backward."""
    seen = found(TREE, SPLIT, CONVOLUTION, backward_ms=19)
    assert seen is not None
    assert seen.forecast is not None
    assert seen.forecast.high is not None
    assert seen.forecast.speedup < 3 < 1 / 0.15 < seen.forecast.high


def test_behind_the_update_is_no_loss() -> None:
    """A copy and a check of all parameters in each step, as long as the backward: "no loader seen",
    and 1.5x without them."""
    check = FrameShare(
        *(0.25, "all_finite (train.py:128)", None, "return bool(torch.isfinite(one).all())"),
        *("synchronisation", 76),
    )
    assert found(check, CONVOLUTION, backward_ms=30, fetches=0) is None
    check = replace(check, beside=True)
    seen = found(check, CONVOLUTION, backward_ms=30, fetches=0)
    assert seen is not None
    assert (seen.share, seen.headline) == (0.25, "25% of each step is computed behind the update")
    assert seen.advice[0] == "do it less often, or on a part of it: all_finite (train.py:128)"
    rows = even(60, forward_ms=100, backward_ms=30, optimizer_ms=1, fetches=0)
    stacks = Stacks(76, (check, CONVOLUTION), 0, (), None, main_unplaced=0.05)
    assert Engine().judge(window(rows, loaders=(), stacks=stacks)).finding.kind == "host"


def test_a_metric_of_torchs_behind_the_update_is_no_forward() -> None:
    """The area under a curve of all predictions so far, in each step: 2x without it."""
    metric = FrameShare(
        *(0.3, "_unique_impl (torch/functional.py:973)", "AUROC.compute (train.py:71)"),
        *("_, inverse = torch.unique(preds, return_inverse=True)", "forward", 76),
        beside=True,
    )
    seen = found(metric, CONVOLUTION, backward_ms=50, fetches=0)
    assert seen is not None
    assert seen.advice[0] == "do it less often, or on a part of it: AUROC.compute (train.py:71)"
    assert found(replace(metric, in_net=True), CONVOLUTION, backward_ms=50, fetches=0) is None


def test_with_a_loader_the_marks_have_what_is_behind_the_update() -> None:
    check = replace(TREE, share=0.25, beside=True)
    assert found(check, CONVOLUTION, backward_ms=50, fetches=0) is not None
    assert found(check, CONVOLUTION, backward_ms=50) is None


def test_what_is_learned_is_gone_back_through() -> None:
    """A loss is a function of the user's own as well, and takes less than twice its backward."""
    assert found(LOSS, backward_ms=50) is None
    assert found(LOSS, backward_ms=15) is not None


@pytest.mark.parametrize("place", [CONVOLUTION, UPDATE], ids=["a net", "an update by hand"])
def test_nets_and_updates_are_not_beside_the_net(place: FrameShare) -> None:
    assert found(place) is None


def test_beside_a_gpu_what_launches_is_the_launches() -> None:
    rows = even(60, forward_ms=100, backward_ms=5, optimizer_ms=1)
    on_gpu = {"forward_ms": 100, "backward_ms": 5, "optimizer_ms": 1}
    stacks = Stacks(250, (TREE, SPLIT), 0, (), None)
    seen = gpu_window(rows, on_gpu, stacks=stacks, activity=activity(20))
    assert beside_the_net(seen) is None
