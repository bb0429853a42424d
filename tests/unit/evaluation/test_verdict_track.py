"""When a verdict counts, when it was right first, and how often it changed its mind."""

import pytest

from evaluation.catalogue import Expected
from evaluation.verdict_track import (
    Judgement,
    changes,
    first_right,
    is_false_alarm,
    judged,
    kind_is_right,
    since_settled,
    sub_is_right,
)

LOADER = Expected(("input", "host"), "workers", negative=False)
PRECISION = Expected(("compute",), "precision", negative=False)
NOTHING = Expected(("compute", "healthy"), "saturated", negative=True)


def track(*kinds: str, steps: int = 20) -> list[Judgement]:
    """A look a second, of so many steps each."""
    return [Judgement(float(at), steps * at, kind) for at, kind in enumerate(kinds, start=1)]


def test_an_accepted_kind_is_right() -> None:
    assert kind_is_right(Judgement(1, 1, "host"), LOADER)
    assert not kind_is_right(Judgement(1, 1, "compute"), LOADER)


def test_where_the_gpu_is_the_limit_it_matters_whether_a_change_is_asked_for() -> None:
    asks, rests, silent = (Judgement(1, 1, "compute", asks=asks) for asks in (True, False, None))
    assert [kind_is_right(look, PRECISION) for look in (asks, rests, silent)] == [True, False, True]
    assert [kind_is_right(look, NOTHING) for look in (asks, rests, silent)] == [False, True, True]


def test_a_sub_is_only_asked_for_with_the_true_kind() -> None:
    assert sub_is_right(Judgement(1, 1, "input", "workers"), LOADER) is True
    assert sub_is_right(Judgement(1, 1, "input", "storage"), LOADER) is False
    assert sub_is_right(Judgement(1, 1, "host"), LOADER) is None


def test_a_false_alarm_asks_for_a_change_where_there_is_nothing_to_fix() -> None:
    assert is_false_alarm(Judgement(1, 1, "input", asks=True), NOTHING)
    assert is_false_alarm(Judgement(1, 1, "compute", "precision", asks=True), NOTHING)
    assert not is_false_alarm(Judgement(1, 1, "healthy", asks=False), NOTHING)
    assert not is_false_alarm(Judgement(1, 1, "warming-up"), NOTHING)
    assert not is_false_alarm(Judgement(1, 1, "sync", asks=True), LOADER)


def test_the_verdict_counts_that_stands_at_step_200() -> None:
    looks = track("warming-up", *["input"] * 8, *["compute"] * 20)
    counts = judged(looks, begun_step=0, at_end=False)
    assert counts is not None
    assert counts.at_s == 14, "200 steps are over after 10 s, but nobody is held to it before 15"
    slow = judged(track(*["input"] * 30, "host", steps=8), begun_step=0, at_end=False)
    assert slow is not None
    assert slow.step == 200


def test_what_is_over_before_counts_at_its_end() -> None:
    counts = judged(track("warming-up", "input"), begun_step=0, at_end=False)
    assert counts is not None
    assert counts.kind == "input"
    assert judged([], 0, at_end=False) is None
    late = judged(track(*["input"] * 30, "host"), begun_step=0, at_end=True)
    assert late is not None
    assert late.kind == "host"


def test_the_first_right_verdict_must_last_50_steps() -> None:
    looks = track("warming-up", "input", "compute", "input", "input", "input", "input", "compute")
    found = first_right(looks, LOADER)
    assert found is not None
    assert found.at_s == 4
    assert first_right(track("input", "compute"), LOADER) is None
    assert first_right(track("compute", "input"), LOADER) is not None, "the run ended before"


@pytest.mark.parametrize(
    ("kinds", "count"),
    [
        (["warming-up", "incomplete", "input", "input"], 0),
        (["input", "host", "host", "input"], 2),
        (["warming-up", "input", "incomplete", "input"], 2),
        (["warming-up"], 0),
    ],
)
def test_changes_count_from_the_first_settled_verdict(kinds: list[str], count: int) -> None:
    assert changes(since_settled(track(*kinds))) == count
