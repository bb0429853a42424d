"""Two causes at once: the larger leads, the other is said beside it."""

import pytest

from gpuwatch.tui.verdict.engine import Engine
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader, stacks, window

FORWARD = stacks([(0.85, "forward (model.py:12)", None)])


def test_launching_a_fifth_and_waiting_for_data_a_seventh() -> None:
    """S41 of demo/scenarios/catalogue.json."""
    steps = even(60, data_ms=15, forward_ms=35, backward_ms=46, optimizer_ms=4)
    on_gpu = {"data_ms": 15, "forward_ms": 35, "backward_ms": 46, "optimizer_ms": 4}
    given = {"activity": activity(65.0), "stacks": FORWARD, "loaders": (loader(0),)}
    said = Engine().judge(gpu_window(steps, on_gpu, **given))
    assert said.finding.kind == "launch"
    assert said.finding.share == pytest.approx(0.20, abs=0.01)
    beside = {one.kind: one.share for one in said.contributors}
    assert beside["input"] == pytest.approx(0.15, abs=0.01)


def test_a_load_that_an_item_exposes_is_one_or_the_other() -> None:
    """S11: 30 ms of loading that 90 ms on the GPU would hide, were it not for `loss.item()`."""
    steps = even(60, data_ms=30, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=84)
    on_gpu = {"data_ms": 30, "forward_ms": 30, "backward_ms": 57, "optimizer_ms": 3, "lag_ms": 84}
    item = stacks([(0.70, "item (_tensor.py:10)", "train (train.py:40)")])
    given = {"activity": activity(75.0), "stacks": item, "loaders": (loader(0),)}
    said = Engine().judge(gpu_window(steps, on_gpu, **given))
    shares = {one.kind: one.share for one in (said.finding, *said.contributors)}
    assert shares["input"] == pytest.approx(0.25, abs=0.01)
    assert shares["sync"] == pytest.approx(0.25, abs=0.01)


def test_a_crowded_machine_beside_a_serial_loader() -> None:
    """The neighbours take a third, the loader half: first the loader, whatever the machine."""
    rows = even(60, data_ms=50, forward_ms=20, backward_ms=25, optimizer_ms=5)
    crowd = {"run_delay": 0.3, "others_cores": 1.2, "beside_cores": 0.0}
    said = Engine().judge(window(rows, loaders=(loader(0),), **crowd))
    assert (said.finding.kind, said.finding.sub) == ("input", "serial")
    beside = {one.kind: one.share for one in said.contributors}
    assert beside["contention"] == pytest.approx(0.3)
