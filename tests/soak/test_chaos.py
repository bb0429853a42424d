"""Random faults around a training: a round of it that is short, and the hour (`make soak`)."""

import os
import time

import pytest

from tests.soak import chaos

MINUTES = float(os.environ.get("GPUWATCH_SOAK_MINUTES", "60"))
SHORT_STEPS = 20


@pytest.mark.slow
@pytest.mark.timeout(2 * chaos.LIMIT_S)
def test_a_short_round_is_as_its_bare_twin() -> None:
    found = chaos.play(seed=7, steps=SHORT_STEPS)
    assert found.same, found
    assert "watchdogs lost 0" in found.watched[1]


def test_a_round_that_differs_is_seen() -> None:
    bare = (0, "trains\nabc watchdogs lost 0\n", "")
    assert chaos.Round(1, bare=bare, watched=bare).same
    for watched in (
        (1, bare[1], ""),
        (0, "trains\nabd watchdogs lost 0\n", ""),
        (0, bare[1], "gpuwatch: the probe stopped watching\n"),
        (-1000, "trains\n", ""),
    ):
        assert not chaos.Round(1, bare=bare, watched=watched).same
    lost = (0, "trains\nabc watchdogs lost 1\n", "")
    assert not chaos.Round(1, bare=lost, watched=lost).same


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES + 600)
def test_an_hour_of_faults() -> None:
    seed, until_s = int(time.time()), time.monotonic() + 60 * MINUTES
    while time.monotonic() < until_s:
        print("seed", seed, flush=True)
        found = chaos.play(seed)
        assert found.same, found
        seed += 1
