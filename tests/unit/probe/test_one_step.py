"""Operations of a step that was traced: how they are taken down, and what functions and loops make
of them."""

import gc
from itertools import count
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from gpuwatch.probe.one_step import functions, lasting, loops, tracer
from gpuwatch.probe.one_step.needless import Needless
from gpuwatch.probe.one_step.operation import NOWHERE, Operation, Step, Value, Work
from gpuwatch.probe.one_step.operators import operator_of
from gpuwatch.probe.one_step.summary import HostCopies, host_copies, on_host
from tests.unit.probe.traced import BEARS_SUBCLASSES, SIZE, Traced, X

pytestmark = BEARS_SUBCLASSES


def names(step: Step) -> list[str]:
    return [one.name for one in step.operations]


def test_an_operation_is_taken_down_with_the_line_that_asks_for_it() -> None:
    weight = torch.randn(SIZE, SIZE, requires_grad=True)

    def run() -> None:
        (X @ weight).sum().backward()

    step = Traced().step(run)
    assert [each for each in names(step) if each in ("mm", "sum")] == ["mm", "sum", "mm"]
    forward, backward = (one for one in step.operations if one.name == "mm")
    assert forward.place == backward.place, "a backward's is that of its forward"
    assert step.places[forward.place].file == __file__
    assert step.places[forward.place].function.endswith("run")
    assert backward.of_node == forward.node != NOWHERE
    assert (forward.in_backward, backward.in_backward) == (False, True)


def test_what_has_no_gradient_is_not_booked_the_backward_before_it() -> None:
    net = nn.Linear(SIZE, SIZE)

    def accuracy(scores: torch.Tensor) -> torch.Tensor:
        return (scores.argmax(1) == 0).float().mean()

    def run() -> None:
        scores = net(X)
        accuracy(scores)
        scores.sum().backward()

    step = Traced().step(run)
    found = {
        step.places[one.place].function.split(".")[-1]: one for one in functions.functions_of(step)
    }
    assert found["accuracy"].backward_ns == 0
    assert found["run"].backward_ns > 0


def test_operations_of_a_function_are_summed_with_what_fusing_them_leaves() -> None:
    points = nn.Parameter(torch.randn(SIZE, 1, 8))

    def distances() -> torch.Tensor:
        return (points - points.detach().view(1, SIZE, 8)).pow(2).sum(-1)

    def run() -> None:
        distances().sum().backward()

    step = Traced().step(run)
    first = functions.functions_of(step)[0]
    assert step.places[first.place].function.endswith("distances")
    assert first.operation in ("sub", "pow", "sum", "mul", "neg")
    assert 0 < first.backward_ns < first.ns
    assert first.fused_ns < 0.3 * first.fusible_ns, "all differences are made and read at once"


def test_an_operation_alone_is_as_fast_as_one_kernel() -> None:
    step = Traced().step(lambda: X.exp())
    assert functions.functions_of(step)[0].fused_ns == 1_000


@pytest.mark.parametrize(
    ("call", "work", "written"),
    [
        (torch.ops.aten.add_.Tensor, Work.FUSIBLE, (0,)),
        (torch.ops.aten.mm.default, Work.PRODUCT, ()),
        (torch.ops.aten.sum.dim_IntList, Work.FUSIBLE, ()),
        (torch.ops.aten.index_put_.default, Work.PRODUCT, (0,)),
        (torch.ops.aten.bernoulli_.float, Work.PRODUCT, (0,)),
    ],
)
def test_an_operator_is_known_by_its_tags_and_schema(
    call: Any, work: Work, written: tuple[int, ...]
) -> None:
    found = operator_of(call)
    assert (found.work, found.written) == (work, written)
    assert found.is_random == (found.name == "bernoulli_")


def test_an_argument_that_is_written_by_name() -> None:
    assert operator_of(torch.ops.aten.exp.out).written_by_name == ("out",)


def operation(
    name: str, reads: tuple[Value, ...], makes: tuple[Value, ...], **more: Any
) -> Operation:
    known: dict[str, Any] = {
        "work": Work.FUSIBLE, "place": 0, "writes": frozenset(), "arguments": (),
        "is_random": False, "node": NOWHERE, "of_node": NOWHERE, "task": NOWHERE,
        "is_kept": False, "ns": 1, "host_ns": 1,
    }  # fmt: skip
    return Operation(name=name, reads=reads, makes=makes, **{**known, **more})


def test_copies_to_a_device_and_those_that_hold_no_data() -> None:
    zeros, batch = Value(1, None, 800, True), Value(2, None, 200, True)
    on_device = [Value(number, None, 0, False) for number in (3, 4, 5)]
    step = Step(
        (
            operation("zeros", (), (zeros,)),
            operation("_to_copy", (zeros,), (on_device[0],), place=7),
            operation("_to_copy", (batch,), (on_device[1],), place=8),
            operation("_to_copy", (on_device[0],), (on_device[2],)),
        ),
        (),
        frozenset(),
        {},
    )
    assert host_copies(step) == HostCopies(2, 1_000, 800, 7)


def test_what_a_step_on_a_device_computes_on_the_host() -> None:
    """A copy to the device, and what reads it back, wait for that; a step without one is all on
    the host."""
    rays, picked, batch = (Value(number, None, 800, True) for number in (1, 2, 3))
    on_device = Value(4, None, 0, False)
    own = (
        operation("stack", (rays,), (picked,), place=7, host_ns=3_000),
        operation("index", (picked,), (batch,), place=8, host_ns=1_000),
        operation("select", (picked,), (batch,), work=Work.VIEW, host_ns=500),
    )
    moved = (
        operation("_to_copy", (batch,), (on_device,), host_ns=9_000),
        operation("sum", (on_device,), (on_device,), host_ns=9_000),
        operation("_local_scalar_dense", (on_device,), (), host_ns=9_000),
    )
    step = Step((*own, *moved), (), frozenset(), {})
    assert on_host(step) == Needless(4_000, 4_000, operations=2, place=7)
    assert on_host(step._replace(operations=own)) is None
    assert on_host(step._replace(operations=moved)) is None


def test_what_is_on_the_host_takes_nothing_of_the_device() -> None:
    """A diffusion's noise, drawn on the CPU for 16 ms while the GPU idles: events around it are as
    far apart, and "56 % of the operations' time" were its."""

    def run() -> None:
        noise = torch.randn(SIZE, SIZE)
        torch.zeros(SIZE, SIZE, device="meta").copy_(noise).mul_(2.0)

    step = Traced().step(run)
    took = {one.name: one.ns for one in step.operations}
    assert took["randn"] == 0
    assert took["mul_"] == 1_000
    (copied,) = (one.brings for one in step.operations if one.name == "copy_")
    assert copied is not None
    assert copied.bytes == 4 * SIZE * SIZE
    (function,) = functions.functions_of(step)
    assert function.unlearned_ns == took["zeros"] + took["mul_"], "a copy is none of it"


def test_sparse_tensors_and_those_without_a_gradient_are_taken_down_too() -> None:
    graph = torch.eye(SIZE).to_sparse_coo()
    weight = nn.Parameter(torch.randn(SIZE, SIZE))

    def run() -> None:
        torch.sparse.mm(graph, weight).sum().backward()

    assert "_sparse_addmm" in names(Traced().step(run))


def test_nothing_of_the_numbers_changes() -> None:
    def trained(is_traced: bool) -> list[float]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.BatchNorm1d(8), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(net.parameters())
        traced, losses = Traced(), []

        def run() -> None:
            optimizer.zero_grad()
            loss = net(torch.randn(16, 8)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

        for _ in range(5):
            traced.step(run) if is_traced else run()
        return losses

    assert trained(True) == trained(False)


def test_what_the_program_raises_in_an_operation_is_its_own() -> None:
    mode = tracer.tracer(lasting.Known(), count().__next__)
    with pytest.raises(RuntimeError, match="shape"), mode:
        torch.ones(2, 3) @ torch.ones(2, 3)


def test_a_loop_whose_turns_do_not_need_each_other_is_found() -> None:
    rows = torch.randn(40, 8, requires_grad=True)

    def losses() -> torch.Tensor:
        loss = torch.zeros(())
        for row in rows:
            near = row.pow(2).sum()
            loss = loss + near.exp()
        return loss

    step = Traced().step(lambda: losses().backward())
    found = loops.largest_loop(step)
    assert found is not None
    assert step.places[found.place].function.endswith("losses")
    assert found.turns == 40
    assert found.operations >= 4 * 40


def test_several_layers_of_a_line_are_the_same_in_each_turn() -> None:
    """A variational RNN's decoder is called for each time, and no time needs what it returns."""
    cell = nn.GRUCell(8, 8)
    decoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))

    def decoded() -> torch.Tensor:
        hidden, loss = torch.zeros(4, 8), torch.zeros(())
        for row in torch.randn(40, 8):
            hidden = cell(row.expand(4, 8), hidden)
            out = decoder(hidden)
            loss = loss + out.square().sum()
        return loss

    step = Traced().step(lambda: decoded().backward())
    found = loops.largest_loop(step)
    assert found is not None
    assert step.places[found.place].function.endswith("decoded")
    assert found.operations >= 8 * 40, "two products, forward and backward, and what is between"


def test_turns_that_need_the_one_before_are_no_such_loop() -> None:
    cell = nn.GRUCell(8, 8)

    def run() -> None:
        hidden = torch.zeros(4, 8)
        for _ in range(40):
            hidden = cell(hidden, hidden)
        hidden.sum().backward()

    assert loops.largest_loop(Traced().step(run)) is None


@pytest.mark.parametrize("loop", ["layers", "micro-batches", "penalty", "fields"])
def test_what_comes_often_and_is_no_such_loop(loop: str) -> None:
    nets = nn.ModuleList(nn.Linear(8, 8) for _ in range(20))
    rows = torch.randn(4, 8)

    def run() -> None:
        if loop == "layers":
            hidden = rows
            for net in nets:
                hidden = net(hidden)
            hidden.sum().backward()
        elif loop == "micro-batches":
            for _ in range(20):
                nets[0](torch.randn(4, 8)).sum().backward()
        elif loop == "penalty":
            terms = [next(net.parameters()).pow(2).sum() for net in nets]
            torch.stack(terms).sum().backward()
        else:
            torch.cat([net(rows) for net in nets]).sum().backward()

    assert loops.largest_loop(Traced().step(run)) is None


def test_a_few_turns_are_heads_or_scales() -> None:
    def run() -> None:
        for row in X[: loops.LEAST_TURNS - 1]:
            row.exp()

    assert loops.largest_loop(Traced().step(run)) is None


class Loud(torch.Tensor):
    """A tensor that says what is asked of it."""

    asked: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.asked.append(getattr(func, "__name__", str(func)))
        answer: Any = super()
        return answer.__torch_function__(func, types, args, kwargs or {})


def test_a_tensor_of_the_programs_own_type_is_asked_nothing_more() -> None:
    loud = torch.ones(SIZE).as_subclass(Loud)
    loud + 1
    bare = [*Loud.asked]
    Loud.asked.clear()
    Traced().step(lambda: loud + 1)
    assert Loud.asked == bare[-len(Loud.asked) :]
    assert "requires_grad" not in str(Loud.asked)


def test_a_storage_among_the_arguments_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cuDNN LSTM below autocast, element by element from the GPU: the run stood still."""
    printed: list[int] = []

    def text(one: torch.UntypedStorage) -> str:
        printed.append(id(one))
        return ""

    monkeypatch.setattr(torch.UntypedStorage, "__repr__", text)
    storage, into = X.clone().untyped_storage(), torch.empty(0)
    Traced().step(lambda: into.set_(storage))
    assert not printed


def test_arguments_tell_types_apart() -> None:
    step = Traced().step(lambda: (X.to(torch.float64), X.to(torch.bfloat16)))
    first, second = (one.arguments for one in step.operations if one.name == "_to_copy")
    assert first != second
    assert "torch.float64" in str(first)


def test_complex_numbers_tell_arguments_apart() -> None:
    step = Traced().step(lambda: [X * (1 + each * 1j) for each in range(3)])
    asked = {one.arguments for one in step.operations if one.name == "mul"}
    assert len(asked) == 3


def test_too_many_operations_are_not_taken_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "MOST_OPERATIONS", 3)
    mode = tracer.tracer(lasting.Known(), count().__next__)
    with mode:
        for _ in range(5):
            X.exp()
    assert (mode.why_not, len(mode.taken)) == (tracer.TOO_MUCH, 3)


def test_the_collector_soon_leaves_alone_what_is_taken_down_of_tensors() -> None:
    """A step of thousands of operations would bring on whole collections, 150 ms each."""
    mode = tracer.tracer(lasting.Known(), count().__next__)
    with mode:
        (X + X).exp()
    for _ in ("sizes", "views", "fields", "operands"):  # from the inside to the outside
        gc.collect()
    assert [gc.is_tracked(each) for one in mode.taken for each in (one.reads, one.makes)] == [
        False
    ] * (2 * len(mode.taken))
