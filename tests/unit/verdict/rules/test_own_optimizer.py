"""An optimizer that the user has written: what in it takes the time."""

from dataclasses import replace

import pytest

from gpuwatch.tui.verdict.rules.optimizer import for_this_optimizer, optimizer
from gpuwatch.tui.verdict.rules.own_optimizer import function_to_spare, own_function
from gpuwatch.tui.verdict.stack_samples import FrameShare, StackPhase, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.advice_runs import optimizing
from tests.unit.verdict.noted import settings
from tests.unit.verdict.windows import even, window


def at(
    share: float,
    frame: str,
    line: str = "",
    phase: StackPhase = "optimizer",
    caller: str | None = None,
) -> FrameShare:
    return FrameShare(share, frame, caller, line, phase)


LOOP = at(
    0.3, "backward (torch/_tensor.py:6)", "loss.backward()", "backward", "main (train.py:150)"
)
STEP = at(0.1, "Shampoo.step (train.py:80)", "p.add_(buf, alpha=-lr)")
ROOTS = at(0.3, "inverse_pth_root (train.py:33)", "root = root @ t")
NORMS = at(0.2, "inverse_pth_root (train.py:22)", "norm = torch.linalg.matrix_norm(mat)")
CLIPS = at(
    0.1, "_get_total_norm (torch/nn/utils/clip_grad.py:75)", "", "optimizer", "main (train.py:151)"
)
CALLED = "main (train.py:152)"
ADAM = "_single_tensor_adam (torch/optim/adam.py:9)"


def seen(*places: FrameShare) -> StepWindow:
    known = settings(optimizer="Shampoo", parameter_device="cpu", capability=None, foreach=None)
    rows = even(60, data_ms=1, forward_ms=10, backward_ms=20, optimizer_ms=69)
    return window(rows, settings=known, stacks=Stacks(100, places, 0, (), None))


SHAMPOO = (LOOP, STEP, ROOTS, NORMS, CLIPS)


def test_what_an_update_calls_and_waits_for_is_named_and_to_be_done_less_often() -> None:
    """Inverse roots that were made in each step, for their counter stood still: 2.3x without."""
    found = optimizer(seen(*SHAMPOO))
    assert found is not None
    assert found.advice[0].startswith("do it less often, where what it makes can be kept, or in")
    assert found.advice[0].endswith(": inverse_pth_root (train.py:33)")
    assert any("50% of main-thread samples are in inverse" in one.text for one in found.evidence)
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(2.0)
    assert found.forecast.low == 1.0
    assert found.forecast.high == found.speedup


def test_on_a_gpu_it_is_named_as_well() -> None:
    on_gpu = replace(optimizing(optimizer="Shampoo", foreach=None), stacks=seen(*SHAMPOO).stacks)
    assert for_this_optimizer(on_gpu)[0].endswith(": inverse_pth_root (train.py:33)")


def test_what_multiplies_matrices_is_no_adamw_by_hand() -> None:
    """Muon's updates are no arithmetic on single numbers, which could be taken together."""
    makes = at(0.3, "zeropower (muon.py:20)", "A = X @ X.T")
    muon = replace(optimizing(optimizer="MyMuon"), stacks=seen(LOOP, makes).stacks)
    assert not any("AdamW" in one for one in for_this_optimizer(muon))


def test_of_step_itself_no_part_can_be_left_out() -> None:
    found = optimizer(seen(LOOP, replace(STEP, share=0.6)))
    assert found is not None
    assert found.advice[0].startswith("accumulate gradients")
    assert any("Shampoo.step (train.py:80)" in one.text for one in found.evidence)


@pytest.mark.parametrize(
    "places",
    [
        (LOOP, at(0.6, ADAM, "opt.step()", caller=CALLED), at(0.02, CALLED, "opt.step()")),
        (
            LOOP,
            at(0.6, ADAM, "self.opt.step()", caller="A.update (a.py:9)"),
            at(0.02, "A.update (a.py:9)"),
        ),
        (LOOP, replace(STEP, share=0.3), replace(ROOTS, share=0.2), at(0.2, "graft (train.py:50)")),
        (LOOP, at(0.5, "main (train.py:140)", "loss = ((y - a * x) ** 2).mean()")),
        (LOOP, at(0.6, "step (pytorch_optimizer/shampoo.py:9)", "opt.step()", caller=CALLED)),
    ],
    ids=[
        "torch's",
        "torch's, of a function that does no more",
        "of several none",
        "a closure",
        "a library's",
    ],
)
def test_what_is_no_function_of_the_users_update_is_not_named(
    places: tuple[FrameShare, ...],
) -> None:
    assert function_to_spare(seen(*places)) is None


def test_a_step_that_the_user_has_written_is_no_other_function() -> None:
    most = own_function(seen(LOOP, replace(STEP, share=0.6)))
    assert most is not None
    assert most.frame == "Shampoo.step (train.py:80)"
