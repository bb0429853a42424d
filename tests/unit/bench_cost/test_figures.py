"""The arithmetic of the cost: groups, pauses, medians, bars."""

from dataclasses import replace

import pytest

from tests.bench.cost.figures import (
    BARE,
    BARE_AGAIN,
    PROBED,
    Block,
    cost,
    grouped,
    without_pauses,
)
from tests.bench.cost.machine import CUDA, HOST
from tests.bench.cost.monitor import Used
from tests.bench.cost.monitor import rows as monitor_rows
from tests.bench.cost.peers import BARE as BARE_PROCESS
from tests.bench.cost.peers import BARE_AGAIN as BARE_PROCESS_AGAIN
from tests.bench.cost.peers import FEWEST_STEPS, OURS, TARGETS_MS, TRACEML, added, beside, turn_s
from tests.bench.cost.steps import TARGETS_MS as STEPS_TARGETS_MS
from tests.bench.cost.steps import allowed_us, rows

QUIET = Block(2000.0, 2000.0, 0.0, 1900.0, 0.0)


STEPS_US = {BARE_PROCESS: 5000.0, BARE_PROCESS_AGAIN: 5003.0, OURS: 5040.0, TRACEML: 5900.0}


def a_round(probed: Block) -> dict[str, Block]:
    """A machine without noise."""
    return {BARE: QUIET, BARE_AGAIN: QUIET, PROBED: probed}


def test_what_falls_on_one_block_of_five_is_in_the_mean() -> None:
    plain = a_round(Block(2010.0, 2010.0, 0.0, 1909.0, 0.0))
    with_a_turn = a_round(Block(2110.0, 2010.0, 0.0, 1909.0, 50.0))
    found = cost(PROBED, [plain, plain, with_a_turn, plain, plain] * 8, a_group=5)
    assert (found.groups, found.rounds) == (8, 40)
    assert found.cost_us == pytest.approx(30)
    assert 10 <= found.low_us < 30 < found.high_us <= 60
    assert found.median_cost_us == pytest.approx(10)
    assert found.thread_us == pytest.approx(9)
    assert found.publisher_us == pytest.approx(10)
    assert found.share == pytest.approx(0.015)


def test_the_same_code_twice_costs_nothing() -> None:
    assert cost(BARE_AGAIN, [a_round(QUIET)] * 4, a_group=2).cost_us == 0


def test_one_disturbed_group_does_not_move_the_median() -> None:
    disturbed = a_round(Block(9000.0, 2010.0, 0.0, 1909.0, 0.0))
    plain = a_round(Block(2010.0, 2010.0, 0.0, 1909.0, 0.0))
    assert cost(PROBED, [plain] * 8 + [disturbed], a_group=1).cost_us == pytest.approx(10)


def test_rounds_left_over_belong_to_the_last_group() -> None:
    assert [len(group) for group in grouped([0.0] * 13, 2)] == [2, 2, 2, 2, 2, 3]


def test_too_few_groups_are_one() -> None:
    assert grouped([1.0, 2.0, 3.0], 2) == [[1.0, 2.0, 3.0]]
    plain, dear = a_round(QUIET), a_round(Block(2040.0, 2000.0, 0.0, 1900.0, 0.0))
    assert cost(PROBED, [plain, dear, plain, dear], a_group=4).cost_us == pytest.approx(20)


def test_a_pause_of_the_machine_counts_alike_in_every_arm() -> None:
    bare = [2_000_000] * 4
    kept = without_pauses(
        {BARE: bare, BARE_AGAIN: [2_000_000, 90_000_000], PROBED: [2_100_000, 40_000_000]}
    )
    assert kept == {
        BARE: bare,
        BARE_AGAIN: [2_000_000, 7_000_000],
        PROBED: [2_100_000, 7_000_000],
    }


@pytest.mark.parametrize(
    ("side", "mode", "step_us", "allowed"),
    [
        (HOST, "unwatched", 2e3, 5),
        (HOST, "watched", 1e5, 15),
        (CUDA, "unwatched", 2e3, 5),
        (CUDA, "watched", 5e3, 30),
        (CUDA, "watched", 1e5, 500),
        (HOST, "A/A, watched", 2e3, None),
    ],
)
def test_the_bars(side: object, mode: str, step_us: float, allowed: float | None) -> None:
    assert allowed_us(side, mode, step_us) == allowed  # type: ignore[arg-type]


def test_a_row_keeps_its_bar_or_does_not() -> None:
    dear = {arm: list(block) for arm, block in a_round(Block(2045.0, 2001.0, 0.0, 1, 1)).items()}
    cheap = {arm: list(block) for arm, block in a_round(Block(2003.0, 2001.0, 0.0, 1, 1)).items()}
    seen = {"target_ms": 2.0, "layers": 9, "steps": 10, "unwatched": [cheap] * 5}
    seen |= {"unwatched_group": 1, "watched": [dear] * 5, "watched_group": 1}
    found = {claim.item: (claim.met, claim.sure) for claim in rows(HOST, seen)}
    assert found == {
        "cost, A/A, unwatched": (None, True),
        "cost, unwatched": (True, True),
        "cost, A/A, watched": (None, True),
        "cost, watched": (False, True),
    }


def test_a_bar_within_the_noise_is_not_sure() -> None:
    means = (2005.0, 2025.0, 2010.0, 2030.0, 2025.0)
    rounds = [
        {arm: list(block) for arm, block in a_round(Block(mean, 2001.0, 0, 1, 1)).items()}
        for mean in means
    ]
    seen = {"target_ms": 2.0, "layers": 9, "steps": 10, "unwatched": rounds}
    seen |= {"unwatched_group": 1, "watched": rounds, "watched_group": 1}
    *_, watched = rows(HOST, seen)
    assert (watched.met, watched.sure) == (False, False)


@pytest.mark.parametrize(("rounds", "a_group"), [(1, 1), (4, 1), (9, 10)])
def test_a_miss_in_a_few_rounds_is_not_sure(rounds: int, a_group: int) -> None:
    dear = {arm: list(block) for arm, block in a_round(Block(2045.0, 2001.0, 0, 1, 1)).items()}
    seen = {"target_ms": 2.0, "layers": 9, "steps": 10, "unwatched": [dear] * rounds}
    seen |= {"unwatched_group": a_group, "watched": [dear] * rounds, "watched_group": a_group}
    *_, watched = rows(HOST, seen)
    assert (watched.met, watched.sure) == (False, False)


def test_a_tenth_of_traceml() -> None:
    rounds = [{tool: us + drift for tool, us in STEPS_US.items()} for drift in (0.0, 300.0, -200.0)]
    ours, traceml = added(OURS, rounds), added(TRACEML, rounds)
    assert (ours.cost_us, traceml.cost_us) == (40, 900)
    noise = added(BARE_PROCESS_AGAIN, rounds)
    assert beside(ours, traceml, noise) == ("a tenth of TraceML's: 90 us", True, True)
    louder = replace(noise, cost_us=-60.0)
    assert beside(ours, traceml, louder) == ("a tenth of TraceML's: 90 us", True, False)


def test_a_traceml_that_is_lost_in_the_noise_is_no_bar() -> None:
    rounds = [{BARE_PROCESS: 5000.0, OURS: 5040.0, TRACEML: 5000.0 + more} for more in (-30, 40)]
    ours = added(OURS, rounds)
    _, met, sure = beside(ours, added(TRACEML, rounds), ours)
    assert (met, sure) == (None, False)


def test_every_length_has_a_turn_that_holds_some_steps() -> None:
    assert TARGETS_MS == STEPS_TARGETS_MS
    assert all(turn_s(ms) >= FEWEST_STEPS * ms / 1e3 for ms in TARGETS_MS)
    assert (turn_s(0.5), turn_s(100.0)) == (0.3, 0.5)


@pytest.mark.parametrize(
    ("monitor", "pyspy", "met"),
    [
        (Used(0.05, 120_000_000), Used(0.01, 90_000_000), (True, True, None)),
        (Used(0.01, 10_000_000), Used(0.011, 1_000_000), (True, False, None)),
        (Used(0.051, 10_000_000), Used(0.001, 0), (False, True, None)),
        (Used(0.01, 121_000_000), Used(0.0, 0), (False, None, None)),
    ],
)
def test_the_monitor_and_its_py_spy_have_a_bar_each(
    monitor: Used, pyspy: Used, met: tuple[bool | None, ...]
) -> None:
    assert tuple(claim.met for claim in monitor_rows("", monitor, pyspy)) == met
