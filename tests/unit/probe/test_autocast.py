"""Which type autocast uses, as the graph of a backward shows it."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from gpuwatch.probe.settings.autocast import autocast_of
from gpuwatch.probe.settings.optimizers import Optimizers
from tests.unit.probe.test_settings import HALF, loss_of, net_of, typed


@typed
@pytest.mark.parametrize("middle", [torch.nn.ReLU, torch.nn.Tanh, lambda: torch.nn.LayerNorm(8)])
def test_autocast_is_seen_in_the_graph(middle: Callable[[], torch.nn.Module]) -> None:
    net = net_of(middle())
    assert autocast_of((loss_of(net, HALF),)) == "bfloat16"
    assert autocast_of((loss_of(net, torch.float16),)) == "float16"
    assert autocast_of((loss_of(net),)) == ""


@typed
def test_autocast_is_seen_behind_a_scaled_and_summed_loss() -> None:
    net = net_of()
    losses = sum((loss_of(net, HALF) for _ in range(4)), torch.zeros(()))
    assert autocast_of((losses * 65536.0 / 3,)) == "bfloat16"


@typed
@pytest.mark.parametrize(("half", "seen"), [(None, ""), (HALF, "bfloat16")])
def test_autocast_is_seen_below_a_loss_of_many_terms(half: torch.dtype | None, seen: str) -> None:
    """Of each sample against each, as speakers are told apart."""
    net = net_of()
    with torch.autocast("cpu", half or HALF, enabled=half is not None):
        made = net(torch.randn(2, 8)).float()
    terms = [(made[at % 2] * made[0]).sum() for at in range(100)]
    assert autocast_of((torch.stack(terms).exp().mean(),)) == seen


def test_autocast_around_the_backward_is_read_directly() -> None:
    with torch.autocast("cpu", HALF):
        assert autocast_of((torch.ones((), requires_grad=True) * 2,)) == "bfloat16"


@typed
def test_a_net_of_bfloat16_is_no_autocast() -> None:
    net = net_of().to(HALF)
    x, y = torch.randn(2, 8, dtype=HALF), torch.tensor([0, 1])
    assert autocast_of((torch.nn.functional.cross_entropy(net(x), y),)) == ""


def test_a_device_without_autocast_shows_nothing() -> None:
    net = torch.nn.Linear(2, 1, device="meta")
    assert autocast_of((net(torch.ones(1, 2, device="meta")).sum(),)) is None


def test_a_parameter_that_is_no_leaf_is_not_asked_for_its_gradient() -> None:
    """PyTorch warns of that, at the line that asks."""
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight * 2], lr=0.1, differentiable=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Optimizers().stepping(optimizer)


class Named(torch.autograd.Function):
    """A custom function's node is the `ctx` that its forward writes into: `name` hides the
    node's."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.name = "the program's own"
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0] * 2


def named(x: torch.Tensor) -> torch.Tensor:
    apply: Callable[[torch.Tensor], torch.Tensor] = Named.apply
    return apply(x)


def test_a_node_that_has_a_name_of_the_programs_own() -> None:
    loss = named(torch.nn.Linear(2, 1)(torch.ones(1, 2))).sum()
    assert autocast_of((loss,)) in ("", None), "an older torch shows no types"


def test_what_the_graph_does_not_show_is_not_guessed() -> None:
    weight = torch.ones(3, requires_grad=True)
    assert autocast_of(((weight * 2).sum(),)) is None, "no product, no cast"
    assert autocast_of(((torch.zeros(3)).sum(),)) is None, "no graph"
    assert autocast_of(()) is None
    deep = weight.sum()
    for _ in range(200):
        deep = deep * 1.01
    assert autocast_of((deep,)) is None, "the walk ends before"


SHOWN = hasattr(torch._C._autograd.SavedTensor, "unpack_hook")
shows_saved = pytest.mark.skipif(not SHOWN, reason="this torch does not show what a node saved")


class EndsInSingle(torch.nn.Module):
    """As a net that computes its loss, or has a norm at its end, does under autocast too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.float()


def compiled(net: torch.nn.Module) -> Callable[..., torch.Tensor]:
    """Traced as for a compiler, without one."""
    torch.compiler.reset()
    found: Callable[..., torch.Tensor] = torch.compile(
        torch.nn.Sequential(net, EndsInSingle()), backend="aot_eager"
    )
    return found


@shows_saved
@pytest.mark.parametrize("half", [HALF, torch.float16, None])
def test_autocast_is_seen_in_what_a_compiled_forward_saved(half: torch.dtype | None) -> None:
    net = compiled(net_of(torch.nn.ReLU()))
    with torch.autocast("cpu", half or HALF, enabled=half is not None):
        out = net(torch.randn(4, 8))
    assert out.dtype is torch.float32
    loss = out.square().sum()
    assert autocast_of((loss,)) == ("" if half is None else str(half).removeprefix("torch."))
    loss.backward()


@shows_saved
def test_a_compiled_net_of_bfloat16_is_no_autocast() -> None:
    out = compiled(net_of(torch.nn.ReLU()).to(HALF))(torch.randn(4, 8, dtype=HALF))
    assert autocast_of((out.sum(),)) == ""


@shows_saved
def test_a_compiled_loss_in_fp32_does_not_hide_the_nets_autocast() -> None:
    torch.compiler.reset()
    loss_in_single = torch.compile(lambda x: x.float().square().mean(), backend="aot_eager")
    with torch.autocast("cpu", HALF):
        out = net_of(torch.nn.ReLU())(torch.randn(4, 8))
    assert autocast_of((loss_in_single(out),)) == "bfloat16"


class Recomputed(torch.nn.Module):
    """Its net is computed anew in the backward: the forward keeps its inputs alone."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net_of(torch.nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = checkpoint(self.net, x, use_reentrant=False)
        return found


@shows_saved
@pytest.mark.parametrize("on", [True, False])
def test_a_compiled_forward_that_is_computed_anew_does_not_show_its_type(on: bool) -> None:
    """A GPT with checkpoints, compiled, under autocast: bf16 was advised to it."""
    net = compiled(Recomputed())
    with torch.autocast("cpu", HALF, enabled=on):
        out = net(torch.randn(4, 8))
    assert autocast_of((out.square().sum(),)) is None


class Rotated(torch.nn.Module):
    """With a buffer of a half type, as position embeddings have."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.register_buffer("turns", torch.randn(4, 8).to(HALF))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.second(self.first(x) * self.turns)
        return found


@shows_saved
@pytest.mark.parametrize(("half", "shown"), [(torch.float16, "float16"), (None, None)])
def test_one_saved_buffer_is_not_the_type_of_a_compiled_net(
    half: torch.dtype | None, shown: str | None
) -> None:
    """float16 with a GradScaler was to do without it, as bfloat16 does."""
    net = compiled(Rotated())
    with torch.autocast("cpu", half or HALF, enabled=half is not None):
        out = net(torch.randn(4, 8))
    assert autocast_of((out.square().sum(),)) == shown


@shows_saved
def test_what_a_hook_put_away_is_not_brought_back() -> None:
    net, back = compiled(net_of(torch.nn.ReLU())), []

    def bring(tensor: torch.Tensor) -> torch.Tensor:
        back.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(torch.clone, bring):
        loss = net(torch.randn(4, 8)).sum()
    assert autocast_of((loss,)) is None
    assert not back
    loss.backward()
    assert back


@shows_saved
def test_a_graph_whose_tensors_are_freed_shows_nothing() -> None:
    loss = compiled(net_of(torch.nn.ReLU()))(torch.randn(4, 8)).sum()
    loss.backward()
    assert autocast_of((loss,)) is None
