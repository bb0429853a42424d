"""Which operations of a step need not be."""

from collections.abc import Callable
from itertools import count

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gpuwatch.probe.one_step import lasting, needless, tracer
from tests.unit.probe.traced import BEARS_SUBCLASSES, SIZE, Traced, X

pytestmark = BEARS_SUBCLASSES

NORM = nn.BatchNorm1d(SIZE)


def repeated(run: Callable[[], object]) -> list[str]:
    """Names of the operations that are."""
    step = Traced().step(run)
    found = needless.repeated(step, needless.steady_of(step, {}))
    return [] if found is None else [str(found.operations)]


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


@pytest.mark.parametrize("net", [nn.LSTMCell(SIZE, SIZE), nn.Linear(SIZE, SIZE)])
def test_micro_batches_and_the_turns_of_a_cell_are_not_computed_again(net: nn.Module) -> None:
    """Each turns the same weight round, which computes nothing."""

    def run() -> None:
        for _ in range(3):
            state = None
            for _ in range(4):
                given = torch.randn(SIZE, SIZE)
                state = net(given, state) if isinstance(net, nn.LSTMCell) else net(given)
            last = state[0] if isinstance(state, tuple) else state
            assert last is not None
            last.sum().backward()

    assert repeated(run) == []


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
