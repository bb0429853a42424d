"""How large a batch the memory has room for, and what is reported where it has none."""

import pytest
from msgspec import structs

from gpuwatch.tui.verdict.memory.trends import batch_room, larger_batch
from gpuwatch.tui.verdict.notes.training import memory_full
from tests.unit.verdict.advice_runs import device_memory, launching
from tests.unit.verdict.windows import GIB, loader


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
