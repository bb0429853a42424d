"""What four guides to slow training know: each symptom's first action, or its answer, is reported.

A: a three-run lab, B: three regimes, C: four bottlenecks, D: the GPU's pipeline; each by row.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.memory_watch import MemoryWatch
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.advice_runs import (
    DECODE,
    allocator,
    bursts,
    copying,
    device_memory,
    launching,
    limited,
    optimizing,
    starved,
    syncing,
    waiting,
)
from tests.unit.verdict.noted import FP32, epochs, in_net, lines, settings
from tests.unit.verdict.noted import on_gpu as noted
from tests.unit.verdict.windows import GIB, MIB, even, loader, memory, run, stacks, window
from tests.unit.verdict.windows import worker_use as workers

NOT_YET = {
    "A3": "which of two changes gains more: `gpuwatch lab` runs both, in a later issue",
    "A4": "likewise",
    "A17": "a baseline to compare with: `gpuwatch compare`, in a later issue",
    "C3": "communication needs the other ranks' steps: the issue on several ranks",
    "C15": "likewise",
    "C7": "throughput over batch sizes is a panel and no verdict, in a later issue",
}


def judged(seen: StepWindow) -> str:
    """All that a person reads of one look."""
    verdict = Engine().judge(seen)
    found = (verdict.finding, *verdict.contributors)
    return "\n".join(
        [
            f"{verdict.finding.kind}/{verdict.finding.sub}",
            *(text for one in found for text in (one.headline, *one.advice)),
            *(evidence.text for one in found for evidence in one.evidence),
            *(note.text for note in verdict.notes),
            *(one.text for one in verdict.missing),
        ]
    )


LINEAR = lines((0.4, "linear (torch/nn/functional.py:2330)", "x = self.fc(x)"))
ROWS: list[tuple[Any, ...]] = [
    # -- A: the three-run lab
    ("A1 C1 busy is no green light", limited(sm=20, tensor=3), "compute/underfilled"),
    ("A1 C1 busy and used is", limited(tensor=60), "compute/saturated"),
    ("A2 fp32 that is not the limit", limited(fp32=20), "compute/None"),
    ("A5 A9 C2 D4 more workers", waiting(2, 86, cores=16.0, workers=workers(2, 97)),
     "num_workers 2 → ", "one worker needs"),
    ("A5b heavy transforms", waiting(2, 40, workers=workers(2, 92), stacks=stacks(
        workers=[(0.8, "augment (dataset.py:52)", None)], idle=0.0)),
     "vectorised, or on the GPU", "augment (dataset.py:52)"),
    ("A5b decoding", waiting(2, 40, workers=workers(2, 92), stacks=stacks(
        workers=[DECODE], idle=0.0)), "decode on the GPU"),
    ("A6 pinned without non_blocking", noted(
        stacks=lines((0.05, "train (train.py:31)", "x = x.to(device)"))), "non_blocking=True"),
    ("A7 odd shapes", limited(sm=97, tensor=20), "pad sizes to multiples of 8"),
    ("A8 C4 tiny kernels", launching(), "torch.compile(model"),
    ("A11 anomaly detection", noted(settings=settings(anomaly=True)),
     "set_detect_anomaly(False)"),
    ("A12 empty_cache in the loop", noted(
        stacks=lines((0.03, "train (train.py:90)", "torch.cuda.empty_cache()"))),
     "empty_cache() in the loop (train.py:90)"),
    ("A14 set_to_none", noted(settings=settings(set_to_none=False)), "set_to_none=True"),
    ("A15 a fused optimizer", optimizing(foreach=False), "AdamW(..., fused=True)"),
    ("A16 a scaler with bf16", noted(settings=settings(scaler=True)),
     "GradScaler(enabled=False)"),
    ("A18 C6 warm-up is left out", window(even(9, forward_ms=80)), "warming up"),
    ("A19 C9 persistent workers", window(epochs(30, 900.0), loaders=(loader(4, iterations=9),)),
     "persistent_workers=True"),
    # -- B: the three regimes
    ("B1 bandwidth near its peak", limited(tensor=2, dram=85), "memory-bandwidth/None",
     "fuse the pointwise work: torch.compile"),
    ("B2 B4 low FLOPs: precision", limited(fp32=60, stacks=LINEAR), "compute/precision",
     "torch.bfloat16"),
    ("B2 B4 low FLOPs: batch", limited(sm=20, tensor=3, **device_memory(0.3)),
     "batch_size 12 → 48 (60 GiB of 100 GiB of memory then)"),
    ("B3 B7 overhead", launching(stacks=lines(
        (0.8, "train (train.py:40)", "h = cell(x[t], h)"))),
     "CUDA graph", "train (train.py:40): turn a loop over samples or time steps"),
    ("B5 compute", limited(tensor=60), "the GPU is the limit and well used"),
    ("B6 B8 few operations a byte, casts", limited(tensor=2, dram=85), "move fewer bytes"),
    # -- C: the four bottlenecks
    ("C5 mixed precision", limited(fp32=60, stacks=LINEAR), "torch.autocast"),
    ("C10 graph breaks", window(run(120, lambda n: {
        "forward_ms": 50, "compile_ms": 900 if n > 40 and n % 12 == 0 else 0})),
     "TORCH_LOGS=recompiles,graph_breaks"),
    ("C11 D11 bf16 over fp16", noted(settings=settings(scaler=True, autocast="float16")),
     "torch.bfloat16 does without"),
    ("C11 D11 tf32", noted(settings=settings(**FP32)),
     'torch.set_float32_matmul_precision("high")'),
    ("C12 D12 C14 memory is full", limited(tensor=60, **device_memory(0.95)),
     "torch.utils.checkpoint", "gradient accumulation"),
    ("C14 no room for a larger batch", launching(**device_memory(0.95)),
     "activation checkpointing (torch.utils.checkpoint) would make room"),
    ("C13 attention by hand", limited(tensor=20, dram=75, stacks=in_net(
        (0.1, "forward (train.py:60)", "att = q @ k.transpose(-2, -1)"),
        (0.2, "forward (train.py:61)", "att = F.softmax(att, dim=-1)"),
        (0.1, "forward (train.py:63)", "y = att @ v"))),
     "`F.softmax(att, dim=-1)` at train.py:61: F.scaled_dot_product_attention"),
    ("C18 D14 the point in the roofline", limited(tensor=31, dram=52),
     "tensor cores 31%", "memory 52%"),
    ("C19 stacks name the line", window(
        even(60, data_ms=1, forward_ms=40, other_ms=40),
        stacks=stacks([(0.5, "log (train.py:70)", None)])), "tensor expression: log (train.py:70)"),
    # -- D: the GPU pipeline
    ("D1 tiny tensors", copying(False, 0.5, 64, 150.0, "batch = [t.to(dev) for t in batch]"),
     "one copy instead of 64", "`t.to(dev)` at train.py:31"),
    ("D2 full memory is not compute", starved(**device_memory(0.97)), "input/serial"),
    ("D3 40 of 50 ms idle", window(even(60, data_ms=40, forward_ms=10), loaders=(loader(4),)),
     "waiting for data takes 80% of each step"),
    ("D5 no workers", waiting(0, 50, cores=16.0), "num_workers 0 → 4", "a batch takes 50 ms"),
    ("D5 not pinned", copying(False, 60, 2, 2950.0, "x = x.to(device)"),
     "pin_memory=True), and non_blocking=True for `x.to(device)` at train.py:31"),
    ("D6 too many workers", waiting(16, 40, cores=8.0, workers=workers(16, 46),
                                    machine_cpu_percent=99.0), "num_workers 16 → 8"),
    ("D7 a slow __getitem__", waiting(2, 86, workers=workers(2, 8), stacks=stacks(
        workers=[(0.9, "execute (sqlite.py:12)", "__getitem__ (dataset.py:9)")], idle=0.0)),
     "execute (sqlite.py:12), called from __getitem__ (dataset.py:9)"),
    ("D8 pinned and short of memory", noted(
        memory=tuple(memory(lambda _: 60 * GIB, 20, 10)), memory_limit_bytes=61 * GIB),
     "pin_memory=False"),
    ("D9 spikes", bursts(300.0), "prefetch_factor 2 → 3"),
    ("D9 not too high", bursts(9_000.0), "prefetch_factor 2 → 8 would help, but not hide it"),
    ("D10 multiples of 8", limited(sm=97, tensor=20), "batch_size 12 → 16, a multiple of 8"),
    ("D13 unfused kernels", limited(tensor=2, dram=85), "torch.compile(model)"),
    # -- beside the table
    ("a wait with its line", syncing("total += loss.item()"),
     "`loss.item()` at train.py:88: keep it on the GPU", "15 times as seldom"),
    ("a wait for a shape", syncing("kept = x[mask]"), "torch.where(mask, a, b)"),
    ("an embedding", optimizing(parameters=3, parameter_bytes=900 * MIB, stacks=lines(
        (0.2, "embedding (torch/nn/functional.py:2567)", "x = self.table(ids)"))), "SparseAdam"),
    ("fused already", optimizing(fused=True), "accumulate gradients"),
]  # fmt: skip


def over_time(**series: Sequence[Any]) -> str:
    """What is reported of memory after looking at it once a second, over steps of 100 ms."""
    watch = MemoryWatch()
    found: tuple[Finding, ...] = ()
    for seconds in range(1, 61):
        reported = {name: tuple(points[:seconds]) for name, points in series.items()}
        found = watch.update(window(STEADY, gpu_present="gpu_memory" in series, **reported))
    return "\n".join(text for one in found for text in (one.headline, *one.advice))


STEADY = even(600, forward_ms=40, backward_ms=60)
GROWING = memory(lambda step: GIB + 2 * MIB * step, 60, steps_s=10.0)
MEMORY_ROWS: list[tuple[Any, ...]] = [
    ("A10 A13 results that are kept", {"gpu_memory": allocator(rising=True)},
     "append loss.item(), not loss"),
    ("C8 the recorder", {"gpu_memory": allocator(rising=True)}, "_record_memory_history()"),
    ("C16 fragmentation", {"gpu_memory": allocator(in_pieces=True)}, "expandable_segments:True"),
    ("D15 workers copy the dataset", {"worker_memory": GROWING}, "workers copy what they touch"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("series", "word"), [pytest.param(row[1], row[2], id=row[0]) for row in MEMORY_ROWS]
)
def test_the_action_on_memory_is_reported(series: dict[str, Sequence[Any]], word: str) -> None:
    assert word in over_time(**series)


def test_the_order_of_fixes_only_breaks_ties() -> None:
    """C17: compile, AMP, accumulation, loader is no order where one costs more than another."""
    for data_ms, other_ms, first in ((40, 20, "input"), (20, 40, "host")):
        rows = even(60, data_ms=data_ms, other_ms=other_ms, forward_ms=40)
        assert Engine().judge(window(rows, loaders=())).finding.kind == first


@pytest.mark.parametrize(
    ("seen", "words"), [pytest.param(row[1], row[2:], id=row[0]) for row in ROWS]
)
def test_the_action_is_reported(seen: StepWindow, words: tuple[str, ...]) -> None:
    text = judged(seen)
    for word in words:
        assert word in text


def test_every_row_of_the_table_is_here() -> None:
    reported = " ".join(row[0] for row in [*ROWS, *MEMORY_ROWS]).split()
    rows = {f"{part}{n}" for part, most in zip("ABCD", (19, 8, 19, 15), strict=True)
            for n in range(1, most + 1)}  # fmt: skip
    assert rows - set(reported) - set(NOT_YET) == {"C17"}, "that row is the test above"
    assert not set(NOT_YET) & set(reported)
