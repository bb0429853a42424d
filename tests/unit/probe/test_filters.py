"""How the filters of a net's convolutions lie in memory, as its optimizer shows them."""

from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.settings.optimizers import facts_of


@pytest.mark.parametrize(
    ("net", "order", "filters", "depthwise"),
    [
        (nn.Conv2d(3, 8, 3), None, 1, 0),
        (nn.Conv2d(3, 8, 3), torch.channels_last, 0, 0),
        (nn.Conv3d(3, 8, 3), None, 0, 0),
        (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv3d(3, 8, 3)), None, 0, 0),
        (nn.ConvTranspose2d(8, 3, 2), None, 1, 0),
        (nn.Conv2d(8, 8, 3, groups=8), None, 0, 1),
        (nn.Conv2d(8, 8, 3, groups=8), torch.channels_last, 0, 1),
        (nn.Conv2d(8, 8, 1), None, 0, 0),
        (nn.Conv2d(8, 8, (3, 1)), None, 0, 0),
        (nn.Conv1d(3, 8, 3), None, 0, 0),
        (nn.Linear(8, 8), None, 0, 0),
    ],
)
def test_filters_in_the_order_of_their_channels(
    net: Any, order: torch.memory_format | None, filters: int, depthwise: int
) -> None:
    if order is not None:
        net.to(memory_format=order)
    facts = facts_of(torch.optim.SGD(net.parameters(), lr=0.1))
    assert (facts["filters"], facts["depthwise_filters"]) == (filters, depthwise)


@pytest.mark.parametrize(
    ("net", "breakable"),
    [
        (nn.Conv2d(3, 8, 1, stride=2), 1),
        (nn.Conv2d(16, 8, 1, stride=2), 0),
        (nn.Conv2d(3, 3, 1, groups=3), 0),
        (nn.Conv2d(3, 8, 3, stride=2), 0),
        (nn.Conv2d(3, 8, 1, stride=2, device="meta"), 0),
    ],
    ids=["few channels", "whole vectors", "one channel each", "no pixels", "no CPU"],
)
def test_filters_that_onednn_may_break(net: Any, breakable: int) -> None:
    """By channels_last, if they have strides, which a weight does not show."""
    facts = facts_of(torch.optim.SGD(net.parameters(), lr=0.1))
    assert facts["breakable_filters"] == breakable
