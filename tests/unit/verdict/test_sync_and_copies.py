"""Waiting for the GPU, and copying to it: what costs, and what only looks as if."""

import pytest

from gpuwatch.probe.wire.messages import Loader
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.allocator import allocator
from gpuwatch.tui.verdict.rules.h2d import h2d
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.rules.sync import sync
from gpuwatch.tui.verdict.window import FrameShare, Stacks
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader

STEPS = even(60, data_ms=0.2, forward_ms=12, backward_ms=8, optimizer_ms=2)
ON_GPU = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 8, "optimizer_ms": 2}


def on_line(share: float, line: str) -> Stacks:
    """Main-thread samples, so many of them on a line that says this."""
    waits = FrameShare(share, "train (train.py:88)", None, line)
    rest = FrameShare(1 - share, "forward (model.py:12)", None, "x = self.layer(x)")
    return Stacks(200, (waits, rest), 0, (), None)


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("total += loss.item()", "loss.item()"),
        ("if torch.isnan(p.grad).any():", "torch.isnan(p.grad).any()"),
        ("scores = logits.argmax(-1).cpu()", "logits.argmax(-1).cpu()"),
        ("running = float(loss)", "float(loss)"),
        ("torch.cuda.synchronize()", "torch.cuda.synchronize()"),
        ("kept = x[mask]", "x[mask]"),
        ("log(step, losses[i].item(), rate)", "losses[i].item()"),
        ("print(", "print("),
    ],
)
def test_waits_that_leave_the_gpu_idle(line: str, call: str) -> None:
    seen = gpu_window(STEPS, ON_GPU, stacks=on_line(0.4, line), activity=activity(70))
    found = sync(seen)
    assert found is not None
    assert found.share == pytest.approx(0.30, abs=0.01)
    assert found.advice[0].startswith(f"`{call}` at train.py:88: ")
    assert launch(seen) is None
    assert Engine().judge(seen).finding.kind == "sync"


def test_two_lines_that_wait_alike_are_both_named_in_the_code_s_order() -> None:
    def advice(first: float, second: float) -> str:
        waits = {34: (first, "loss.item()"), 41: (second, "norm.item()")}
        places = [FrameShare(n, f"train (train.py:{at})", None, t) for at, (n, t) in waits.items()]
        places.sort(key=lambda place: -place.share)
        seen = Stacks(200, tuple(places), 0, (), None)
        found = sync(gpu_window(STEPS, ON_GPU, stacks=seen, activity=activity(70)))
        assert found is not None
        return found.advice[0].partition(": ")[0]

    both = "`loss.item()` at train.py:34 and `norm.item()` at train.py:41"
    assert advice(0.20, 0.22) == advice(0.22, 0.20) == both
    assert advice(0.08, 0.40) == "`norm.item()` at train.py:41"


def test_item_in_a_busy_run_costs_nothing() -> None:
    steps = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=127)
    on_gpu = {"data_ms": 0.1, "forward_ms": 46, "backward_ms": 82, "optimizer_ms": 5, "lag_ms": 120}
    line = on_line(0.96, "total += loss.item()")
    seen = gpu_window(steps, on_gpu, stacks=line, activity=activity(99, tensor=60))
    assert sync(seen) is None
    assert Engine().judge(seen).finding.kind == "compute"


def test_a_wait_is_worth_no_more_than_it_takes() -> None:
    seen = gpu_window(STEPS, ON_GPU, stacks=on_line(0.08, "loss.item()"), activity=activity(20))
    found = sync(seen)
    assert found is not None
    assert found.share == pytest.approx(0.08, abs=0.001)
    assert launch(seen) is not None


def test_ordinary_lines_wait_for_nothing() -> None:
    for line in ("loss.backward()", "x = self.conv(x)", "optimizer.step()", "for item in items:"):
        assert (
            sync(gpu_window(STEPS, ON_GPU, stacks=on_line(0.5, line), activity=activity(30)))
            is None
        )


def batches(pinned: bool, mib: float = 60, tensors: int = 2, device: str = "cpu") -> tuple[Loader]:
    """One loader, with batches like that."""
    return (
        loader(
            4, batch_bytes=round(mib * 2**20), batch_tensors=tensors, batch_device=device,
            pinned=pinned if device == "cpu" else None,
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("loaders", "rx", "sub", "share"),
    [
        (batches(pinned=False), 2950.0, "pageable", 0.5),
        (batches(pinned=True), 13_400.0, "bandwidth", 0.5),
        (batches(pinned=False), 5900.0, "pageable", 0.7),
    ],
    ids=["pageable", "pinned", "not more than the GPU idles"],
)
def test_copies_by_what_pcie_carries(
    loaders: tuple[Loader], rx: float, sub: str, share: float
) -> None:
    seen = gpu_window(STEPS, ON_GPU, loaders=loaders, activity=activity(30, pcie_rx_mb_s=rx))
    found = h2d(seen)
    assert found is not None
    assert found.sub == sub
    assert found.share == pytest.approx(share, abs=0.01)
    assert "of about 27 possible" in found.evidence[0].text
    assert Engine().judge(seen).finding.kind == "h2d"


def test_many_tiny_copies() -> None:
    seen = gpu_window(
        STEPS, ON_GPU, loaders=batches(pinned=False, mib=0.5, tensors=64),
        stacks=on_line(0.6, "batch = [t.to(device) for t in batch]"),
        activity=activity(25, pcie_rx_mb_s=150.0),
    )  # fmt: skip
    found = h2d(seen)
    assert found is not None
    assert (found.sub, found.share) == ("tiny", pytest.approx(0.6, abs=0.01))
    assert "in 64 tensors" in found.evidence[0].text


@pytest.mark.parametrize(
    ("loaders", "told"),
    [
        (batches(pinned=False), activity(99, pcie_rx_mb_s=5_000.0)),
        (batches(pinned=False), activity(30, pcie_rx_mb_s=150.0)),
        (batches(pinned=False), activity(30)),
        (batches(pinned=False, device="cuda"), activity(30, pcie_rx_mb_s=5_000.0)),
    ],
    ids=["hidden behind work", "launches alone", "no counter", "batches on the GPU"],
)
def test_no_copies_are_claimed(loaders: tuple[Loader], told: object) -> None:
    assert h2d(gpu_window(STEPS, ON_GPU, loaders=loaders, activity=told)) is None


def test_a_cache_that_is_emptied_in_the_loop() -> None:
    line = "torch.cuda.empty_cache()"
    seen = gpu_window(STEPS, ON_GPU, stacks=on_line(0.3, line), activity=activity(60))
    found = allocator(seen)
    assert found is not None
    assert found.share == pytest.approx(0.3, abs=0.001)
    assert Engine().judge(seen).finding.kind == "allocator"
    hidden = gpu_window(STEPS, ON_GPU, stacks=on_line(0.3, line), activity=activity(98))
    assert allocator(hidden) is None
