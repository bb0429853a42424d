"""Gradients of a choice that are mostly zeros, by a traced step."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from gpuwatch.probe.one_step.picked import picked
from tests.unit.probe.traced import BEARS_SUBCLASSES, Traced

pytestmark = BEARS_SUBCLASSES

NET: Any = nn.Linear(3, 3)
POINTS, CLOUD = torch.randn(2, 128, 3), torch.randn(2, 256, 3)
LABELS = torch.randint(0, 256, (128,))
HEAD: Any = nn.Linear(3, 256)


def names(run: Callable[[], Any]) -> int:
    """Operations; each takes 1 us."""
    found = picked(Traced().step(lambda: run().backward()))
    return 0 if found is None else found.operations


def nearest() -> Any:
    return torch.cdist(NET(POINTS), CLOUD).min(2)[0].mean()


def nearest_by_differences() -> Any:
    differences = NET(POINTS)[:, :, None] - CLOUD[:, None]
    return differences.square().sum(-1).min(2)[0].mean()


def nearest_by_a_product() -> Any:
    moved = NET(POINTS)
    squares = moved.square().sum(-1)[:, :, None] + CLOUD.square().sum(-1)[:, None]
    return (squares - 2 * moved @ CLOUD.transpose(1, 2)).amin(2).mean()


def nearest_both_ways() -> Any:
    distances = (NET(POINTS)[:, :, None] - CLOUD[:, None]).square().sum(-1)
    return distances.min(2)[0].mean() + distances.min(1)[0].mean()


def few_of_all_pairs() -> Any:
    distances = torch.cdist(NET(POINTS[0]), NET(POINTS[1]))
    return distances[torch.arange(128), torch.randperm(128)].mean()


@pytest.mark.parametrize(
    "run",
    [
        nearest,
        nearest_by_differences,
        nearest_by_a_product,
        nearest_both_ways,
        few_of_all_pairs,
    ],
)
def test_the_backward_of_a_whole_matrix_of_which_few_numbers_are_picked(
    run: Callable[[], Any],
) -> None:
    assert names(run) >= 3


def all_distances() -> Any:
    return torch.cdist(NET(POINTS), CLOUD).mean()


def half_of_the_distances() -> Any:
    return torch.cdist(NET(POINTS), CLOUD).topk(128, 2)[0].mean()


def likelihood_of_labels() -> Any:
    scores = HEAD(POINTS[0]).log_softmax(1)
    return -scores.gather(1, LABELS[:, None]).mean()


def largest_over_points() -> Any:
    """PointNet's: what lies before it is the net."""
    return HEAD(torch.relu(NET(CLOUD))).max(1)[0].mean()


def largest_over_times() -> Any:
    """A text's layer and its largest number over time, with what lies between."""
    return torch.relu(HEAD(CLOUD) * 2.0).max(1)[0].mean()


def nearest_beside_all() -> Any:
    distances = torch.cdist(NET(POINTS), CLOUD)
    return distances.min(2)[0].mean() + distances.mean()


@pytest.mark.parametrize(
    "run",
    [
        all_distances,
        half_of_the_distances,
        likelihood_of_labels,
        largest_over_points,
        largest_over_times,
        nearest_beside_all,
    ],
)
def test_a_gradient_of_all_is_needed(run: Callable[[], Any]) -> None:
    assert names(run) == 0
