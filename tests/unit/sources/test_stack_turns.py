"""How often py-spy runs, by what it was told that runs cost."""

from tests.unit.session.making import MS, S
from tui.sources.stack_turns import ALONE_BUDGET, BUDGET, EAGER, Turn, Turns

POLL_NS = 250 * MS
CHUNK_NS = 2_250 * MS
COST_S: dict[Turn, float] = {"all": 0.27, "main": 0.038, "worker": 0.036}
"""Of four workers (`tui.sources.stack_turns`)."""
SAMPLES = 19


def watched(seconds: int, alone: bool = False, stalled_s: tuple[int, int] = (0, 0)) -> list[Turn]:
    """The turns after the eager ones, of so many seconds."""
    turns = Turns(alone)
    taken: list[Turn] = []
    now_ns = 0
    while now_ns < seconds * S:
        stalled = stalled_s[0] * S <= now_ns < stalled_s[1] * S
        turn = turns.due(now_ns, stalled)
        if turn is None:
            now_ns += POLL_NS
            continue
        turns.took(turn, now_ns, COST_S[turn])
        taken.append(turn)
        now_ns += CHUNK_NS
    assert taken[:EAGER] == ["all"] * EAGER
    return taken[EAGER:]


def spent_s(turns: list[Turn]) -> float:
    return sum(COST_S[turn] for turn in turns)


def test_a_minute_stays_within_its_share_and_has_samples_enough() -> None:
    turns = watched(607)
    assert 0.9 * BUDGET < spent_s(turns[:-1]) / 600 <= BUDGET, "the last one is not paid for yet"
    assert {turns.count("main"), turns.count("worker")} == {len(turns) // 2}
    assert turns.count("worker") / 10 * SAMPLES > 100, "a minute; the rules need 20"


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
