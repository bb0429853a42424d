"""Operations of a step that was traced, and which of them need not be."""

from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gpuwatch.probe.one_step import functions, lasting, loops, needless, tracer
from gpuwatch.probe.one_step.host_copies import HostCopies, host_copies
from gpuwatch.probe.one_step.operation import NOWHERE, Operation, Step, Value, Work
from gpuwatch.probe.one_step.operators import operator_of

pytestmark = pytest.mark.skipif(
    not tracer.bears_subclasses(), reason="this torch breaks tensors of own types below a mode"
)

SIZE = 64
X = torch.randn(SIZE, SIZE)
NORM = nn.BatchNorm1d(SIZE)


class Traced:
    """Steps one after the other; each operation takes 1 us."""

    def __init__(self) -> None:
        self.known = lasting.Known()
        self.before = frozenset[int]()

    def step(self, run: Callable[[], object]) -> Step:
        mode = tracer.tracer(self.known, count().__next__)
        with mode:
            run()
        assert not mode.why_not
        return tracer.step_of(mode, lambda _: 1_000)

    def constant(self, run: Callable[[], object]) -> needless.Needless | None:
        step = self.step(run)
        steady = needless.steady_of(step, self.known.ids)
        found = needless.constant(step, steady, self.before)
        self.before = frozenset(steady.keys)
        return found


def repeated(run: Callable[[], object]) -> list[str]:
    """Names of the operations that are."""
    step = Traced().step(run)
    found = needless.repeated(step, needless.steady_of(step, {}))
    return [] if found is None else [str(found.operations)]


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


def test_what_lasts_and_is_computed_in_each_step_is_constant() -> None:
    traced, matrix = Traced(), torch.rand(SIZE, SIZE)
    weight = nn.Parameter(torch.randn(SIZE, SIZE))

    def run() -> None:
        normal = matrix / matrix.sum(1, keepdim=True)
        (normal @ weight).sum().backward()

    assert traced.constant(run) is None, "nothing lasts yet"
    found = traced.constant(run)
    assert found is not None
    assert (found.operations, found.ns) == (2, 2_000)


CHANGES = ["in place", "by NumPy", "in a few numbers", "in order", "by data", "anew", "at random"]


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_from_step_to_step_is_not_constant(change: str) -> None:
    traced = Traced()
    held = [torch.rand(SIZE, SIZE)]

    def run() -> None:
        torch.exp(functional.dropout(held[0]) if change == "at random" else held[0])

    for _ in range(3):
        assert traced.constant(run) is None
        if change == "in place":
            held[0].add_(1)
        elif change == "by NumPy":
            held[0].numpy()[:] += 1
        elif change == "in a few numbers":
            held[0].numpy()[7, 7] += 1
        elif change == "in order":
            held[0].numpy()[:] = held[0].numpy()[::-1].copy()
        elif change == "by data":
            held[0].data[3] += 1
        elif change == "anew":
            held[0] = held[0] + 1


def test_parameters_do_not_last() -> None:
    """`p.data -= ...` leaves no trace on them."""
    traced, weight = Traced(), nn.Parameter(torch.randn(SIZE, SIZE))
    for _ in range(3):
        assert traced.constant(lambda: torch.exp(weight)) is None


def test_a_buffer_that_each_step_fills_is_not_constant() -> None:
    traced = Traced()

    def run() -> None:
        sums = torch.zeros(SIZE, SIZE)
        sums += torch.rand(SIZE, SIZE)

    assert [traced.constant(run) for _ in range(3)] == [None] * 3


def test_the_same_net_on_the_same_input_is_computed_again_with_its_backward() -> None:
    net = nn.Linear(SIZE, SIZE)

    def run() -> None:
        (net(X).sum() + net(X).mean()).backward()

    step = Traced().step(run)
    found = needless.repeated(step, needless.steady_of(step, {}))
    assert found is not None
    assert found.operations == 3, "the product, and the gradients of weight and bias"


def test_two_backwards_through_the_same_net_go_on_being_two() -> None:
    """The second derivative goes through the first net alone: it must, whichever it is."""
    net, x = nn.Sequential(nn.Linear(1, SIZE), nn.Tanh()), torch.rand(2_000, 1, requires_grad=True)

    def once() -> None:
        u = net(x)
        torch.autograd.grad(u.sum(), x)

    def twice() -> None:
        u, again = net(x), net(x)
        torch.autograd.grad(u.sum(), x)
        torch.autograd.grad(again.pow(2).sum(), x)

    traced = Traced()
    step = traced.step(twice)
    found = needless.repeated(step, needless.steady_of(step, {}))
    forward = [one for one in traced.step(once).operations if not one.in_backward]
    assert found is not None
    of_net = [one for one in forward if one.name in ("addmm", "tanh")]
    assert found.operations == len(of_net), "no operation of the second backward"


@pytest.mark.parametrize(
    "run",
    [
        lambda: (functional.dropout(X), functional.dropout(X)),
        lambda: (X.clone().add_(1), X.clone().add_(2)),
        lambda: (torch.zeros(SIZE, SIZE), torch.zeros(SIZE, SIZE)),
        lambda: (X.exp(), X.t().exp()),
        lambda: (X.sum(0), X.sum(1)),
    ],
    ids=["random", "changed later", "made of nothing", "another view", "other arguments"],
)
def test_what_is_not_the_same_is_not_computed_again(run: Callable[[], object]) -> None:
    assert repeated(run) == []


@pytest.mark.parametrize(
    "run",
    [
        lambda: X.softmax(-1) * X.softmax(-2),
        lambda: X**2.0 + 2.0**X,
        lambda: [torch.from_numpy(X.numpy() + at).exp() for at in range(9)],
        lambda: [NORM(X) for _ in range(2)],
    ],
    ids=["hash(-1) is hash(-2)", "operands' places", "other batches at one address", "a state"],
)
def test_what_looks_the_same_is_not_computed_again(run: Callable[[], object]) -> None:
    assert repeated(run) == []


def test_a_buffer_that_numpy_fills_within_a_step_is_not_the_same() -> None:
    staged, net = torch.zeros(SIZE, SIZE), nn.Linear(SIZE, SIZE)

    def run() -> None:
        for at in range(4):
            staged.numpy()[:] = at
            net(staged).sum().backward()

    assert repeated(run) == []


def test_weights_that_a_foreach_changes_are_others() -> None:
    weight = torch.randn(SIZE, SIZE)

    def run() -> None:
        _ = X @ weight
        torch._foreach_add_([weight], 1.0)
        _ = X @ weight

    assert repeated(run) == []


def test_what_an_optimizer_changes_meanwhile_is_another() -> None:
    """A discriminator on the same pictures before and behind its update."""
    net = nn.Linear(SIZE, SIZE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    mode = tracer.tracer(lasting.Known(), count().__next__)
    with mode:
        net(X).sum().backward()
        mode.is_off = True
        optimizer.step()
        mode.is_off = False
        mode.leaves.forget_leaves()
        net(X).sum().backward()
    step = tracer.step_of(mode, lambda _: 1_000)
    assert needless.repeated(step, needless.steady_of(step, {})) is None


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


def test_a_tensor_of_an_inference_and_a_sparse_one_do_not_end_it() -> None:
    with torch.inference_mode():
        kept = torch.randn(SIZE, SIZE)

    def run() -> None:
        _ = X @ kept

    traced = Traced()
    assert [traced.constant(run) for _ in range(3)] == [None] * 3


def test_the_backward_of_an_index_that_asks_for_rows_often() -> None:
    table = nn.Parameter(torch.randn(5, SIZE))

    def run(index: torch.Tensor) -> needless.Needless | None:
        return needless.by_scatter(Traced().step(lambda: table[index].sum().backward()))

    found = run(torch.randint(0, 5, (400,)))
    assert found is not None
    assert found.operations == 1
    assert run(torch.randperm(5)) is None
    assert run(torch.tensor([True, False, True, False, True])) is None


def test_what_a_checkpoint_computes_again_is_its_own_matter() -> None:
    net = nn.Sequential(nn.Linear(SIZE, SIZE), nn.Tanh())

    def run() -> None:
        checkpoint(net, X.clone().requires_grad_(), use_reentrant=False).sum().backward()

    assert repeated(run) == []


def unread(run: Callable[[], object]) -> int:
    found = needless.unread(Traced().step(run))
    return 0 if found is None else found.operations


def test_what_no_loss_uses_is_read_by_nothing() -> None:
    net, side = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)

    def run() -> None:
        hidden = net(X)
        torch.softmax(side(hidden), -1)
        hidden.sum().backward()

    assert unread(run) == 2


@pytest.mark.parametrize("use", ["number", "printed", "kept", "detached", "asked", "indices"])
def test_what_is_looked_at_is_read(use: str) -> None:
    """What is printed no mode sees: without a product among it nothing is said."""
    net, side = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
    kept: list[object] = []

    def run() -> None:
        hidden = net(X)
        looked = hidden.exp().sum() if use == "printed" else side(hidden).exp().sum()
        if use == "indices":
            kept.append(side(hidden).topk(3).indices)
            looked.item()
        if use == "number":
            looked.item()
        elif use == "printed":
            str(looked)
        elif use == "kept":
            kept.append(looked)
        elif use == "detached":
            looked.detach().numpy()
        elif use == "asked":
            bool(looked > 0)
        hidden.sum().backward()

    assert unread(run) == 0


def test_products_with_zeros_are_found_once_the_matrix_has_lasted() -> None:
    traced, graph = Traced(), torch.zeros(1_100, 1_100)
    graph[::500, ::500] = 1.0
    run: Callable[[], object] = lambda: graph @ torch.ones(1_100, 8)  # noqa: E731
    assert needless.by_zeros(traced.step(run)) is None
    found = needless.by_zeros(traced.step(run))
    assert found is not None
    assert found[0].operations == 1
    assert 0 < found[1] <= needless.NEARLY_EMPTY
    graph += 1.0
    traced.step(run)
    assert needless.by_zeros(traced.step(run)) is None


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


def test_too_many_operations_are_not_taken_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "MOST_OPERATIONS", 3)
    mode = tracer.tracer(lasting.Known(), count().__next__)
    with mode:
        for _ in range(5):
            X.exp()
    assert (mode.why_not, len(mode.taken)) == (tracer.TOO_MUCH, 3)
