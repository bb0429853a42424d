"""Tensors that Python makes on the host in each step, with their copies."""

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.scoring import MADE_AND_COPIED
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.rules.test_h2d import batches
from tests.unit.verdict.windows import even

PARTS = {"data_ms": 0.2, "forward_ms": 24, "backward_ms": 10, "optimizer_ms": 2}


def making(copied_in: str) -> StepWindow:
    """An EEG's trials are cut and joined in NumPy, and copied by a line of that function or of
    another."""
    made = FrameShare(0.35, "interaug (eeg.py:77)", None, "joined[k] = parts[k].copy()", "other")
    moved = "torch.from_numpy(joined).float().to(device)"
    copied = FrameShare(0.2, f"{copied_in} (eeg.py:86)", None, moved, "forward")
    rest = FrameShare(0.45, "Net.forward (eeg.py:30)", None, "x = self.conv(x)", "forward")
    return gpu_window(
        even(60, **PARTS),
        PARTS,
        loaders=batches(pinned=False, mib=12),
        stacks=Stacks(200, (made, copied, rest), 0, (), None),
        activity=activity(35, pcie_rx_mb_s=700.0),
    )


def test_what_a_function_makes_and_copies_is_one_cause() -> None:
    judged = Engine().judge(making("interaug"))
    assert (judged.finding.kind, judged.finding.sub) == ("host", MADE_AND_COPIED)
    assert judged.finding.share == pytest.approx(0.45, abs=0.12)
    assert judged.finding.advice[0].endswith("in tensor expressions: interaug (eeg.py:77)")
    assert "h2d" not in [one.kind for one in judged.contributors], "each moment has one cause"


def test_copies_of_another_functions_tensors_are_their_own() -> None:
    judged = Engine().judge(making("train"))
    subs = [one.sub for one in (judged.finding, *judged.contributors)]
    assert MADE_AND_COPIED not in subs
