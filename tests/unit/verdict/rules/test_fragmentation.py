"""GPU memory in pieces."""

from typing import Any

import pytest

from gpuwatch.tui.steps import GpuMemory
from gpuwatch.tui.verdict.rules.memory_growth import fragmentation
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import GIB, S, even, window

ROWS = even(600, forward_ms=40, backward_ms=60)


def seen(
    split: float | None,
    retries_a_step: float = 0.0,
    allocs_a_step: float | None = 0.0,
    peak: float = 0.95,
    frees_a_step: float | None = None,
    **more: Any,
) -> StepWindow:
    """40 s of 10 steps each: so much of what is reserved lies in pieces, and so much of the most
    that was reserved was once allocated."""
    readings = tuple(
        GpuMemory(
            t_ns=S * second,
            step=10 * second,
            device=0,
            allocated=6 * GIB,
            reserved=10 * GIB,
            active=6 * GIB,
            peak_allocated=round(peak * 10 * GIB),
            peak_reserved=10 * GIB,
            at_backward=None,
            retries=round(10 * second * retries_a_step),
            ooms=0,
            inactive_split=None if split is None else round(split * 10 * GIB),
            device_allocs=None if allocs_a_step is None else round(10 * second * allocs_a_step),
            device_frees=None if frees_a_step is None else round(10 * second * frees_a_step),
        )
        for second in range(1, 41)
    )
    return window(ROWS, gpu_present=True, gpu_memory=readings, **more)


@pytest.mark.parametrize(
    ("split", "retries", "allocs"), [(0.3, 0.05, 0.0), (0.3, 0.0, 0.5), (0.2, 0.01, None)]
)
def test_memory_in_pieces(split: float, retries: float, allocs: float | None) -> None:
    found = fragmentation(seen(split, retries, allocs))
    assert found is not None
    assert (found.kind, found.sub, found.severity) == (
        "memory-growth",
        "fragmentation",
        "warning",
    )
    assert found.evidence[0].value == pytest.approx(100 * split)
    assert "expandable_segments:True" in found.advice[0]


def test_requests_that_fail_while_a_tenth_lies_free_want_larger_pieces() -> None:
    found = fragmentation(seen(0.15, 0.5, 0.5, peak=0.83))
    assert found is not None
    assert found.evidence[0].value == pytest.approx(17.0)
    assert found.evidence[0].text.endswith("was free at the fullest moment")
    assert fragmentation(seen(0.15, 0.0, 0.5, peak=0.83)) is None


@pytest.mark.parametrize(
    ("split", "retries", "allocs"),
    [
        (0.15, 0.5, 0.5),  # little is in pieces
        (0.5, 0.0, 0.0),  # it is, and nobody wants it
        (0.5, 0.0, 0.02),  # a request of the device now and then
        (0.5, 0.0, None),
        (None, 0.5, 0.5),  # not reported by this torch
    ],
)
def test_no_fragmentation(split: float | None, retries: float, allocs: float | None) -> None:
    assert fragmentation(seen(split, retries, allocs)) is None


def test_what_the_warm_up_asked_for_does_not_count() -> None:
    assert fragmentation(seen(0.3, 0.05, warm_step=390)) is None


@pytest.mark.parametrize(
    ("frees", "limit", "named"), [(70.0, 140, False), (0.1, 140, True), (70.0, 10, True)]
)
def test_a_cache_that_the_program_empties_is_in_no_pieces(
    frees: float, limit: int, named: bool
) -> None:
    """Generated run 2391 on an H200, which empties it in each step, was said to be in pieces, with
    130 GiB free. Where memory is full PyTorch empties it by itself."""
    judged = seen(0.25, 0.0, 71.0, frees_a_step=frees, gpu_memory_limit_bytes=limit * GIB)
    assert (fragmentation(judged) is not None) is named
