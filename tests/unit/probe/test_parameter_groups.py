"""Groups of an optimizer's parameters, and those whose settings are the same."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from gpuwatch.probe.settings.optimizers import LOOKS, MOST_GROUPS, Optimizers, facts_of

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


def test_a_rate_that_is_a_tensor_is_not_read() -> None:
    """On a GPU that would wait for it."""
    rate = torch.tensor(0.1)
    groups = [{"params": [one]} for one in nn.Linear(4, 4).parameters()]
    assert facts_of(torch.optim.AdamW(groups, lr=rate))["alike_groups"] == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"layers": (["a"], ["b"])},
        {"layers": ({"a": 1},)},
        {"rates": np.ones(3)},
        {3: "a key that is no name"},
        {"schedule": lambda at: at},
    ],
)
def test_whatever_a_group_holds_ends_no_watching(odd: dict[Any, Any]) -> None:
    """What cannot be compared is another one, and the same object is the same."""
    parameters = list(nn.Linear(4, 4).parameters())
    optimizer = torch.optim.SGD([{"params": [one]} for one in parameters], lr=0.1)
    for group in optimizer.param_groups:
        group.update(odd)
    assert facts_of(optimizer)["alike_groups"] == 1
    optimizer.param_groups[0]["own"] = [0]
    assert facts_of(optimizer)["alike_groups"] == 0


def test_a_group_that_is_one_tensor_has_no_truth() -> None:
    optimizer = torch.optim.SGD([torch.ones(2, 3)], lr=0.1)
    optimizer.param_groups[0]["params"] = torch.ones(2, 3)
    assert facts_of(optimizer)["groups"] == 1


def test_so_many_groups_are_not_compared() -> None:
    every = [{"params": [torch.ones(1)]} for _ in range(MOST_GROUPS + 1)]
    found = facts_of(torch.optim.SGD(every, lr=0.1))
    assert (found["groups"], found["alike_groups"]) == (MOST_GROUPS + 1, None)


def test_groups_that_a_schedule_tells_apart_are_not_alike() -> None:
    """Layers that begin to learn one after the other have the same rate before."""
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD([{"params": [one]} for one in net.parameters()], lr=0.1)
    known = Optimizers()

    def alike() -> Any:
        return [known.stepping(optimizer)["alike_groups"] for _ in range(LOOKS)][-1]

    assert alike() == 1
    optimizer.param_groups[1]["lr"] = 0.05
    assert alike() == 0
    optimizer.param_groups[1]["lr"] = 0.1
    assert alike() == 0, "for good"
