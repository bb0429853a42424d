"""Groups of an optimizer's parameters, and those whose settings are the same."""

from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.settings.optimizers import facts_of

LAYERS = 6


def rates(at: int) -> dict[str, Any]:
    return {"lr": 1e-3 * 0.9 ** (at // 4)}


def decayed(at: int) -> dict[str, Any]:
    return {"lr": 1e-3, "weight_decay": 0.01 * (at % 2)}


@pytest.mark.parametrize(
    ("settings_of", "alike"),
    [(rates, 2 * LAYERS - 3), (decayed, 2 * LAYERS - 2), (lambda at: {"lr": 1e-3 / (at + 1)}, 0)],
)
def test_groups_that_could_be_one(settings_of: Any, alike: int) -> None:
    """One for each parameter, as layer-wise rates are often written."""
    net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(LAYERS)))
    groups = [
        {"params": [one], "name": f"layer {at}", **settings_of(at)}
        for at, one in enumerate(net.parameters())
    ]
    found = facts_of(torch.optim.AdamW(groups))
    assert (found["groups"], found["alike_groups"]) == (2 * LAYERS, alike)


def test_an_empty_group_is_none() -> None:
    groups: list[dict[str, Any]] = [
        {"params": list(nn.Linear(4, 4).parameters())},
        {"params": []},
    ]
    found = facts_of(torch.optim.SGD(groups, lr=0.1))
    assert (found["groups"], found["alike_groups"]) == (1, 0)


def test_a_rate_that_is_a_tensor_is_not_read() -> None:
    """On a GPU that would wait for it."""
    rate = torch.tensor(0.1)
    groups = [{"params": [one]} for one in nn.Linear(4, 4).parameters()]
    assert facts_of(torch.optim.AdamW(groups, lr=rate))["alike_groups"] == 1
