"""What an update is told without a probe, where stacks show what of it is clipping."""

from collections.abc import Mapping

import pytest

from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from tests.unit.session.sampled_run import S, Seen, drawn, processes, session, watched
from tests.unit.stack_phases.real_stacks import BACKWARD, FORWARD, TRAIN

CLIP = (
    *TRAIN,
    "_no_grad.<locals>._no_grad_wrapper (torch/nn/utils/clip_grad.py:36)",
    "clip_grad_norm_ (torch/nn/utils/clip_grad.py:220)",
)
WRAPPER = "Optimizer.profile_hook_step.<locals>.wrapper (torch/optim/optimizer.py:533)"
STACKS: Mapping[str, Seen] = {
    "forward": Seen((*TRAIN, *FORWARD), "loss = net(x)"),
    "backward": Seen((*TRAIN, *BACKWARD), "loss.backward()"),
    "all": Seen(CLIP, "clip_grad_norm_(net.parameters(), 1.0)"),
    "each": Seen(
        (*CLIP, "_group_tensors_by_device_and_dtype (torch/utils/_foreach_utils.py:50)"),
        "nn.utils.clip_grad_norm_(p, 1.0)",
    ),
    "adam": Seen((*TRAIN, WRAPPER, "_single_tensor_adam (torch/optim/adam.py:400)"), "opt.step()"),
    "lbfgs": Seen((*TRAIN, WRAPPER, "LBFGS.step (torch/optim/lbfgs.py:400)"), "opt.step(closure)"),
}


def found_in(shares: Mapping[str, float]) -> Finding:
    """After 40 s of stacks as often as `shares` say, at random."""
    seen = drawn(STACKS, shares, 40)
    seen += [processes(second * S, 100.0, ()) for second in range(40)]
    finding = watched(session(), seen, 40).verdict.finding
    assert finding.kind == "optimizer"
    return finding


def kind_of(finding: Finding) -> str:
    forecast = forecast_of(finding)
    assert forecast is not None
    return forecast.kind


@pytest.mark.parametrize("which", ["all", "each", "lbfgs"])
def test_a_fused_form_neither_clips_nor_has_every_class_one(which: str) -> None:
    """Clipping of 76 % of the time was "fused=True … 4.2x"."""
    finding = found_in({which: 0.5, "forward": 0.25, "backward": 0.25})
    assert not any("fused" in advice for advice in finding.advice)
    assert kind_of(finding) == "bound"


def test_what_clips_each_tensor_is_told_to_clip_all_at_once() -> None:
    finding = found_in({"each": 0.5, "forward": 0.25, "backward": 0.25})
    assert finding.advice[0].startswith("clip the gradients of all parameters in one call")
    assert "train (train.py:48)" in finding.evidence[1].text
    at_once = found_in({"all": 0.5, "forward": 0.25, "backward": 0.25})
    assert not any("in one call" in advice for advice in at_once.advice)


def test_a_fused_form_gives_back_of_the_update_and_of_nothing_else() -> None:
    update = {"adam": 0.2, "forward": 0.2, "backward": 0.2}
    alone, clipped = found_in(update), found_in({**update, "all": 0.4})
    assert alone.advice[0] == clipped.advice[0] == "fused=True: the tensors are updated together"
    assert alone.forecast is not None
    assert clipped.forecast is not None
    assert alone.forecast.speedup == pytest.approx(1.5, abs=0.15)
    assert clipped.forecast.speedup == pytest.approx(1.25, abs=0.1)
