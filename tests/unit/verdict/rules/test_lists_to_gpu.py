"""Lines that make a tensor of Python's numbers and copy it: Python, or a wait for the GPU."""

import pytest

from gpuwatch.tui.verdict.code_places import main_places
from gpuwatch.tui.verdict.rules.h2d import h2d
from gpuwatch.tui.verdict.rules.host import host
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.rules.test_h2d import ON_GPU, STEPS, batches, on_line
from tests.unit.verdict.windows import even, window

LABELS = 'y = torch.tensor(batch["y"]).to(device)'


def test_a_line_that_makes_a_tensor_of_a_list_and_copies_it_is_python() -> None:
    """EGNN on an H200: two lists of 80,000 numbers a step, of which 1 % is copying, were "copies
    26 %: pin_memory=True". Where the link moves a batch they are copies."""
    line = "edges = [torch.LongTensor(rows).to(device), torch.LongTensor(cols).to(device)]"
    there = on_line(0.4, line)
    little, much = (activity(30, pcie_rx_mb_s=rx) for rx in (100.0, 2950.0))
    seen = gpu_window(STEPS, ON_GPU, stacks=there, activity=little)
    assert h2d(seen) is None
    found = host(seen)
    assert found is not None
    assert found.share == pytest.approx(0.4, abs=0.02)
    assert "train (train.py:88)" in found.evidence[0].text
    moved = gpu_window(STEPS, ON_GPU, stacks=there, activity=much, loaders=batches(False))
    assert h2d(moved) is not None
    assert host(moved) is None


@pytest.mark.parametrize(
    ("busy", "lag_ms", "makes"),
    [(99.0, 40.0, False), (99.0, 0.0, False), (40.0, 14.0, False), (40.0, 0.0, True)],
)
def test_behind_the_net_it_waits_for_the_forward(busy: float, lag_ms: float, makes: bool) -> None:
    """`out = net(x)` before it, on a GPU that is behind: "68 % is Python that launches nothing"."""
    rows = even(60, data_ms=0.1, forward_ms=30, backward_ms=8, optimizer_ms=2)
    parts = {"forward_ms": 26, "backward_ms": 12, "optimizer_ms": 2, "lag_ms": lag_ms}
    seen = gpu_window(
        rows, parts, stacks=on_line(0.5, LABELS), activity=activity(busy, pcie_rx_mb_s=60.0)
    )
    assert any(one.makes for one in main_places(seen)) is makes
    assert (host(seen) is not None) is makes


@pytest.mark.parametrize(("busy", "makes"), [(95.0, False), (30.0, True)])
def test_without_the_gpus_clock_its_idle_time_bounds_it(busy: float, makes: bool) -> None:
    seen = window(
        STEPS, gpu_present=True, stacks=on_line(0.4, LABELS),
        activity=activity(busy, pcie_rx_mb_s=60.0),
    )  # fmt: skip
    assert any(one.makes for one in main_places(seen)) is makes


@pytest.mark.parametrize("call", ["as_tensor", "from_numpy"])
def test_what_takes_arrays_is_a_copy(call: str) -> None:
    line = LABELS.replace("torch.tensor", f"torch.{call}")
    little = activity(30, pcie_rx_mb_s=60.0)
    seen = gpu_window(STEPS, ON_GPU, stacks=on_line(0.4, line), activity=little)
    assert not any(one.makes for one in main_places(seen))
