"""What was reported before: a timeline without flicker, and an exact account of the time."""

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Kind
from gpuwatch.tui.verdict.history import VerdictHistory
from gpuwatch.tui.verdict.thresholds.hysteresis import TIMELINE_MOST
from tests.unit.session.making import verdict
from tests.unit.verdict.windows import S, even, window


def past_of(*stays: tuple[Kind, int], **fields: object) -> VerdictHistory:
    """Verdicts, each reported for so many seconds, with a look and 10 steps a second."""
    past, second = VerdictHistory(), 0
    for kind, seconds in stays:
        for _ in range(seconds):
            past.add(verdict(kind, **fields), second * S, 10 * second)
            second += 1
    past.add(verdict(stays[-1][0], **fields), second * S, 10 * second)
    return past


def test_what_was_reported_is_kept_with_its_times_and_steps() -> None:
    first, second, third = (
        past_of(("warming-up", 6), ("healthy", 30), ("input", 20)).timeline().verdicts
    )
    assert [one.kind for one in (first, second, third)] == ["warming-up", "healthy", "input"]
    assert (second.since_ns, second.until_ns) == (6 * S, 36 * S)
    assert (third.since_step, third.until_step) == (360, 560)
    assert third.headline == "it is input"


def test_a_moment_is_part_of_what_it_interrupts_and_still_counts() -> None:
    past = past_of(("input", 30), ("healthy", 1), ("input", 20), ("host", 2), ("sync", 9))
    assert [(one.kind, one.until_ns // S) for one in past.timeline().verdicts] == [
        ("input", 53),
        ("sync", 62),
    ]
    shares = {held.kind: held.share_of_time for held in past.summary()}
    assert shares["healthy"] == pytest.approx(1 / 62)
    assert shares["host"] == pytest.approx(2 / 62)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_every_second_another_word_is_no_timeline() -> None:
    flicker: list[tuple[Kind, int]] = [("input", 1), ("host", 1)] * 100
    assert len(past_of(("compute", 10), *flicker).timeline().verdicts) <= 2


def test_shares_and_speedups_are_weighed_by_time() -> None:
    past = VerdictHistory()
    past.add(verdict("input", share=0.2, speedup=1.25), 0, 0)
    past.add(verdict("input", share=0.6, speedup=2.5), 30 * S, 1)
    past.add(verdict("input", share=0.9, speedup=9.0), 40 * S, 2)
    (entry,) = past.timeline().verdicts
    assert entry.share == pytest.approx(0.3)
    assert entry.speedup == pytest.approx((30 * 1.25 + 10 * 2.5) / 40)
    (held,) = past.summary()
    assert (held.ns, held.cost_ns) == (40 * S, 12 * S)


def test_what_has_no_share_has_no_cost() -> None:
    (held,) = past_of(("healthy", 30)).summary()
    assert held.cost_ns is None


def test_the_oldest_are_dropped_and_counted() -> None:
    many: list[tuple[Kind, int]] = [("input", 6), ("host", 6)] * TIMELINE_MOST
    timeline = past_of(*many).timeline()
    assert len(timeline.verdicts) == TIMELINE_MOST
    assert timeline.dropped == TIMELINE_MOST
    assert timeline.verdicts[-1].kind == "host"


def test_a_single_look_counts_whole() -> None:
    past = VerdictHistory()
    assert (past.summary(), past.timeline().verdicts) == ((), ())
    past.add(verdict("input", share=0.4), S, 12)
    (held,) = past.summary()
    assert (held.share_of_time, held.ns, held.cost_ns) == (1.0, 0, None)
    (entry,) = past.timeline().verdicts
    assert entry.share == 0.4


def test_the_engine_keeps_both() -> None:
    engine = Engine()
    rows = even(200, data_ms=50, forward_ms=50)
    engine.judge(window(rows[:5]))
    for done in range(30, 201, 10):
        engine.judge(window(rows[:done]))
    held = {one.kind: one for one in engine.summary()}
    assert held["input"].share_of_time == pytest.approx(170 / 195, abs=0.01)
    assert held["input"].cost_ns == pytest.approx(8.5 * S, rel=0.01)
    assert [one.kind for one in engine.timeline().verdicts] == ["warming-up", "input"]
