"""Normal distributions of several numbers that do not depend on each other, by their graphs."""

from typing import Any

import torch
from torch.distributions import Independent, MultivariateNormal, Normal

from gpuwatch.probe.settings.device_reads import DeviceReads
from gpuwatch.probe.settings.diagonals import MOST_NUMBERS, diagonals_among
from gpuwatch.probe.settings.users import Users, users_below
from tests.unit.probe.fake_device import FakeDevice
from tests.unit.probe.held_clock import MS, HeldClock

STATES, ACTIONS = 32, 6


def users_of(covariance: torch.Tensor) -> Users:
    mean = torch.randn(STATES, ACTIONS, requires_grad=True)
    found = MultivariateNormal(mean, covariance.expand(STATES, -1, -1))
    return users_below(found.log_prob(torch.zeros(STATES, ACTIONS)).sum().grad_fn)[1]


def test_a_covariance_that_is_diagonal() -> None:
    """PPO with a fixed deviation for each action."""
    assert diagonals_among(users_of(torch.diag(torch.rand(ACTIONS) + 0.1))) == (1.0, ACTIONS)


def test_of_a_large_batch_the_first_are_looked_at() -> None:
    mean = torch.randn(MOST_NUMBERS, 2, requires_grad=True)
    found = MultivariateNormal(mean, torch.eye(2).expand(MOST_NUMBERS, -1, -1))
    root = found.log_prob(torch.zeros(2)).sum().grad_fn
    assert diagonals_among(users_below(root)[1]) == (1.0, 2)


def test_actions_that_depend_on_each_other_need_it() -> None:
    mixed = torch.rand(ACTIONS, ACTIONS)
    assert diagonals_among(users_of(mixed @ mixed.T + torch.eye(ACTIONS))) is None


def test_a_plain_normal_solves_nothing() -> None:
    mean = torch.randn(STATES, ACTIONS, requires_grad=True)
    found = Independent(Normal(mean, torch.ones(ACTIONS)), 1)
    root = found.log_prob(torch.zeros(STATES, ACTIONS)).sum().grad_fn
    assert diagonals_among(users_below(root)[1]) is None


def test_a_device_tells_what_the_host_does() -> None:
    device = FakeDevice(HeldClock())
    reads = DeviceReads(torch, device, place="cpu")
    users = users_of(torch.diag(torch.rand(ACTIONS) + 0.1))
    assert reads.begin()
    found: Any = diagonals_among(users, reads)
    assert reads.end()
    device.clock.now_ns += MS
    assert found(reads.arrived()) == diagonals_among(users) == (1.0, ACTIONS)
