"""Looks at the gradients' norm: what one costs, and when a NaN is known."""

import math
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpuwatch.probe.first_number import numerics_of
from gpuwatch.probe.numerics import (
    BUDGET_NS,
    CELLS,
    EVERY_ALONE,
    EVERY_WATCHED,
    FIRST,
    MOST_WATCHED,
    Numerics,
    Ring,
)
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire.marks import BACKWARD_ENTER


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Whose thread trains, while somebody watches."""
    failures: list[Exception] = []
    one = Recorder(lambda kind: True, failures.append)
    one.mark(BACKWARD_ENTER)
    one.watched = True
    yield one
    assert failures == []


def bad(recorder: Recorder) -> list[str]:
    """Those noted that were not finite."""
    recorder.notes.turn()
    return [row[4] for row in recorder.notes.to_send(first=True) if row[4]]


def test_norms_come_out_of_the_ring_in_order_and_none_is_lost_while_there_is_room() -> None:
    ring = Ring(torch, pinned=False)
    for number in range(3 * CELLS):
        ring.put(torch.tensor(float(number)), number, [])
        assert ring.take() == (number, float(number), [])
        assert ring.take() is None
    for number in range(CELLS + 5):
        fits = ring.put(torch.tensor(math.nan if number == 3 else 1.0), number, [])
        assert fits == (number < CELLS - 1)
    found = [ring.take() for _ in range(CELLS)]
    assert [one[0] for one in found if one is not None] == [*range(CELLS - 1)]
    third = found[3]
    assert third is not None
    assert math.isnan(third[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("figure", [0.0, 1e-42, 3.515625, 65_504.0, math.inf, math.nan])
def test_a_look_leaves_a_norm_as_it_is(figure: float, dtype: torch.dtype) -> None:
    ring = Ring(torch, pinned=False)
    norm = torch.tensor(figure, dtype=dtype)
    ring.put(norm, 5, [])
    assert ring._slots[0].numpy().tobytes() == norm.float().numpy().tobytes()


def test_a_cell_that_the_device_has_not_written_is_waited_for() -> None:
    ring = Ring(torch, pinned=False)
    ring.put(torch.tensor(-1.0), 5, [])  # as the cell looks until then
    assert ring.take() is None
    ring._slots[0].fill_(2.5)
    assert ring.take() == (5, 2.5, [])


class HeldDevice:
    """As `Events` of a device whose copies are done at once: device -1 is a CPU tensor's."""

    def device(self) -> int:
        return -1

    def handle(self, device: int) -> int:
        return 0


class Dispatched(TorchDispatchMode):
    """Counts what reaches torch's dispatcher."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.fixture
def looking(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Numerics:
    """Which takes norms of the CPU as a device's, into a ring that is there already."""
    numerics = numerics_of(recorder)
    monkeypatch.setattr(numerics, "_is_plain", lambda value: True)
    monkeypatch.setattr(numerics, "_events", HeldDevice())
    monkeypatch.setattr(numerics, "_ring", Ring(torch, pinned=False))
    return numerics


def test_a_look_at_a_norm_is_one_operator_and_a_step_without_one_is_nothing(
    looking: Numerics, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU one cudaMemcpyAsync: no event, no query."""
    monkeypatch.setattr(recorder, "now_ns", lambda: 0)
    norm = torch.tensor(1.0)
    for _ in range(FIRST):
        looking.norm(norm)
    with Dispatched() as seen:
        for _ in range(20 * EVERY_WATCHED):
            looking.norm(norm)
    assert seen.names == ["aten.copy_.default"] * 20


@pytest.mark.parametrize(
    ("cost_us", "every"), [(3, 2), (7, 2), (11, 3), (15, 4), (45, 12), (1_000, MOST_WATCHED)]
)
def test_looks_cost_no_more_than_their_budget_by_norm(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, looking: Numerics, cost_us: int, every: int
) -> None:
    """Whatever a copy costs: a machine's is not known before."""
    spent_ns = 0

    def look(value: Any, now_ns: int) -> None:
        nonlocal spent_ns
        spent_ns += cost_us * 1_000

    monkeypatch.setattr(looking, "_look", look)
    monkeypatch.setattr(recorder, "now_ns", lambda: spent_ns)
    norm = torch.tensor(1.0)
    for _ in range(1_000):  # it settles
        looking.norm(norm)
    before_ns = spent_ns
    for _ in range(1_000):
        looking.norm(norm)
    looks = (spent_ns - before_ns) / (cost_us * 1_000)
    assert 1_000 / looks == pytest.approx(every, rel=0.05)
    if cost_us * 1_000 <= MOST_WATCHED * BUDGET_NS:
        assert (spent_ns - before_ns) / 1_000 <= 1.05 * BUDGET_NS


@pytest.mark.parametrize("made_at", range(300, 308))
def test_a_nan_is_known_within_two_norms(
    looking: Numerics, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, made_at: int
) -> None:
    monkeypatch.setattr(recorder, "now_ns", lambda: 0)
    for number in range(1, made_at):
        looking.norm(torch.tensor(float(number)))
    assert bad(recorder) == []
    for _ in range(1 + 2):
        looking.norm(torch.tensor(math.nan))
    assert bad(recorder)[0] == "nan"


@pytest.mark.parametrize("made_at", range(300, 308))
def test_a_norm_that_is_finite_again_is_known_as_soon(
    looking: Numerics, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, made_at: int
) -> None:
    """Of the others one in eight is noted: a GradScaler's skipped step was a NaN for all these."""
    number = 0
    monkeypatch.setattr(recorder, "now_ns", lambda: number)
    for number in range(1, made_at + 8):
        looking.norm(torch.tensor(math.inf if made_at <= number < made_at + 4 else 1.0))
    recorder.notes.turn()
    newest = max(recorder.notes.to_send(first=True))
    assert newest[0] >= made_at + 4
    assert newest[4] == ""


@pytest.mark.parametrize("every", [EVERY_WATCHED, MOST_WATCHED, EVERY_ALONE])
@pytest.mark.parametrize("made_at", [300, 301, 305, 307])
def test_the_step_of_a_nan_is_exact_however_seldom_looks_are(
    looking: Numerics,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    every: int,
    made_at: int,
) -> None:
    """Norms that were not looked at are asked for once a later one is NaN."""
    number = 0
    monkeypatch.setattr(recorder, "now_ns", lambda: number)
    recorder.watched = every != EVERY_ALONE
    monkeypatch.setattr("gpuwatch.probe.numerics.EVERY_WATCHED", every)
    looking._every = every
    for number in range(1, made_at + 2 * every + 1):
        looking.norm(torch.tensor(1.0 if number < made_at else math.nan))
    recorder.notes.turn()
    rows = recorder.notes.to_send(first=False)
    assert min(row[0] for row in rows if row[4]) == made_at
    assert max(row[0] for row in rows if not row[4] and row[0] < made_at) == made_at - 1
    assert recorder.notes._firsts["norm", ""][1][0] == made_at


def test_norms_that_were_not_looked_at_are_let_go(looking: Numerics, recorder: Recorder) -> None:
    """Behind the next look that has arrived nothing holds them."""
    held = []
    for _ in range(FIRST + 10 * EVERY_WATCHED):
        norm = torch.tensor(1.0)
        held.append(weakref.ref(norm))
        looking.norm(norm)
        del norm
    assert sum(one() is not None for one in held) <= EVERY_WATCHED


def test_a_norm_in_a_graphs_memory_is_not_held(
    looking: Numerics, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(FIRST):
        looking.norm(torch.tensor(1.0))
    monkeypatch.setattr(HeldDevice, "handle", lambda self, device: 7)
    monkeypatch.setattr(HeldDevice, "capturing", lambda self: True, raising=False)
    for _ in range(10):
        looking.norm(torch.tensor(1.0))
    assert looking._since == []


def test_a_norm_of_another_device_is_not_held(looking: Numerics) -> None:
    for _ in range(FIRST):
        looking.norm(torch.tensor(1.0))
    looking._device = 3
    looking.norm(torch.tensor(1.0))
    assert looking._since == []
