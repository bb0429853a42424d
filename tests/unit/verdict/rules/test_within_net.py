"""What a net computes on a CPU besides what it learns."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.within_net import looped, unlearned
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window

SUM = FrameShare(
    *(0.4, "sum (torch/sparse/__init__.py:276)", "normalize (gcn.py:19)", "d = sparse.sum(a, 1)"),
    *("forward", 95),
    in_net=True,
)
SCALED = FrameShare(
    *(0.26, "normalize (gcn.py:21)", None, "return sparse_coo_tensor(i, v * d)", "forward", 95),
    in_net=True,
)
LAYER = FrameShare(
    *(0.2, "GCNConv.forward (gcn.py:33)", None, "return sparse.mm(a, self.lin(x))"),
    *("forward", 95),
    in_net=True,
)
TURN = FrameShare(
    *(0.55, "SoftSort.backward (sort.py:31)", None, "out[i, ix[i, j]] = g[i, j]"),
    *("backward", 76),
    in_turns="SoftSort.backward (sort.py:31)",
)
LISTS = FrameShare(
    *(0.3, "document_mask (gpt.py:34)", None, "mask[b, 0] = torch.tensor(row)", "forward", 76),
    in_net=True,
)
SORTED = FrameShare(
    *(0.3, "neighbours (clouds.py:18)", None, "d = sorted(((x - u) ** 2, j) for j, u in near)"),
    *("forward", 76),
    in_net=True,
)
HOOK = FrameShare(
    *(0.4, "_quantile (numpy/lib/_function_base_impl.py:47)", "Monitor.hook (nets.py:23)", ""),
    *("forward", 76),
    in_net=True,
    library="numpy/",
)
ROWS = even(60, forward_ms=85, backward_ms=10, optimizer_ms=1)


def seen(*places: FrameShare, backward_ms: float = 10) -> StepWindow:
    rows = even(60, forward_ms=85, backward_ms=backward_ms, optimizer_ms=1)
    return window(rows, stacks=Stacks(95, places, 0, (), None))


def headline(run: StepWindow) -> Finding:
    return Engine().judge(run).finding


def test_a_matrix_that_is_normalised_in_each_forward_is_the_hosts() -> None:
    """A graph network was "nothing wrong", and 3.9x as fast by keeping its matrix."""
    run = seen(SUM, SCALED, LAYER)
    found = unlearned(run)
    assert found is not None
    assert found.share == pytest.approx(0.66 - 2.1 * 10 / 96, abs=0.01)
    assert found.advice[0].endswith("in the loader: normalize (gcn.py:19)")
    assert found.forecast is not None
    assert (found.forecast.high or 0.0) >= 1 / (1 - 0.66)
    assert headline(run).share == found.share


def test_lists_that_become_tensors_are_told_from_loops() -> None:
    found = looped(seen(LISTS, LAYER))
    assert found is not None
    assert "tensors made of Python's lists" in found.headline
    loops = looped(seen(replace(LISTS, share=0.1), SORTED))
    assert loops is not None
    assert "loops within" in loops.headline
    assert loops.share == pytest.approx(0.4), "both go with their function"


def test_what_is_learned_in_a_net_is_gone_back_through() -> None:
    assert unlearned(seen(SUM, SCALED, LAYER, backward_ms=40)) is None
    assert unlearned(seen(replace(LAYER, share=0.8))) is None, "layers may be all of it"
    frozen = FrameShare(
        *(0.8, "_conv_forward (torch/nn/modules/conv.py:5)", "features (net.py:3)", "self.body(x)"),
        *("forward", 95),
        in_net=True,
    )
    assert unlearned(seen(frozen)) is None, "a frozen net has a rule of its own"


@pytest.mark.parametrize(
    "place", [TURN, LISTS, SORTED], ids=["own backward", "lists", "neighbours"]
)
def test_pythons_loops_within_forward_and_backward_are_the_hosts(place: FrameShare) -> None:
    """A `Function.backward` that walks through an array was "nothing wrong": 3.1x."""
    run = seen(place, LAYER)
    found = looped(run)
    assert found is not None
    assert found.share == pytest.approx(place.share)
    assert place.frame in found.advice[0]
    assert headline(run).kind == "host"
    on_gpu = {"forward_ms": 85, "backward_ms": 10, "optimizer_ms": 1}
    assert looped(gpu_window(ROWS, on_gpu, stacks=run.stacks, activity=activity(20))) is None


def test_a_hook_that_works_in_numpy_is_the_hosts() -> None:
    """Percentiles of activations were "nothing wrong", with 38 % of the samples in its evidence."""
    found = headline(seen(HOOK, LAYER))
    assert found.kind == "host"
    assert found.share == pytest.approx(0.4)
    assert "Monitor.hook (nets.py:23)" in found.evidence[0].text


def test_turns_of_a_backward_are_the_batchs_own_loop_alone() -> None:
    assert looped(seen(replace(TURN, in_turns=""), LAYER)) is None
    assert looped(seen(replace(LISTS, makes=True), LAYER)) is None
    assert looped(seen(replace(SORTED, computes=True), LAYER)) is None
    array = "x = torch.tensor(np.stack(rows))"
    assert looped(seen(replace(LISTS, line=array), LAYER)) is None
    held = "return [self.weight[i] for i in ids]"
    assert looped(seen(replace(SORTED, line=held), LAYER)) is None
