"""How often py-spy runs, by what its runs cost."""

import pytest

from gpuwatch.tui.sources.stacks import ALONE_BUDGET, BUDGET, EAGER, Turn, Turns
from gpuwatch.tui.verdict.thresholds.samples import LEAST_STACKS
from tests.unit.session.making import MS, S

POLL_NS = 250 * MS
CHUNK_NS = 2_250 * MS
COST_S: dict[Turn, float] = {"all": 0.27, "main": 0.038, "worker": 0.036}
"""Of four workers (`gpuwatch.tui.sources.stacks`)."""
SAMPLES = 19


def watched(seconds: int, alone: bool = False, stalled_s: tuple[int, int] = (0, 0)) -> list[Turn]:
    """The turns after the eager ones, of so many seconds."""
    taken = [turn for _, turn in ended(seconds, alone, stalled_s)]
    assert taken[:EAGER] == ["all"] * EAGER
    return taken[EAGER:]


def ended(
    seconds: int,
    alone: bool = False,
    stalled_s: tuple[int, int] = (0, 0),
    times: float = 1.0,
    workers: bool = True,
) -> list[tuple[int, Turn]]:
    """(when it ended, whose turn it was); they cost so many times as much."""
    turns = Turns(alone)
    taken: list[tuple[int, Turn]] = []
    now_ns = 0
    while now_ns < seconds * S:
        stalled = stalled_s[0] * S <= now_ns < stalled_s[1] * S
        turn = turns.due(now_ns, stalled)
        if turn is None:
            now_ns += POLL_NS
            continue
        nobody = turn == "worker" and not workers
        turn = "main" if nobody else turn
        turns.took(turn, now_ns, times * COST_S[turn], nobody_else=nobody)
        now_ns += CHUNK_NS
        taken.append((now_ns, turn))
    return taken


def spent_s(turns: list[Turn]) -> float:
    return sum(COST_S[turn] for turn in turns)


def test_a_minute_stays_within_its_share_and_has_samples_enough() -> None:
    turns = watched(607)
    assert 0.9 * BUDGET < spent_s(turns[:-1]) / 600 <= BUDGET, "the last one is not paid for yet"
    assert {turns.count("main"), turns.count("worker")} == {len(turns) // 2}
    assert turns.count("worker") / 10 * SAMPLES > 100, "a minute; the rules need 20"


def test_the_first_chunk_of_a_probed_run_is_wanted_soon() -> None:
    """Most first verdicts wait for it. Without a probe steps are counted by when samples lie."""
    turns = Turns(alone=False)
    wanted = []
    for _ in range(2):
        wanted.append(turns.is_wanted_soon)
        turns.took("all", 0, COST_S["all"])
    assert wanted == [True, False]
    assert not Turns(alone=True).is_wanted_soon


def test_a_stall_gets_a_look_at_all_at_once_and_then_within_its_own_share() -> None:
    turns = watched(100, stalled_s=(40, 100))
    assert 2 <= turns.count("all") <= 60 / (COST_S["all"] / BUDGET) + 1
    before = len(watched(40))
    assert "all" in turns[before : before + 2]
    assert "all" not in watched(40)


def test_without_a_probe_the_main_thread_is_always_sampled() -> None:
    turns = watched(607, alone=True)
    assert spent_s(turns) / 600 <= 2 * ALONE_BUDGET
    assert len(turns) > 0.95 * 600 * S / (CHUNK_NS + POLL_NS), "one follows the other"
    assert turns.count("all") >= 600 / 15
    assert "worker" not in turns


def fewest_in_a_minute(ends_ns: list[int]) -> int:
    """Chunks in any minute that ends with one, or just before the next."""
    return min(
        sum(next_ns - 60 * S <= end_ns < next_ns for end_ns in ends_ns)
        for next_ns in ends_ns
        if next_ns >= 60 * S
    )


@pytest.mark.parametrize("workers", [True, False])
@pytest.mark.parametrize(("times", "share"), [(1, 0.008), (4, 0.015), (8, 0.03), (16, 0.06)])
def test_however_dear_a_turn_is_the_rules_keep_what_they_need(
    times: int, share: float, workers: bool
) -> None:
    turns = ended(600, times=times, workers=workers)
    of_main = [end_ns for end_ns, turn in turns if turn != "worker"]
    assert fewest_in_a_minute(of_main) * SAMPLES >= 3 * SAMPLES > LEAST_STACKS
    of_workers = [end_ns for end_ns, turn in turns if turn != "main"]
    assert not workers or fewest_in_a_minute(of_workers) * SAMPLES >= LEAST_STACKS
    spent = times * spent_s([turn for _, turn in turns[EAGER:-1]])
    assert 0.75 * share < spent / 600 <= share


@pytest.mark.parametrize("times", [1, 4, 8, 16])
def test_nor_without_a_probe(times: int) -> None:
    of_main = [end_ns for end_ns, _ in ended(600, alone=True, times=times)]
    assert fewest_in_a_minute(of_main) >= 3


def test_chunks_of_the_warm_up_are_taken_again() -> None:
    """A first step of 9 s, in which x-transformers writes a sample, or cuDNN chooses kernels for
    16: all the first chunks lay in it, and the next came 5 s after the first usual step."""
    turns = Turns(alone=False)
    for _ in range(EAGER):
        turns.took("all", 0, COST_S["all"])
    turns.took("main", 0, COST_S["main"])
    assert turns.due(POLL_NS, is_still=False) is None
    turns.renew(EAGER)
    assert turns.is_wanted_soon
    assert turns.due(POLL_NS, is_still=False) == "all"
    turns.took("all", POLL_NS, COST_S["all"])
    turns.renew(EAGER)
    assert turns.is_wanted_soon, "never more than at the beginning"
