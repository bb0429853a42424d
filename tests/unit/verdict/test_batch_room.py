"""How large a batch the memory has room for, and what is reported where it has none."""

from dataclasses import replace

import pytest
from msgspec import structs

from gpuwatch.tui.settings import Settings, StepOperations
from gpuwatch.tui.verdict.loader import MicroBatches, micro_batches
from gpuwatch.tui.verdict.memory.trends import batch_room, larger_batch
from gpuwatch.tui.verdict.notes.training import memory_full, merged_batches
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.advice_runs import device_memory, launching
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import GIB, even, loader, window


@pytest.mark.parametrize(
    ("peak", "kept", "times"),
    [(0.3, 0.2, 4), (0.55, 0.1, 1), (0.51, 0.1, 2), (0.1, 0.05, 8), (0.2, 0.2, 1)],
)
def test_it_fits_so_many_times(peak: float, kept: float, times: int) -> None:
    """In 92 of 100 GiB, less what stays; never more than eight times."""
    room = batch_room(launching(**device_memory(peak, kept)))
    assert room is not None
    assert room.times_larger == times
    assert room.kept + times * room.activations <= 92 * GIB


def test_what_cudnn_took_to_choose_its_kernels_is_not_a_steps() -> None:
    """AutoVC on an H200, `cudnn.benchmark = True`: "the GPU's memory is 93 % full"."""
    given = device_memory(0.93, kept=0.01)
    newest = structs.replace(given["gpu_memory"][0], reserved=2 * GIB)
    room = batch_room(launching(**{**given, "gpu_memory": (newest,)}))
    assert room is not None
    assert room.times_larger == 8
    assert memory_full(launching(**{**given, "gpu_memory": (newest,)})) is None
    emptied = structs.replace(newest, at_backward=60 * GIB)
    room = batch_room(launching(**{**given, "gpu_memory": (emptied,)}))
    assert room is not None
    assert room.times_larger == 1


def test_what_another_gpu_holds_is_not_this_ones() -> None:
    given = device_memory(0.93, kept=0.01)
    full = given["gpu_memory"][0]
    this = structs.replace(full, device=1, reserved=2 * GIB)
    room = batch_room(launching(**{**given, "gpu_memory": (full, this)}))
    assert room is not None
    assert room.full < 0.03


def test_without_the_allocator_there_is_no_number() -> None:
    assert batch_room(launching()) is None
    assert larger_batch(launching(), "why") == "a larger batch: why"


def test_the_new_size_is_a_multiple_of_eight_and_its_memory_is_reported() -> None:
    seen = launching(loaders=(loader(4, batch_size=13),), **device_memory(0.3))
    assert larger_batch(seen, "why") == "batch_size 13 → 48 (60 GiB of 100 GiB of memory then): why"


def accumulating(seen: StepWindow, count: int, others: int = 0) -> StepWindow:
    """So many batches and backwards in each step but `others`."""
    rows = [
        structs.replace(row, fetches=count * row.count, backwards=count * row.count)
        if at >= others
        else row
        for at, row in enumerate(seen.steps)
    ]
    return replace(seen, steps=tuple(rows))


def test_of_gradients_that_are_accumulated_all_batches_come_at_once() -> None:
    seen = launching(loaders=(loader(4, batch_size=4),), **device_memory(0.3))
    text = larger_batch(accumulating(seen, 4), "why")
    assert text.startswith("one batch of 16 for each update instead of 4 of 4 (60 GiB of 100 GiB")
    assert "1/4 of the launches; the same update, where the loss is a mean" in text
    part = "gradients of 2 batches of 16 for each update instead of 8 of 4 ("
    assert larger_batch(accumulating(seen, 8), "why").startswith(part)
    assert larger_batch(accumulating(seen, 11), "why").startswith("batch_size 4 → 16")
    tasks = replace(seen, loaders=(*seen.loaders, loader(4, key=2)))
    assert micro_batches(accumulating(tasks, 2)) is None
    for one in (loader(4, batch_size=1), loader(4, varies=True)):
        assert micro_batches(accumulating(replace(seen, loaders=(one,)), 4)) is None
    few = len(seen.steps) // 10
    assert micro_batches(accumulating(seen, 4, others=few)) == MicroBatches(4, 4)
    assert micro_batches(accumulating(seen, 4, others=5 * few)) is None


def test_merged_batches_come_before_a_graph_of_small_ones() -> None:
    """A ViT of 16 batches of 4 for each update on an H200: a graph 3.2x, one batch 9.1x measured;
    a sixteenth of the launches is left, and kernels that fill twice as much."""
    net = {"forward_ms": 110, "backward_ms": 210, "optimizer_ms": 10}
    seen = gpu_window(
        even(60, **net), {**net, "lag_ms": 0.04}, activity=activity(28.0, sm=13.0),
        loaders=(loader(4, batch_size=4),), **device_memory(0.02, kept=0.01),
    )  # fmt: skip
    found, alone = launch(accumulating(seen, 16)), launch(seen)
    assert found is not None
    assert alone is not None
    assert found.advice[0].startswith("one batch of 64 for each update instead of 16 of 4")
    assert alone.advice[0].startswith("fewer, larger kernels")
    assert found.speedup is not None
    assert 6 < found.speedup < 10
    assert found.share == alone.share
    left_on = replace(seen, settings=Settings(anomaly=True))
    other = launch(accumulating(left_on, 16))
    assert other is not None
    assert "set_detect_anomaly(False)" in other.advice[0]


def test_on_a_cpu_it_gives_what_calling_the_operations_takes() -> None:
    """A LoRA's step on two cores: 2.2x measured."""
    traced = Settings(step_operations=StepOperations(2, 4_060, 60_000, 60_000))
    step = {"forward_ms": 25, "backward_ms": 42, "optimizer_ms": 1, "other_ms": 2}
    seen = window(even(60, **step), settings=traced, loaders=(loader(0, batch_size=4),))
    note = merged_batches(accumulating(seen, 4))
    assert note is not None
    assert note.text.startswith("about 2.1x by one batch of 16 for each update instead of 4 of 4")
    assert note.gain == pytest.approx(2.1, rel=0.02)
    assert merged_batches(seen) is None


def test_where_it_does_not_fit_it_shows_what_makes_room() -> None:
    text = larger_batch(launching(**device_memory(0.95)), "why")
    assert text.startswith("a larger batch, why: the GPU's memory is 95% full")
    assert "torch.utils.checkpoint" in text


def test_full_memory_is_a_note_by_what_fills_it() -> None:
    by_activations = memory_full(launching(**device_memory(0.95, kept=0.2)))
    by_weights = memory_full(launching(**device_memory(0.95, kept=0.8)))
    assert by_activations is not None
    assert by_weights is not None
    assert "frees most of 75 GiB; half the batch with gradient accumulation" in by_activations.text
    assert "80 GiB are kept between steps" in by_weights.text
    assert memory_full(launching(**device_memory(0.91))) is None
