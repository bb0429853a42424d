"""Memory that each step gives back to the kernel and asks for again."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.settings import (
    AttentionWeights,
    NewMemory,
    RowProducts,
    Settings,
    StepOperations,
)
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.allocator import allocator
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import HostUse, MemoryPoint
from tests.unit.verdict.windows import even, run, window, worker_use

GAN: dict[str, Any] = {"in_kernel": 0.28, "page_faults_s": 120_000.0}
"""A lightweight GAN on two cores (measured)."""
NET: dict[str, Any] = {"forward_ms": 40, "backward_ms": 80}


def faulting(**fields: Any) -> Finding | None:
    return allocator(window(even(100, **NET), **{**GAN, **fields}))


def test_memory_that_is_asked_for_anew_in_each_step_is_named_with_what_keeps_it() -> None:
    found = faulting()
    assert found is not None
    assert (found.kind, found.sub) == ("allocator", "page-faults")
    assert found.share == pytest.approx(0.28)
    assert "MALLOC_MMAP_MAX_=0" in found.advice[0]
    assert found.evidence[0].text.startswith("120,000 pages a second")
    assert found.forecast is not None
    assert found.forecast.high is not None
    assert found.forecast.low < found.forecast.speedup == pytest.approx(1 / 0.72, rel=0.01)
    assert found.forecast.speedup < found.forecast.high


def test_it_is_the_verdict_where_nothing_else_holds_as_much() -> None:
    engine = Engine()
    seen = window(even(100, **NET), **GAN)
    found = [engine.judge(replace(seen, now_ns=seen.now_ns + i)).finding for i in range(3)]
    assert found[-1].sub == "page-faults"


@pytest.mark.parametrize(("share", "named"), [(0.3, True), (0.05, False)])
def test_a_function_whose_own_operations_take_long_is_named_beside_them(
    share: float, named: bool
) -> None:
    """All triplets of a batch, most of them masked: 2.0x by fewer, 1.2x by memory that is kept."""
    mine = [
        FrameShare(share / 2, f"batch_hard (reid.py:{at})", None, phase="forward", samples=200)
        for at in (91, 94)
    ]
    layers = FrameShare(
        0.25, "Conv2d.forward (torch/nn/modules/conv.py:9)", "Net.forward (reid.py:30)"
    )
    back = FrameShare(0.4, "train (reid.py:120)", None, phase="backward", samples=200)
    found = faulting(stacks=Stacks(200, (back, layers, *mine), 0, (), None))
    assert found is not None
    assert any("batch_hard" in one for one in found.advice) is named
    assert any("60 of 200" in one.text for one in found.evidence) is named


@pytest.mark.parametrize(("part", "named"), [(0.6, True), (0.2, False)])
def test_the_function_that_makes_most_of_it_is_named(part: float, named: bool) -> None:
    memory = NewMemory("chamfer (/home/me/train.py:31)", round(part * 2**31), 2**31)
    seen = StepOperations(1, 100, 100_000, 100_000, new_memory=memory)
    found = faulting(settings=Settings(step_operations=seen))
    assert found is not None
    assert found.headline.endswith(", most of it for chamfer (train.py:31)") is named
    assert any("smaller tensors in chamfer" in one for one in found.advice) is named
    assert any("1.2 GiB of 2.0 GiB" in one.text for one in found.evidence) is named


@pytest.mark.parametrize(
    "fields",
    [
        {"page_faults_s": 4_000.0},
        {"in_kernel": 0.03},
        {"in_kernel": None},
        {"page_faults_s": None},
    ],
    ids=["files", "little", "no time", "no faults"],
)
def test_kernel_time_that_faults_do_not_explain_is_something_elses(fields: dict[str, Any]) -> None:
    """4,000 faults take 16 ms."""
    assert faulting(**fields) is None


def test_a_process_that_forks_gets_every_page_anew_that_it_writes_to() -> None:
    """SAGAN on two cores, whose loader starts its workers for each epoch: of 60,000 faults a second
    22,000 may come from that, and what keeps memory gave 1.1 to 1.4x."""
    rows = run(84, lambda n: {**NET, "startup_ms": 40 if n % 28 == 0 else 0})

    def held_mib(mib: int) -> Finding | None:
        held = (MemoryPoint(84, 0, mib * 2**20),)
        seen = window(rows, workers=worker_use(2, 3), memory=held, **GAN)
        return allocator(replace(seen, host=HostUse(in_kernel=0.2, page_faults_s=60_000.0)))

    found = held_mib(293)
    assert found is not None
    assert found.share == pytest.approx(0.2 * (1 - 3 * 293 * 256 / 10.2 / 60_000), rel=0.1)
    assert held_mib(2_000) is None


def test_tensors_on_a_gpu_are_the_caching_allocators() -> None:
    assert faulting(gpu_present=True) is None


def test_faults_of_large_tensors_that_need_not_be_are_that_causes() -> None:
    """An audio transformer on two cores, whose attention made weights for nobody: 17 % was named,
    and 1.55x came of one argument."""
    weights = AttentionWeights(
        bytes_each=0.01, layers=2, length=443, width=16, dropped=False, in_one_call=0
    )
    called = FrameShare(
        *(0.3, "multi_head_attention_forward (torch/nn/functional.py:7042)", "L.forward (t.py:9)"),
        phase="forward",
        samples=100,
        in_net=True,
        line="h, _ = self.attn(h, h, h)",
    )
    more: dict[str, Any] = {
        "settings": Settings(attention_weights=weights),
        "stacks": Stacks(100, (called,), 0, (), None, main_unplaced=0.0),
    }
    assert faulting(**more, in_kernel=0.17) is None
    left = faulting(**more, in_kernel=0.6, page_faults_s=300_000.0)
    assert left is not None
    assert left.share == pytest.approx(0.6 - 0.45)


def test_faults_of_pictures_that_are_made_larger_too_early_are_those_layers() -> None:
    """A head of FPN on two cores: 39 % was named, and 3.0x came of the layer first."""
    conv = FrameShare(
        *(0.25, "Conv2d._conv_forward (torch/nn/modules/conv.py:560)", "Head.forward (fpn.py:48)"),
        phase="forward",
        samples=100,
        in_net=True,
    )
    rows = RowProducts(part=0.9, rows=65_536, needed=4_096, inputs=128, outputs=19)
    more: dict[str, Any] = {
        "settings": Settings(gathered_products=rows),
        "stacks": Stacks(100, (conv,), 0, (), None, main_unplaced=0.0),
    }
    assert faulting(**more, in_kernel=0.39) is None
