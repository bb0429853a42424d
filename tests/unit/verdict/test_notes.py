"""Notes on settings: each appears where it is true for the run, and is silent everywhere else."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.settings import Settings
from gpuwatch.tui.verdict.findings import Note
from gpuwatch.tui.verdict.notes import NOTES, NoteRule
from gpuwatch.tui.verdict.notes.data import (
    blocking_copies,
    inline_loading,
    mixed_lengths,
    own_producers,
    pageable_batches,
    pinned_short,
    restarted_workers,
)
from gpuwatch.tui.verdict.notes.training import (
    anomaly,
    checked_distributions,
    deterministic,
    emptied_cache,
    float64,
    kept_gradients,
    one_by_one,
    one_thread,
    profiler,
    scaler,
    tf32,
)
from gpuwatch.tui.verdict.stack_samples import Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import (
    FP32,
    STEP,
    epochs,
    lines,
    on_gpu,
    packed_reviews,
    replace_loader,
    settings,
)
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import GIB, MIB, even, loader, memory, run, window, worker_use


def noted(rule: NoteRule[StepWindow], seen: StepWindow) -> Note:
    note = rule(seen)
    assert note is not None
    return note


@pytest.mark.parametrize("rule", [rule for rule, _ in NOTES])
def test_a_training_with_nothing_to_remark_has_no_note(rule: NoteRule[StepWindow]) -> None:
    assert rule(on_gpu()) is None
    assert rule(on_gpu(settings=Settings())) is None, "what is not known is not the worst"
    assert rule(on_gpu(settings=None)) is None
    assert rule(window(even(60, **STEP), loaders=())) is None


def test_anomaly_detection_shows_what_the_backward_takes() -> None:
    on = settings(anomaly=True)
    on_host = noted(anomaly, window(even(60, **STEP), settings=on))
    assert (on_host.cost, on_host.source) == ("it slows the backward, 60% of each step", "hook")
    assert "set_detect_anomaly(False)" in on_host.text
    assert noted(anomaly, on_gpu(on)).cost == "it slows the backward, 61% of each step"
    assert noted(anomaly, on_gpu(on)).source == "event"


def test_float64_shows_what_the_net_takes() -> None:
    """Of a net of products on two cores float32 was 2.0 times as fast (measured)."""
    note = noted(float64, window(even(60, **STEP), settings=settings(parameter_dtype="float64")))
    assert note.cost == "forward, backward and update take 99% of each step"
    assert "model.float()" in note.text


def test_a_profiler_of_the_programs_own_is_noted() -> None:
    assert "schedule(" in noted(profiler, on_gpu(settings(profiler=True))).text


def test_emptying_the_cache_in_the_loop_is_its_samples() -> None:
    line = (0.03, "step (train.py:88)", "torch.cuda.empty_cache()")
    note = noted(emptied_cache, on_gpu(stacks=lines(line)))
    assert "empty_cache() in the loop (train.py:88)" in note.text
    assert (note.cost, note.source) == ("3% of main-thread samples", "py-spy")
    inside = (0.02, "empty_cache (torch/cuda/memory.py:170)", "sweep()")
    assert "(train.py:31)" in noted(emptied_cache, on_gpu(stacks=lines(inside))).text


def test_emptying_the_cache_now_and_then_is_no_smell() -> None:
    once = (0.005, "step (train.py:88)", "torch.cuda.empty_cache()")
    assert emptied_cache(on_gpu(stacks=lines(once))) is None
    few = (0.5, "step (train.py:88)", "torch.cuda.empty_cache()")
    assert emptied_cache(on_gpu(stacks=lines(few, samples=4))) is None


def test_distributions_that_are_checked_in_each_step_are_their_samples() -> None:
    made = (0.03, "Distribution.__init__ (torch/distributions/distribution.py:76)", "Normal(m, s)")
    note = noted(checked_distributions, on_gpu(stacks=lines(made)))
    assert note.text.endswith("torch.distributions.Distribution.set_default_validate_args(False)")
    assert "in each step (train.py:31)" in note.text
    assert note.cost == "3% of main-thread samples"
    one = (0.03, "_Real.check (torch/distributions/constraints.py:425)", "Normal(m, s)")
    assert checked_distributions(on_gpu(stacks=lines(one))) is not None
    drawn = (0.3, "Normal.rsample (torch/distributions/normal.py:80)", "Normal(m, s).rsample()")
    assert checked_distributions(on_gpu(stacks=lines(drawn))) is None


def test_tf32_off_shows_what_the_counters_read() -> None:
    note = noted(tf32, on_gpu(settings(**FP32), activity=activity(99, fp32=31.0, tensor=0.0)))
    assert note.cost == "fp32 units are at work 31% of the time, tensor cores 0%"
    assert note.source == "gpm"
    assert 'set_float32_matmul_precision("high")' in note.text


def test_tf32_off_without_counters_needs_a_product_that_was_seen() -> None:
    assert noted(tf32, on_gpu(settings(**FP32))).cost is None
    assert noted(tf32, on_gpu(settings(**{**FP32, "autocast": None}))).cost is None, "matrices"
    unseen = settings(**{**FP32, "autocast": None, "parameter_bytes": 40_000})
    assert tf32(on_gpu(unseen)) is None
    assert tf32(on_gpu(unseen, activity=activity(99, fp32=20.0, tensor=0.0))) is None
    busy = activity(99, fp32=60.0, tensor=0.0)
    assert tf32(on_gpu(unseen, activity=busy)) is None, "pointwise work keeps them busy, too"
    linear = lines((0.3, "linear (torch/nn/functional.py:2330)", "x = self.fc(x)"))
    assert tf32(on_gpu(unseen, activity=busy, stacks=linear)) is not None


def test_the_switch_of_matrices_is_not_for_convolutions() -> None:
    """A ResNet-50 without counters (A100): cuDNN's run in tf32 as it is."""
    inside = lines((0.9, "_conv_forward (torch/nn/modules/conv.py:549)", "return F.conv2d("))
    assert tf32(on_gpu(settings(**FP32), stacks=inside)) is None
    forbidden = settings(**{**FP32, "cudnn_tf32": False})
    assert tf32(on_gpu(forbidden, stacks=inside)) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"autocast": "bfloat16"},
        {"matmul_precision": "high"},
        {"parameter_dtype": "bfloat16"},
        {"parameter_device": "cpu"},
        {"capability": 70},
        {"capability": None},
    ],
    ids=str,
)
def test_tf32_is_no_matter_elsewhere(change: dict[str, Any]) -> None:
    reported = settings(**{**FP32, **change})
    assert tf32(on_gpu(reported)) is None
    assert tf32(on_gpu(reported, activity=activity(99, fp32=31.0, tensor=0.0))) is None


def test_pointwise_work_in_fp32_is_no_product() -> None:
    """On an H200 a pointwise kernel reads 2 % of the fp32 units; convolutions use tf32."""
    off = settings(**FP32)
    assert tf32(on_gpu(off, activity=activity(99, fp32=2.0, tensor=0.0))) is None
    assert tf32(on_gpu(off, activity=activity(99, fp32=15.0, tensor=20.0))) is None


def test_a_scaler_with_bfloat16_waits_for_nothing_useful() -> None:
    note = noted(scaler, on_gpu(settings(scaler=True)))
    assert "GradScaler(enabled=False)" in note.text
    assert note.cost == "the host waits for the GPU before each optimizer step"
    assert noted(scaler, on_gpu(settings(scaler=True, fused=True))).cost is None
    held = lines((0.06, "_maybe_opt_step (torch/amp/grad_scaler.py:348)", "scaler.step(opt)"))
    measured = noted(scaler, on_gpu(settings(scaler=True), stacks=held))
    assert measured.cost == "6% of main-thread samples are in it"
    assert measured.source == "py-spy"


def test_a_scaler_with_float16_is_needed_and_bfloat16_is_not_everywhere() -> None:
    half = settings(scaler=True, autocast="float16")
    assert "torch.bfloat16 does without" in noted(scaler, on_gpu(half)).text
    older = settings(scaler=True, autocast="float16", capability=75)
    assert scaler(on_gpu(older)) is None
    assert scaler(on_gpu(settings(scaler=True, autocast=""))) is None
    assert scaler(on_gpu(settings(scaler=True, autocast=None))) is None


@pytest.mark.parametrize("line", ["x = x.to(device)", "x, y = x.cuda(), y.cuda()", "b.to(d[i])"])
def test_pinned_batches_copied_in_a_blocking_way(line: str) -> None:
    note = noted(blocking_copies, on_gpu(stacks=lines((0.04, "step (train.py:31)", line))))
    assert note.text.endswith("(train.py:31): non_blocking=True")
    assert (note.cost, note.source) == ("4% of main-thread samples", "py-spy")


@pytest.mark.parametrize(
    "line",
    [
        "x = x.to(device, non_blocking=True)",
        "x = x.to(",
        "x = x.to(device, **how)",
        "x = x.to(torch.bfloat16)",
        "x = x.to(dtype=torch.int64)",
        "loss = net(x)",
    ],
)
def test_what_does_not_block_or_may_not(line: str) -> None:
    assert blocking_copies(on_gpu(stacks=lines((0.4, "step (train.py:31)", line)))) is None


def test_batches_that_are_not_pinned_cannot_be_copied_without_blocking() -> None:
    bare = replace_loader(pinned=False, pin_memory=False)
    seen = on_gpu(loaders=(bare,), stacks=lines((0.4, "step (train.py:31)", "x.to(device)")))
    assert blocking_copies(seen) is None


def test_pageable_batches_show_the_lines_that_copy() -> None:
    bare = replace_loader(pinned=False, pin_memory=False)
    note = noted(pageable_batches, on_gpu(loaders=(bare,)))
    assert note.text == "batches of 38 MiB are copied from pageable memory: pin_memory=True"
    assert note.cost is None
    copies = lines((0.03, "step (train.py:31)", "x = x.cuda()"))
    measured = noted(pageable_batches, on_gpu(loaders=(bare,), stacks=copies))
    assert measured.cost == "3% of main-thread samples are on lines that copy"


@pytest.mark.parametrize(
    "fields",
    [
        {"batch_bytes": MIB},
        {"batch_bytes": None},
        {"pinned": None, "batch_device": "cuda"},
        {"pinned": True},
    ],
    ids=str,
)
def test_small_pinned_and_unknown_batches_are_no_matter(fields: dict[str, Any]) -> None:
    bare = replace_loader(**{"pinned": False, "pin_memory": False, **fields})
    assert pageable_batches(on_gpu(loaders=(bare,))) is None


def test_batches_for_a_cpu_need_no_pinning() -> None:
    bare = replace_loader(pinned=False, pin_memory=False)
    on_cpu = settings(parameter_device="cpu")
    assert pageable_batches(window(even(60, **STEP), settings=on_cpu, loaders=(bare,))) is None


def test_an_optimizer_that_goes_one_by_one() -> None:
    note = noted(one_by_one, on_gpu(settings(foreach=False)))
    assert note.text.startswith("AdamW(foreach=False) updates 161 tensors one by one")
    assert (note.cost, note.source) == ("the optimizer takes 9% of each step", "event")
    for other in ({"foreach": None}, {"parameters": 12}, {"fused": True}):
        assert one_by_one(on_gpu(settings(**{"foreach": False, **other}))) is None
    assert one_by_one(on_gpu(settings(foreach=False, parameter_device="cpu"))) is None


def test_gradients_that_live_on_show_their_bytes() -> None:
    note = noted(kept_gradients, on_gpu(settings(set_to_none=False)))
    assert note.cost == "348 MiB are zeroed and added to in each step"
    assert kept_gradients(on_gpu(settings(set_to_none=None))) is None


def test_deterministic_algorithms_cost_what_nobody_measured() -> None:
    assert noted(deterministic, on_gpu(settings(deterministic=True))).cost is None


def test_workers_that_are_started_again_show_what_an_epochs_start_takes() -> None:
    again = loader(4, iterations=5)
    note = noted(restarted_workers, window(epochs(90, 200.0), loaders=(again,)))
    assert note.cost == "200 ms per epoch start, 2% of the time"
    assert "persistent_workers=True" in note.text
    assert restarted_workers(window(epochs(90, 20.0), loaders=(again,))) is None, "0.2 %"
    for other in (loader(4, iterations=1), loader(4, iterations=5, persistent_workers=True)):
        assert restarted_workers(window(epochs(90, 200.0), loaders=(other,))) is None
    assert restarted_workers(window(epochs(90, 200.0), loaders=(loader(0, iterations=5),))) is None


def test_processes_of_the_programs_own_that_never_wait_may_be_late() -> None:
    """SASRec's sampler, which nobody saw: launches were blamed, and twelve processes gave 1.42x."""
    tireless = replace(worker_use(3, 100), oldest_s=6.0, cpu_each=((99.0, 100.0),) * 3)
    note = noted(own_producers, window(even(60, **STEP), workers=tireless, loaders=()))
    assert note.text.startswith("3 processes that it started compute all the time: if they make")
    assert note.cost == "100% of a core each"
    beside = replace(tireless, cpu_each=((99.0, 100.0), (0.0, 1.0), (94.0, 99.0)))
    one = noted(own_producers, window(even(60, **STEP), workers=beside, loaders=()))
    assert one.text.startswith("a process that it started computes all the time: if it makes")
    assert one.cost == "100% of a core"
    threads = replace(tireless, cpu_each=((240.0, 240.0), (99.0, 100.0)))
    for other in (None, replace(tireless, oldest_s=0.0), replace(tireless, cpu_each=()),
                  replace(tireless, cpu_each=((90.0, 99.0),)), threads,
                  replace(tireless, exited=2)):  # fmt: skip
        assert own_producers(window(even(60, **STEP), workers=other, loaders=())) is None
    assert own_producers(window(even(60, **STEP), workers=tireless, loaders=(loader(3),))) is None


def test_packed_texts_of_mixed_lengths_are_noted_of_recurrent_layers() -> None:
    """A packed LSTM on reviews was healthy, and batches by length gave 2.0x."""
    recurrent = packed_reviews()
    note = noted(mixed_lengths, recurrent)
    assert note.cost == "32% of them lie beyond a text's end"
    alike = tuple(structs.replace(one, kept=16 * 240) for one in recurrent.padding)
    assert recurrent.stacks is not None
    (layer,) = recurrent.stacks.main
    convolution = replace(layer, frame="Conv1d.forward (torch/nn/modules/conv.py:9)")
    for other in (
        replace(recurrent, padding=alike),
        replace(recurrent, padding=()),
        replace(recurrent, stacks=Stacks(100, (convolution,), 0, (), None)),
        replace(recurrent, stacks=Stacks(100, (replace(layer, unpacked=True),), 0, (), None)),
    ):
        assert mixed_lengths(other) is None


def test_the_start_of_the_run_is_not_the_start_of_an_epoch() -> None:
    first = run(60, lambda n: {**STEP, "startup_ms": 9_000 if n == 1 else 0})
    assert restarted_workers(window(first, loaders=(loader(4, iterations=2),))) is None


def test_loading_inline_shows_what_a_batch_costs() -> None:
    rows = even(60, **{**STEP, "data_ms": 3})
    note = noted(inline_loading, window(rows, loaders=(loader(0),), cores=8.0))
    assert note.text == "num_workers 0 → 1: the training thread loads every batch itself"
    assert (note.cost, note.source) == ("3.0 ms per batch, 3% of the time", "hook")
    assert inline_loading(window(rows, loaders=(loader(0),), cores=1.0)) is None
    assert inline_loading(window(rows, loaders=(loader(2),), cores=8.0)) is None
    on_device = loader(0, batch_device="cuda")
    assert inline_loading(window(rows, loaders=(on_device,), cores=8.0)) is None
    full = window(rows, loaders=(loader(0),), cores=2.0, main_cpu_percent=196.0)
    assert inline_loading(full) is None
    cheap = even(60, **{**STEP, "data_ms": 0.4})
    assert inline_loading(window(cheap, loaders=(loader(0),), cores=8.0)) is None


def test_a_batch_that_takes_less_than_its_way_from_a_worker_is_made_here() -> None:
    """0.3 ms a batch of steps of 8 ms: by the model itself they take 8.4 ms with a worker."""

    def note(data_ms: float, cores: float) -> Note | None:
        rows = even(60, data_ms=data_ms, forward_ms=3, backward_ms=4, optimizer_ms=0.7)
        return inline_loading(window(rows, loaders=(loader(0),), cores=cores))

    assert note(0.3, cores=8.0) is None
    assert note(1.0, cores=2.0) is None
    assert note(1.0, cores=8.0) is not None
    assert note(3.0, cores=2.0) is not None


def test_loading_behind_a_busy_gpu_is_reported_to_be_hidden() -> None:
    """S09 of demo/scenarios/catalogue.json: 30 ms of loading behind 90 ms of GPU work."""
    rows = even(60, data_ms=30, forward_ms=20, backward_ms=30, optimizer_ms=10)
    behind = {"data_ms": 0, "forward_ms": 30, "backward_ms": 50, "optimizer_ms": 10, "wait_ms": 30}
    note = noted(inline_loading, gpu_window(rows, behind, loaders=(loader(0),), cores=8.0))
    assert note.cost == "30 ms per batch, 33% of the time, hidden behind the GPU's work"


def test_one_thread_on_many_idle_cores() -> None:
    one = settings(threads=1, parameter_device="cpu")
    seen = {"settings": one, "cores": 16.0, "machine_cpu_percent": 8.0}
    note = noted(one_thread, window(even(60, **STEP), **seen))
    assert note.text == "one thread on 16 cores: torch.set_num_threads(16)"
    assert (note.cost, note.source) == ("14.7 of them are idle", "proc")
    ranks = noted(one_thread, window(even(60, **STEP), **seen, world_size=4))
    assert ranks.text == "one thread for each of 4 ranks on 16 cores: torch.set_num_threads(4)"
    for other in (
        {"settings": settings(threads=2, parameter_device="cpu")},
        {"settings": settings(threads=1)},
        {"cores": 1.0},
        {"world_size": 16},
        {"machine_cpu_percent": 90.0},
        {"machine_cpu_percent": None},
    ):
        assert one_thread(window(even(60, **STEP), **{**seen, **other})) is None


def test_pinning_while_memory_is_short() -> None:
    held = memory(lambda _: 60 * GIB, 20, 10)
    short = on_gpu(memory=tuple(held), memory_limit_bytes=61 * GIB)
    assert noted(pinned_short, short).cost == "1.0 GiB left"
    assert pinned_short(on_gpu(memory=tuple(held), memory_limit_bytes=90 * GIB)) is None
    assert pinned_short(on_gpu(memory=tuple(held), memory_limit_bytes=None)) is None
    bare = replace_loader(pinned=False)
    assert pinned_short(replace(short, loaders=(bare,))) is None
