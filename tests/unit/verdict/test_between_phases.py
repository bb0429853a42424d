"""What of the time between the phases is the probe's and PyTorch's, and no user's."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from gpuwatch.tui.verdict.between_phases import not_the_users
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.windows import even, stacks, step, window

SMALL: dict[str, Any] = {
    "data_ms": 0.018,
    "forward_ms": 0.12,
    "backward_ms": 0.13,
    "optimizer_ms": 0.07,
    "other_ms": 0.04,
}
"""A step of a small net on a CPU whose loop has nothing between its phases but `zero_grad`."""
MEASURED: dict[str, Any] = {"mark_cost_ns": 1_000, "update_wrapper_ns": (11_000, 6_000)}


def small(**fields: Any) -> StepWindow:
    return window(even(60, **SMALL), **fields)


def test_a_loop_of_small_steps_that_does_nothing_else_is_not_accused() -> None:
    """Seed 1969: "10.5 % of each step in Python between the phases", and no change gave 1.05x."""
    assert host(small()) is not None, "without the two it would be"
    judged = Engine().judge(small(**MEASURED))
    assert judged.finding.kind == "healthy"
    assert all(one.kind != "host" or (one.share or 1) < 0.06 for one in judged.contributors)


def test_of_a_step_four_marks_and_one_wrapper_lie_there() -> None:
    found = not_the_users(small(**MEASURED))
    assert (found.hooks_ns, found.wrapper_ns) == (4_000, 17_000)
    assert found.share == pytest.approx(21 / 378)


def test_what_is_not_counted_is_said() -> None:
    seen = window(even(60, **{**SMALL, "other_ms": 0.2}), **MEASURED)
    finding = host(seen)
    assert finding is not None
    assert finding.share == pytest.approx((200 - 21) / 538)
    text = "not counted: 17 us PyTorch's wrapper around the update and 4 us gpuwatch"
    assert text in [one.text for one in finding.evidence]


def test_of_steps_of_20_ms_it_is_nothing_that_shows() -> None:
    rows = even(60, data_ms=1, forward_ms=6, backward_ms=8, optimizer_ms=1, other_ms=4)
    alone, measured = host(window(rows)), host(window(rows, **MEASURED))
    assert alone is not None
    assert measured is not None
    assert measured.share == pytest.approx(alone.share, abs=0.0011)
    assert [one.text for one in measured.evidence] == [one.text for one in alone.evidence]


def test_micro_steps_without_an_update_have_no_wrapper() -> None:
    rows = [changed(step(n, n * 10**6, **SMALL), fetches=4, backwards=4) for n in range(1, 61)]
    found = not_the_users(window(rows, **MEASURED))
    assert (found.hooks_ns, found.wrapper_ns) == (10_000, 17_000)


def test_without_a_loader_forward_begins_behind_the_update() -> None:
    rows = [changed(one, fetches=0) for one in even(60, **SMALL)]
    found = not_the_users(window(rows, loaders=(), **MEASURED))
    assert (found.hooks_ns, found.wrapper_ns) == (2_000, 11_000)


def test_an_update_within_the_backward_has_nothing_beside_it() -> None:
    found = not_the_users(window(even(60, **{**SMALL, "optimizer_ms": 0.0}), **MEASURED))
    assert found.wrapper_ns == 0


def test_nothing_is_taken_off_that_was_not_measured() -> None:
    assert not_the_users(small()).share == 0.0


def test_beside_a_gpu_it_may_be_hidden() -> None:
    """Taken off from what the GPU idles for, it would hide a logger."""
    rows, logger = even(60, **{**SMALL, "other_ms": 0.2}), (0.5, "log (train.py:70)", None)
    seen = window(rows, gpu_present=True, stacks=stacks(main=[logger]))
    alone = host(seen)
    assert alone is not None
    assert host(replace(seen, **MEASURED)) == alone
