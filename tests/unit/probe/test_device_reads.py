"""What is read of tensors on a device: the answers of a look that has arrived, by tensors of the
host, behind a device on a held clock."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from gpuwatch.probe.settings.device_reads import (
    BUFFER_BYTES,
    MOST_COPIES,
    PIECE,
    PIECES,
    ROWS,
    ROWS_BYTES,
    WHOLE_BYTES,
    Answers,
    DeviceReads,
)
from gpuwatch.probe.settings.later import Part, combined, value_of
from gpuwatch.probe.settings.operations import Operations
from gpuwatch.probe.settings.products import products_among
from gpuwatch.probe.settings.users import users_below
from tests.unit.probe.fake_device import FakeDevice, FakeStream
from tests.unit.probe.held_clock import MS, HeldClock

ROWS_IN, WIDE, WORDS = 40, 32, 300
pytestmark = pytest.mark.skipif(
    not hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata"),
    reason="the graph of this torch (2.4) tells no shapes",
)


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice(HeldClock())


@pytest.fixture
def reads(device: FakeDevice) -> DeviceReads:
    return DeviceReads(torch, device, place="cpu")


def arrived(reads: DeviceReads, device: FakeDevice) -> Any:
    assert reads.end()
    assert reads.arrived() is None, "before the device has passed it"
    device.clock.now_ns += MS
    answers = reads.arrived()
    assert answers is not None
    return answers


def twice_for_one_input() -> Any:
    net, rows = nn.Sequential(nn.Linear(WIDE, WIDE), nn.Tanh()), torch.randn(ROWS_IN, WIDE)
    return (net(rows + 1) * net(rows + 1)).sum()


def twice_a_convolution() -> Any:
    layer, rows = nn.Conv1d(WIDE, 8, 3), torch.randn(4, WIDE, ROWS_IN)
    return (layer(rows) * layer(rows)).sum()


def once_each() -> Any:
    net = nn.Sequential(nn.Linear(WIDE, WIDE), nn.Tanh())
    return (net(torch.randn(ROWS_IN, WIDE)) * net(torch.randn(ROWS_IN, WIDE))).sum()


def states_of_zeros() -> Any:
    cell = nn.RNNCell(WIDE, WIDE)
    first, second = (cell(torch.randn(ROWS_IN, WIDE)) for _ in range(2))
    return (first * second).sum()


def ignored_words() -> Any:
    targets = torch.full((ROWS_IN,), -100)
    targets[::5] = 1
    return F.cross_entropy(nn.Linear(WIDE, WORDS)(torch.randn(ROWS_IN, WIDE)), targets)


def experts_with_a_gate() -> Any:
    gates = torch.softmax(torch.randn(ROWS_IN, 4, requires_grad=True), -1)
    best = torch.zeros_like(gates).scatter(1, gates.topk(2).indices, gates.topk(2).values)
    rows = torch.randn(ROWS_IN, WIDE, requires_grad=True)
    return torch.stack(
        [best[:, at : at + 1] * nn.Linear(WIDE, WIDE)(rows) for at in range(4)]
    ).sum()


def a_grid_for_each_sample() -> Any:
    grid = torch.rand(256, 2)[None].expand(16, -1, -1)
    return nn.Sequential(nn.Linear(2, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE))(grid).sum()


@pytest.mark.parametrize(
    "graph",
    [
        a_grid_for_each_sample,
        twice_for_one_input,
        twice_a_convolution,
        once_each,
        states_of_zeros,
        ignored_words,
        experts_with_a_gate,
    ],
)
def test_a_device_tells_what_the_host_does(
    graph: Callable[[], Any], reads: DeviceReads, device: FakeDevice
) -> None:
    users = users_below(graph().grad_fn)[1]
    assert reads.begin()
    found = products_among(users, reads=reads)
    if reads.end():
        device.clock.now_ns += MS
        answers: Any = reads.arrived()
        found = {name: one(answers) if callable(one) else one for name, one in found.items()}
    assert found == products_among(users)


def test_what_arrives_is_what_was_there_as_it_was_asked_for(
    reads: DeviceReads, device: FakeDevice
) -> None:
    table = torch.randn(6, 8)
    every_other, turned = table[:, ::2], table.t()
    assert reads.begin()
    numbers = [reads.rows_of(one) for one in (table, every_other, turned, table)]
    assert numbers[0] == numbers[-1], "one copy"
    kept = table.clone()
    table.zero_()
    answers = arrived(reads, device)
    expected = kept, kept[:, ::2], kept.t()
    for number, one in zip(numbers, expected, strict=False):
        (part,) = answers.parts_of(number)
        assert torch.equal(part, one)


def test_of_a_large_tensor_parts_of_rows_are_read(reads: DeviceReads, device: FakeDevice) -> None:
    gate = torch.arange(4 * ROWS_BYTES // 4, dtype=torch.float32).reshape(-1, 2)
    assert reads.begin()
    number = reads.rows_of(gate)
    parts = arrived(reads, device).parts_of(number)
    assert len(parts) == ROWS
    for at, part in enumerate(parts):
        begin = at * (len(gate) // ROWS)
        assert torch.equal(part, gate[begin : begin + len(part)])


def test_some_elements_lie_at_other_columns_of_each_row(
    reads: DeviceReads, device: FakeDevice
) -> None:
    tensor = torch.arange(100_000, dtype=torch.float32).reshape(100, 1000)
    assert reads.begin()
    number = reads.some_of(tensor)
    values = arrived(reads, device).values_of(number)
    begins = values[::PIECE]
    assert len(values) == PIECES * PIECE
    assert len({begin % 1000 // 100 for begin in begins}) > PIECES // 2
    assert all(tensor.flatten()[int(one)] == one for one in values)


def test_what_is_no_plain_memory_is_not_asked_for(reads: DeviceReads) -> None:
    assert reads.begin()
    assert reads.some_of(torch.randn(1000, 4)[:, 0]) is None
    assert reads.some_of(torch.randn(1, 4).expand(8, 4)) is None
    assert reads.some_of(torch.empty(0)) is None
    assert reads.rows_of(torch.tensor(1.0)) is None
    assert reads.rows_of(torch.randn(4, dtype=torch.complex64)) is None
    assert not reads.end()


def test_a_look_has_a_most(reads: DeviceReads) -> None:
    assert reads.begin()
    kept = [torch.randn(ROWS_BYTES // 4) for _ in range(9)]
    rows = [reads.rows_of(one) for one in kept]
    assert sum(one is not None for one in rows) == BUFFER_BYTES // ROWS_BYTES
    assert reads.begin()
    held = torch.randn(WHOLE_BYTES)
    some = [reads.some_of(held[at:]) for at in range(MOST_COPIES)]
    assert sum(one is not None for one in some) == MOST_COPIES // PIECES


def test_nothing_is_asked_while_a_graph_is_captured(reads: DeviceReads, device: FakeDevice) -> None:
    assert reads.begin()
    assert reads.rows_of(torch.randn(4)) == 0
    assert reads.end()
    device.clock.now_ns += MS
    device.current = FakeStream(7, capturing=True)
    assert not reads.begin()
    assert reads.arrived() is None


def test_what_a_look_at_a_device_asks_for_comes_with_a_later_one(
    reads: DeviceReads, device: FakeDevice
) -> None:
    operations = Operations(lambda: device.clock.now_ns, lambda: reads)
    assert operations.look(ignored_words().grad_fn, on_host=False) == {}
    assert operations.look(ignored_words().grad_fn, on_host=False) == {}, "not there yet"
    device.clock.now_ns += MS
    found = operations.look(ignored_words().grad_fn, on_host=False)
    assert found["unused_products"] == pytest.approx((0.8, ROWS_IN, 8, WIDE, WORDS))


def test_of_another_kind_of_device_shapes_alone_are_known() -> None:
    clock = HeldClock()
    rows = torch.randn(ROWS_IN, WIDE, requires_grad=True)[torch.arange(ROWS_IN).repeat(10)]
    root = nn.Linear(WIDE, WIDE)(rows).sum().grad_fn
    found = Operations(lambda: clock.now_ns, lambda: None).look(root, on_host=False)
    assert found["gathered_products"] == (0.9, 10 * ROWS_IN, ROWS_IN, WIDE, WIDE)


def test_what_another_backward_uses_is_forgotten_before_it_arrives(
    reads: DeviceReads, device: FakeDevice
) -> None:
    operations = Operations(lambda: device.clock.now_ns, lambda: reads)
    operations.look(ignored_words().grad_fn, on_host=False)
    operations.forget_rows()
    device.clock.now_ns += MS
    assert operations.look(ignored_words().grad_fn, on_host=False)["unused_products"] is None


def test_layers_of_one_net_for_which_there_was_no_room_count_as_the_others(
    reads: DeviceReads, device: FakeDevice
) -> None:
    depth, calls = 6, 2 * MOST_COPIES // PIECES // 6
    wide = WHOLE_BYTES // 4 // ROWS_IN + 1
    net = nn.Sequential(*(nn.Sequential(nn.Linear(wide, wide), nn.Tanh()) for _ in range(depth)))
    rows = torch.randn(ROWS_IN, wide)
    loss: Any = sum(net(rows).sum() for _ in range(calls))
    assert reads.begin()
    found = products_among(users_below(loss.grad_fn)[1], reads=reads)["same_products"]
    part, products, different = found(arrived(reads, device))
    assert products == depth * calls > MOST_COPIES // PIECES
    assert different == depth
    assert part == pytest.approx((calls - 1) / calls)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(WIDE), nn.Linear(WIDE, WIDE), nn.GELU())

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = rows + self.layers(rows)
        return found


def test_each_part_of_a_net_with_residual_blocks_is_computed_once() -> None:
    """Of sixteen blocks it took 15 s, twice as long for each: every block asks its rest twice."""
    asked: list[float] = []

    def counted(first: float, second: float) -> float:
        asked.append(first)
        return first + second

    part: Part = lambda answers: 0.5  # noqa: E731
    for _ in range(16):
        part = combined(counted, part, part)
    assert value_of(part, Answers(None, ())) == 2**15
    assert len(asked) == 16


def test_parts_of_parts_may_be_as_deep_as_a_loop_over_time_is_long() -> None:
    part: Part = lambda answers: 0.5  # noqa: E731
    for _ in range(3_000):
        part = combined(min, part, 1.0)
    assert value_of(part, Answers(None, ())) == 0.5


def test_a_net_with_residual_blocks_is_read_to_its_end(
    reads: DeviceReads, device: FakeDevice
) -> None:
    net = nn.Sequential(*(Block() for _ in range(8)), nn.Linear(WIDE, WORDS))
    targets = torch.full((ROWS_IN,), -100)
    targets[::5] = 1
    loss = F.cross_entropy(net(torch.randn(ROWS_IN, WIDE)), targets)
    assert reads.begin()
    found = products_among(users_below(loss.grad_fn)[1], reads=reads)["unused_products"]
    part, rows, needed, *_ = found(arrived(reads, device))
    assert (rows, needed) == (ROWS_IN, 8)
    assert 0.4 < part < 0.8, "rows of two users count twice"


def twice(net: nn.Module, first: torch.Tensor, second: torch.Tensor) -> Any:
    return (net(first) * net(second)).sum()


def same_of(loss: Any, reads: DeviceReads, device: FakeDevice) -> Any:
    assert reads.begin()
    found = products_among(users_below(loss.grad_fn)[1], reads=reads)["same_products"]
    return found(arrived(reads, device)) if found is not None else None


def test_pictures_that_differ_in_a_corner_are_not_the_same(
    reads: DeviceReads, device: FakeDevice
) -> None:
    """A patch, a trigger: what the first layer reads may look the same, the last one's does not."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 15 * 15, 64), nn.Tanh(), nn.Linear(64, 8)),
    )
    pictures = torch.randn(8, 3, 64, 64)
    patched = pictures.clone()
    patched[:, :, 20:25, 20:25] = 1
    for _ in range(4):
        assert same_of(twice(net, pictures, patched), reads, device) is None
        part, *_ = same_of(twice(net, pictures, pictures.clone()), reads, device)
        assert part == pytest.approx(0.5)


def test_what_each_step_of_a_decoder_projects_anew_is_of_one_memory(
    reads: DeviceReads, device: FakeDevice
) -> None:
    """Its other layers, called as often, have inputs of their own."""
    keys, states = nn.Linear(WIDE, WIDE), nn.Linear(WIDE, WIDE)
    encoded, state, scores = torch.randn(400, WIDE), torch.randn(ROWS_IN, WIDE), 0.0
    for _ in range(5):
        state = states(state).tanh()
        scores = scores + keys(encoded).sum() + state.sum()
    _, products, different = same_of(scores, reads, device)
    assert (products, different) == (10, 6)


class Sees(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_programs_sees_nothing_of_a_look(
    reads: DeviceReads, device: FakeDevice
) -> None:
    operations = Operations(lambda: device.clock.now_ns, lambda: reads)
    roots = [ignored_words().grad_fn for _ in range(2)]
    for root in roots:
        with Sees() as mode:
            assert operations.look(root, on_host=False) == {}
        assert mode.seen == []
        device.clock.now_ns += MS
        operations.look(root, on_host=False)
        device.clock.now_ns += MS
