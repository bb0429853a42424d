"""Distances that are summed of all differences between two sets of vectors."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.notes.training import all_differences
from gpuwatch.tui.verdict.rules.allocator import allocator
from gpuwatch.tui.verdict.rules.distances import distances
from gpuwatch.tui.verdict.rules.within_net import unlearned
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import even, window

STEP: dict[str, Any] = {"forward_ms": 80, "backward_ms": 15, "optimizer_ms": 1}
FAULTS: dict[str, Any] = {"in_kernel": 0.47, "page_faults_s": 215_000.0}
SUMMED = FrameShare(
    *(0.33, "Quantize.assign (train.py:40)", None),
    "dist = ((flat.unsqueeze(1) - self.embed.unsqueeze(0)) ** 2).sum(dim=2)",
    "forward",
    100,
    in_net=True,
)
SQUARED = replace(SUMMED, share=0.3, frame="wrapped (torch/_tensor.py:39)", caller=SUMMED.frame)
REST = FrameShare(
    *(0.2, "relu (torch/nn/functional.py:1771)", "ResBlock.forward (train.py:72)"),
    *("return x + self.conv(x)", "forward", 100),
    in_net=True,
)


def seen(*places: FrameShare, **more: Any) -> StepWindow:
    stacks = Stacks(100, places or (SUMMED, SQUARED, REST), 0, (), None, main_unplaced=0.0)
    return window(even(100, **STEP), stacks=stacks, **more)


def test_all_differences_are_the_verdict_and_not_the_memory_that_they_take() -> None:
    """A VQ-VAE on two cores: 47 % of "memory is given back", and 3.3x by a product."""
    given = seen(**FAULTS)
    found = distances(given)
    assert found is not None
    assert found.share == pytest.approx(0.63 * 0.85)
    assert found.headline == "distances by all differences take 54% of each step"
    assert "torch.cdist(a, b)" in found.advice[0]
    assert "Quantize.assign (train.py:40)" in found.advice[0]
    judged = Engine().judge(given)
    assert (judged.finding.kind, judged.finding.sub) == ("compute", "all-differences")
    assert not judged.contributors
    assert allocator(given) is None
    assert unlearned(given) is None
    before = replace(SUMMED, line="dist = self.far(flat)"), replace(SQUARED, line="dist = f(flat)")
    assert allocator(seen(*before, **FAULTS)) is not None


def test_a_gradient_may_go_through_them() -> None:
    """As much again of the backward, which samples do not tell apart."""
    found = distances(seen())
    assert found is not None
    assert found.share_high is not None
    assert 0.75 < found.share_high < 0.9


@pytest.mark.parametrize(
    "given",
    [
        seen(REST),
        seen(replace(SUMMED, share=0.04), REST),
        seen(replace(SUMMED, line="dist = torch.cdist(flat, self.embed)")),
        seen(replace(SUMMED, phase="evaluation")),
        seen(gpu_present=True),
    ],
    ids=["none", "little", "cdist", "an evaluation", "a GPU"],
)
def test_nothing_is_named(given: StepWindow) -> None:
    assert distances(given) is None


def test_on_a_gpu_it_is_a_note() -> None:
    note = all_differences(seen(gpu_present=True))
    assert note is not None
    assert "in Quantize.assign (train.py:40): torch.cdist" in note.text
    assert note.cost == "63% of main-thread samples are there"
    assert all_differences(seen()) is None
