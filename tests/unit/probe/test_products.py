"""Products that need not be computed, by the graphs of real nets."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from gpuwatch.probe.settings.gathered import FEWEST_ROWS, MOST_COMPARED, MOST_OF_GRAPH, WIDEST
from gpuwatch.probe.settings.products import MOST_PRODUCTS, PRODUCTS, products_among
from gpuwatch.probe.settings.same_products import FEWEST_VALUES
from gpuwatch.probe.settings.users import users_below

ROWS, WIDE = 40, 32
pytestmark = pytest.mark.skipif(
    not hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata"),
    reason="the graph of this torch (2.4) tells no shapes",
)


def seen(loss: Any) -> dict[str, Any]:
    return products_among(users_below(loss.grad_fn)[1])


def same(loss: Any) -> Any:
    return seen(loss)["same_products"]


def gathered(loss: Any) -> Any:
    return seen(loss)["gathered_products"]


def net_of(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(WIDE, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE), *layers)


def test_a_net_that_is_called_twice_for_one_input() -> None:
    net, rows = net_of(), torch.randn(ROWS, WIDE)
    assert same((net(rows) * net(rows)).sum()) == (0.5, 4, 2)


def test_equal_inputs_are_the_same_wherever_they_lie() -> None:
    net, rows = net_of(), torch.randn(ROWS, WIDE)
    assert same((net(rows + 1) * net(rows + 1)).sum()) == (0.5, 4, 2)


@pytest.mark.parametrize("layer", [nn.Conv1d(WIDE, WIDE, 3), nn.Conv1d(WIDE, 8, 1)])
def test_convolutions_are_products_too(layer: nn.Module) -> None:
    rows = torch.randn(4, WIDE, ROWS)
    assert same((layer(rows) * layer(rows)).sum()) == (0.5, 2, 1)


def test_derivatives_that_are_asked_for_one_by_one() -> None:
    """Each goes back through the whole net for one input."""
    net = net_of(nn.Linear(WIDE, 1))
    parts: Any = torch.randn(ROWS, WIDE).split(WIDE // 2, dim=1)
    first, second = (one.clone().requires_grad_() for one in parts)

    def derived(*inputs: Any) -> Any:
        found = net(torch.cat([first, second], 1))
        ones = torch.ones_like(found)
        if len(inputs) == 1:
            asked = ([first], [second])
            return [torch.autograd.grad(found, one, ones, create_graph=True)[0] for one in asked]
        return torch.autograd.grad(found, inputs, ones, create_graph=True)

    one_by_one = same(sum(one.square().sum() for one in derived(first)))
    assert one_by_one is not None
    assert one_by_one[0] > 0.25
    assert same(sum(one.square().sum() for one in derived(first, second))) is None


def test_other_inputs_other_weights_and_dropout_are_not_the_same() -> None:
    net, rows = net_of(), torch.randn(ROWS, WIDE)
    assert same((net(rows) * net(torch.randn(ROWS, WIDE))).sum()) is None
    assert same((net(rows) * net_of()(rows)).sum()) is None
    dropped = nn.Sequential(nn.Dropout(0.5), net)
    assert same((dropped(rows) * dropped(rows)).sum()) is None


def test_states_that_begin_with_zeros_are_no_waste() -> None:
    cell = nn.RNNCell(WIDE, WIDE)
    first, second = (cell(torch.randn(ROWS, WIDE)) for _ in range(2))
    assert same((first * second).sum()) is None
    one_hot = torch.eye(ROWS, WIDE)
    assert FEWEST_VALUES > 2
    assert same((cell(one_hot) * cell(one_hot)).sum()) is None


def test_rows_that_differ_where_nobody_looked_are_no_waste() -> None:
    net, rows = net_of(), torch.randn(ROWS, WIDE)
    other = rows.clone()
    other[1, 1] += 1
    assert same((net(rows) * net(other)).sum()) is None


def test_what_a_checkpoint_keeps_is_not_asked_for() -> None:
    calls: list[int] = []

    class Counts(nn.Module):
        def forward(self, rows: Any) -> Any:
            calls.append(len(rows))
            return rows

    net, rows = net_of(Counts()), torch.randn(ROWS, WIDE, requires_grad=True)
    loss = checkpoint(net, rows, use_reentrant=False).sum()
    assert same(loss) is None
    assert len(calls) == 1, "computed anew"


def recomputed(loss: Any) -> Any:
    return seen(loss)["recomputed_products"]


def test_what_a_checkpoint_computes_again_is_its_part_of_the_net() -> None:
    net, rows = net_of(), torch.randn(ROWS, WIDE, requires_grad=True)
    again = checkpoint(net, rows, use_reentrant=False)
    assert recomputed(again.sum()) == (1.0, 0)
    assert recomputed(net_of()(again).sum()) == (0.5, 0)
    assert recomputed(net(rows).sum()) is None


def test_the_older_checkpoint_hides_what_it_holds() -> None:
    net, rows = net_of(), torch.randn(ROWS, WIDE, requires_grad=True)
    again = checkpoint(net, checkpoint(net, rows, use_reentrant=True), use_reentrant=True)
    assert recomputed(again.sum()) == (0.0, 2)
    assert recomputed(nn.Linear(WIDE, WIDE)(again).sum()) == (0.0, 2)


def test_what_other_hooks_put_away_is_not_computed_again() -> None:
    rows = torch.randn(ROWS, WIDE, requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        assert recomputed(net_of()(rows).sum()) is None


def edges(nodes: int = ROWS, times: int = 10) -> torch.Tensor:
    return torch.arange(nodes).repeat_interleave(times)


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_on_gathered_rows(bias: bool) -> None:
    layer, rows = nn.Linear(WIDE, 48, bias), torch.randn(ROWS, WIDE, requires_grad=True)
    for found in (rows.index_select(0, edges()), rows[edges()], rows[:, None].expand(-1, 10, -1)):
        assert gathered(layer(found).sum()) == (0.9, 10 * ROWS, ROWS, WIDE, 48)
    assert gathered(layer(rows)[edges()].sum()) is None


def test_a_vocabulary_that_is_smaller_than_a_text() -> None:
    words = nn.Embedding(20, WIDE)
    ids = torch.arange(20).repeat(4, 2)
    assert gathered(nn.Linear(WIDE, 48)(words(ids)).sum()) == (7 / 8, 160, 20, WIDE, 48)
    large = nn.Embedding(500, WIDE)(ids)
    assert gathered(nn.Linear(WIDE, 48)(large).sum()) is None, "it would go over all of them"
    flat = nn.Linear(40 * WIDE, 48)(words(ids).flatten(1))
    assert gathered(flat.sum()) is None, "a row is a whole text"


def test_a_net_of_several_layers_on_gathered_rows() -> None:
    rows = torch.randn(ROWS, WIDE, requires_grad=True)
    assert gathered(net_of()(rows[edges()]).sum())[0] == pytest.approx(0.9)


def test_rows_of_two_gathers_count_by_their_widths() -> None:
    """What is added to a gathered row makes it another one for each edge."""
    nodes, between = (torch.randn(*size, requires_grad=True) for size in ((ROWS, WIDE), (400, 32)))
    layer = nn.Linear(2 * WIDE, 48)
    put_together = layer(torch.cat([nodes[edges()], between * 1], 1)).sum()
    assert gathered(put_together)[0] == pytest.approx(0.45)
    summed = nn.Linear(WIDE, 48)(nodes[edges()] + nodes[edges().flip(0)])
    assert gathered(summed.sum()) is None


@pytest.mark.parametrize("between", [nn.ReLU(), nn.LayerNorm(2 * WIDE)])
def test_behind_the_first_layer_rows_that_were_put_together_are_apart_no_more(
    between: nn.Module,
) -> None:
    """Each pair of nodes gives another row."""
    nodes = torch.randn(ROWS, WIDE, requires_grad=True)
    first, second = nn.Linear(2 * WIDE, WIDE), nn.Linear(WIDE, WIDE)
    pairs = between(torch.cat([nodes[edges()], nodes[edges().flip(0)]], 1))
    found = gathered(second(first(pairs).relu()).sum())
    if isinstance(between, nn.LayerNorm):
        assert found is None
    else:
        assert found[0] == pytest.approx(0.9 * 2 / 3), "of the first layer alone"


def trunk() -> nn.Sequential:
    """A net on coordinates: of its first layer a result is as wide as what it is gathered for."""
    return nn.Sequential(nn.Linear(2, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE))


@pytest.mark.parametrize("apart", [True, False])
def test_a_grid_that_is_given_once_for_each_sample(apart: bool) -> None:
    grid = torch.rand(256, 2)
    given = grid.repeat_interleave(16, 0) if apart else grid[None].expand(16, -1, -1)
    part, rows, needed, inputs, outputs = gathered(trunk()(given).sum())
    assert part == pytest.approx(WIDE / (WIDE + 2) * (1 - needed / rows), abs=0.01)
    assert (rows, inputs, outputs) == (4096, WIDE, WIDE)
    assert needed == 256


def test_of_a_large_grid_parts_are_compared() -> None:
    grid = torch.rand(1024, 2)[None].expand(1 + MOST_COMPARED // 2048, -1, -1)
    _, rows, needed, *_ = gathered(trunk()(grid).sum())
    assert 1024 <= needed <= rows // 4, "at the most so many differ"


def test_points_that_differ_and_few_or_wide_ones_are_no_grid() -> None:
    assert gathered(trunk()(torch.rand(16, 256, 2)).sum()) is None
    assert gathered(trunk()(torch.ones(FEWEST_ROWS - 1, 2)).sum()) is None
    for columns in (4, 8):
        alike = torch.randint(0, 2, (4096, columns)).float()
        net = nn.Sequential(nn.Linear(columns, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE))
        assert gathered(net(alike).sum()) is None, "by chance"
    wide = nn.Linear(WIDEST + 1, WIDE)
    assert gathered(wide(torch.ones(256, WIDEST + 1)).sum()) is None


def test_cats_within_cats_end_at_some_depth() -> None:
    rows = torch.randn(ROWS, WIDE, requires_grad=True)
    found = rows[edges()]
    for _ in range(400):
        found = torch.cat([found, rows[edges()] * 1], -1)[:, :WIDE].contiguous() * 1
    assert gathered(nn.Linear(WIDE, 48)(found).sum()) is None
    nested = rows
    for _ in range(400):
        nested = torch.cat([nested, rows[:, :1]], -1)
    assert gathered(nn.Linear(WIDE + 400, 8)(nested).sum()) is None


def test_what_gathering_the_result_would_cost_is_no_gain() -> None:
    rows = torch.randn(ROWS, WIDE, requires_grad=True)
    assert gathered(nn.Linear(WIDE, 3 * WIDE)(rows[edges()]).sum()) is None


def test_elements_of_a_signal_are_no_rows() -> None:
    signal = torch.randn(500, requires_grad=True)
    frames = signal[torch.arange(390)[:, None] + torch.arange(WIDE)]
    assert gathered(nn.Linear(WIDE, 48)(frames).sum()) is None


def test_a_layer_norm_over_positions_makes_rows_different() -> None:
    rows = torch.randn(1, 10, WIDE, requires_grad=True).expand(16, -1, -1)
    normed = nn.LayerNorm(WIDE)(rows)
    assert gathered(nn.Linear(WIDE, 48)(normed).sum())[0] == pytest.approx(15 / 16)
    assert gathered(nn.Linear(WIDE, 48)(nn.LayerNorm([10, WIDE])(rows)).sum()) is None


def test_the_arithmetic_of_a_recurrent_layer_and_of_attention_counts() -> None:
    """A head that is called twice is little of a net with an LSTM, or attention over long texts."""
    texts, head = torch.randn(4, 6, WIDE), nn.Linear(WIDE, 10)
    found, _ = nn.LSTM(WIDE, WIDE, batch_first=True)(texts)
    layers = 2 * 4 * WIDE * WIDE
    part, *counts = same((head(found) * head(found)).sum())
    assert counts == [2, 1]
    assert part == pytest.approx(10 * WIDE / (layers + 2 * 10 * WIDE))
    query = torch.randn(4, 2, 6, WIDE // 2, requires_grad=True)
    found = F.scaled_dot_product_attention(query, query, query).transpose(1, 2).flatten(2)
    part, *_ = same((head(found) * head(found)).sum())
    assert part == pytest.approx(10 / (2 * 6 + 2 * 10))


def test_of_a_graph_with_a_function_of_the_programs_own_nothing_is_known() -> None:
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, rows: Any) -> Any:
            return rows * 2

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return gradients[0] * 2

    head, rows = nn.Linear(WIDE, 10), torch.randn(ROWS, WIDE)
    own: Any = Own.apply
    assert same((head(rows) * head(rows)).sum()) is not None
    assert same(own(head(rows) * head(rows)).sum()) is None


def test_one_weight_at_several_dilations_gives_other_results() -> None:
    layer, rows = nn.Conv1d(WIDE, WIDE, 3, padding="same"), torch.randn(4, WIDE, ROWS)
    wide = F.conv1d(rows, layer.weight, layer.bias, padding=2, dilation=2)
    assert same((layer(rows) * wide).sum()) is None


def test_each_of_those_that_seem_to_be_the_same_is_compared() -> None:
    net, rows = net_of(), torch.randn(ROWS, WIDE)
    other = rows.clone()
    other[1, 1] += 1
    found = same((net(rows) * net(rows) * net(other)).sum())
    assert found == (pytest.approx(1 / 3), 6, 4)


def test_a_detached_input_makes_other_gradients() -> None:
    rows = torch.randn(ROWS, WIDE, requires_grad=True) * 1
    head = nn.Linear(WIDE, 48)
    assert same((head(rows) * head(rows.detach())).sum()) is None


def test_within_a_dispatch_mode_and_of_too_many_nothing_is_read() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    layer, rows = nn.Linear(WIDE, WIDE), torch.randn(ROWS, WIDE)
    nothing = dict.fromkeys(PRODUCTS)
    twice = (layer(rows) * layer(rows)).sum()
    with FlopCounterMode(display=False) as counter:
        assert seen(twice) == nothing
    assert counter.get_total_flops() == 0
    many: Any = sum(layer(rows).sum() for _ in range(MOST_PRODUCTS + 1))
    assert seen(many) == nothing


@pytest.mark.parametrize("width", [8, 64])
def test_what_has_no_memory_at_present_is_not_read(width: int) -> None:
    """FSDP frees the parameters of a layer between its forward and its backward: reading there
    ended the process."""
    net, rows = nn.Linear(width, width), torch.randn(ROWS, width, requires_grad=True)
    loss = (net(rows) * net(rows + 1)).sum()
    net.weight.untyped_storage().resize_(0)
    assert same(loss) is None
    assert gathered(loss) is None


def test_rows_that_begin_where_others_do_are_not_the_same() -> None:
    """The first columns are a type, which a branch of its own takes."""
    rows = torch.cat([torch.eye(4)[torch.arange(4096) % 4], torch.randn(4096, 28)], 1)
    ways = [nn.Sequential(nn.Linear(wide, WIDE), nn.Linear(WIDE, WIDE)) for wide in (4, WIDE)]
    for order in ((0, 1), (1, 0)):
        given = [ways[at](rows[:, : 4 if at == 0 else WIDE]).sum() for at in order]
        part, *_ = gathered(sum(given))
        assert part < 0.6, "of one branch alone"


def test_a_net_that_is_asked_about_what_is_detached_as_well_is_no_waste() -> None:
    """A decoder that learns from both, and an encoder from one."""
    encoder, decoder, rows = net_of(), net_of(nn.Tanh()), torch.randn(ROWS, WIDE)
    hidden = encoder(rows)
    assert same((decoder(hidden) * decoder(hidden.detach())).sum()) is None
    assert same((decoder(hidden) * decoder(hidden)).sum()) == (pytest.approx(2 / 6), 6, 4)


@pytest.mark.parametrize("bends", [nn.Tanh, nn.Sigmoid, nn.Softplus, nn.ELU, nn.GELU, nn.ReLU])
def test_the_rows_of_a_derivative_differ(bends: type[nn.Module]) -> None:
    """A PINN, a gradient penalty: its backward begins with ones, alike for all."""
    wide = nn.Sequential(nn.Linear(2, 64), bends(), nn.Linear(64, 64), bends(), nn.Linear(64, 1))
    points = torch.rand(512, 2, requires_grad=True)
    (derived,) = torch.autograd.grad(wide(points).sum(), points, create_graph=True)
    assert gathered(derived.square().sum()) is None


def test_own_rows_of_a_graph_are_compared_within_a_budget() -> None:
    """A cell by hand over 400 times took longer to look at than to compute."""
    cell = nn.RNNCell(64, WIDE)
    state = torch.zeros(1024, WIDE)
    for _ in range(2 * MOST_OF_GRAPH // (64 * 1024)):
        state = cell(torch.ones(1024, 64), state)
    compared: list[int] = []
    plain = torch.Tensor.__eq__

    def counted(one: Any, other: Any) -> Any:
        compared.append(one.numel())
        return plain(one, other)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "__eq__", counted)
        gathered(state.sum())
    assert sum(compared) <= 8 * MOST_OF_GRAPH


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_a_picture_is_made_larger_before_a_layer_of_single_pixels(mode: str) -> None:
    """A head of FPN upsamples 128 channels, and then makes 19 classes of them."""
    features, head = torch.randn(2, WIDE, 8, 8, requires_grad=True), nn.Conv2d(WIDE, 5, 1)
    larger = F.interpolate(features, scale_factor=4, mode=mode)
    assert gathered(head(larger).sum()) == (15 / 16, 2 * 32 * 32, 2 * 8 * 8, WIDE, 5)
    assert gathered(F.interpolate(head(features), scale_factor=4, mode=mode).sum()) is None
    assert gathered(nn.Conv2d(WIDE, 5, 3, padding=1)(larger).sum()) is None
    assert gathered(nn.Conv2d(WIDE, 2 * WIDE, 1)(larger).sum()) is None
    assert gathered(nn.Conv2d(WIDE, 5, 1, stride=2)(larger).sum()) is None
