"""Dropout on a CPU, which draws its numbers one after the other."""

import pytest

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.dropout import dropout
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import even, window

FRAME = "dropout (torch/nn/functional.py:1497)"
ASKED = "Attention.forward (attention.py:82)"


def seen(
    share: float, step_ms: float = 100.0, nodes: int = 200, cpu_intel: bool | None = False
) -> StepWindow:
    drops = FrameShare(
        share,
        FRAME,
        ASKED,
        phase="forward",
        samples=100,
        in_net=True,
        line="attn = self.drop(attn)",
    )
    rest = FrameShare(
        0.4 - share, "Linear.forward (torch/nn/modules/linear.py:134)", ASKED,
        phase="forward", samples=100, in_net=True, line="q = self.q(x)",
    )  # fmt: skip
    backward = FrameShare(0.6, "_engine_run_backward (torch/autograd/graph.py:1072)", None,
                          phase="backward", samples=100)  # fmt: skip
    stacks = Stacks(200, (drops, rest, backward), 0, (), None, main_unplaced=0.0)
    parts = {"forward_ms": 0.38 * step_ms, "backward_ms": 0.6 * step_ms}
    rows = even(60, **parts, optimizer_ms=0.02 * step_ms)
    known = Settings(parameter_device="cpu", graph_nodes=nodes, cpu_intel=cpu_intel)
    return window(rows, stacks=stacks, settings=known)


def saved(finding: Finding | None) -> float:
    return 0.0 if finding is None else finding.share or 0.0


def test_dropout_is_the_verdict_where_its_mask_holds_much_of_the_step() -> None:
    """A speech transformer, 29 % of the samples: 1.21x by masks of bytes, measured."""
    found = dropout(seen(0.29))
    assert found is not None
    assert found.headline == "dropout takes 29% of each step, one element after the other"
    assert "Attention.forward (attention.py:82)" in found.evidence[0].text
    assert found.forecast is not None
    assert found.forecast.low <= 1.21 <= (found.forecast.high or 0.0)
    assert found.forecast.speedup == pytest.approx(1.27, abs=0.02)
    judged = Engine().judge(seen(0.29)).finding
    assert (judged.kind, judged.sub) == ("compute", "dropout")


@pytest.mark.parametrize("cpu_intel", [True, None])
def test_where_mkl_draws_the_numbers_or_may_nothing_is_claimed(cpu_intel: bool | None) -> None:
    assert dropout(seen(0.29, cpu_intel=cpu_intel)) is None


def test_masks_of_a_few_elements_cost_their_calls() -> None:
    """A mask by bytes of 3,000 elements takes as long as the call does."""
    assert dropout(seen(0.29, step_ms=2.0, nodes=300)) is None
    some = saved(dropout(seen(0.29, step_ms=20.0, nodes=200)))
    assert 0.05 < some < saved(dropout(seen(0.29)))


def test_on_a_gpu_dropout_is_a_kernel_like_others() -> None:
    on_gpu = seen(0.29)
    assert dropout(window(on_gpu.steps, stacks=on_gpu.stacks, gpu_present=True)) is None
