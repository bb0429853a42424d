"""The arithmetic of the soak on runs that are made up: each thing that can go wrong is seen."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from tests.soak.attach_output import read_output
from tests.soak.bars import bars
from tests.soak.costs import cost, interval
from tests.soak.record import Row, SoakRecord
from tests.soak.sprint import ARMS, BLOCK_STEPS, LEAST_CPU, STEPS, TRIPLES, UNTIMED, Block, orders
from tests.soak.trend import PARTS, parts, trend

HOUR_S = 3600.0
BEGAN = 1_800_000_000.0
MIB = 2**20
PROCESSES = ("watched", "bare", "screen", "json")


def sample(s: float) -> Row:
    """Of an hour in which nothing grows and nothing is lost."""
    use = {"rss_bytes": 100 * MIB, "pss_bytes": 50 * MIB, "threads": 5, "descriptors": 20}
    times = {"cpu_s": 0.02 * s, "reaped_cpu_s": 0.0}
    return {
        "s": s,
        "t": BEGAN + s,
        **{name: {**use, **times} for name in PROCESSES},
        **{f"below_{name}": {**use, **times} for name in PROCESSES},
        "watched_thread_cpu_s": 0.1 * s,
        "bare_thread_cpu_s": 0.1 * s,
        "publisher_cpu_s": 0.002 * s,
        "lost_marks": 0,
        "sockets": 1,
        "screen_bytes": 2_000 * s,
        "load": 1.2,
    }


def block(us: float) -> Block:
    """All of its steps alike."""
    return us, us, us


def a_round(number: int) -> Row:
    """Hooks cost 12 us a step, and the noise is 1."""
    again = 800.0 + number % 3 - 1
    blocks = {"hooked": 812.0, "bare": 800.0, "bare again": again}
    triple = {arm: block(us) for arm, us in blocks.items()}
    return {
        "kind": "round",
        "t": BEGAN + 30 * number,
        "steps": 3000 * number,
        "losses": f"hash {number}",
        "triples": [triple],
    }


def line_of(second: int, **status: Any) -> str:
    """A line of the JSON monitor."""
    line = {
        "schema": 1,
        "t": BEGAN + second,
        "final": second == 3600,
        "status": {"state": "live", "lost_messages": 0, "lost_marks": 0, **status},
        "steps": {"total": 100 * second},
        "verdict": {"kind": "input", "sub": "storage"},
    }
    return json.dumps(line) + "\n"


def good() -> SoakRecord:
    """An hour that holds every bar."""
    ready = {"kind": "ready", "device": "CPU", "python": "3.11", "torch": "2.13"}
    end = {"kind": "end", "hooked_steps": 360_000}
    rounds = [a_round(number) for number in range(1, 120)]
    closing = {f"{name}_status": 0 for name in PROCESSES}
    return SoakRecord(
        began=BEGAN,
        cores=2,
        closing={**closing, "screen_says_none_lost": True, "sockets": 0},
        samples=[sample(10.0 * at) for at in range(361)],
        watched=[ready, *rounds, end],
        bare=[ready, *rounds],
        attached=read_output(line_of(second) for second in range(3601)),
    )


def missed(run: SoakRecord) -> list[str]:
    """What does not hold; an hour is too short to judge what a monitor holds."""
    found = [bar for bar in bars(run) if bar.held is not True]
    return [bar.what for bar in found if "the hour that it remembers" not in bar.measured]


def test_an_hour_in_which_all_is_well_holds_every_bar() -> None:
    assert missed(good()) == []


def test_a_leak_of_ours_is_distinguished_from_one_of_the_training() -> None:
    ours, theirs = good(), good()
    for row in ours.samples:
        row["watched"]["rss_bytes"] += 6 * MIB * row["s"] / HOUR_S
    for row in theirs.samples:
        for name in ("watched", "bare"):
            row[name]["rss_bytes"] += 600 * MIB * row["s"] / HOUR_S
    assert missed(ours) == ["growth of the watched run's memory beyond its twin's"]
    assert missed(theirs) == []


def test_a_monitor_may_fill_the_hour_that_it_remembers_and_not_more() -> None:
    filling, leaking = good(), good()
    for run in (filling, leaking):
        for row in run.samples:
            row["s"] *= 4
            row["t"] = BEGAN + row["s"]
            row["json"]["rss_bytes"] += 10 * MIB * min(row["s"], HOUR_S) / HOUR_S
        for row in run.rounds:
            row["t"] += 3 * (row["t"] - BEGAN)
    for row in leaking.samples:
        row["json"]["rss_bytes"] = 20 * MIB * (1 + row["s"] / HOUR_S)
    assert missed(filling) == []
    assert missed(leaking) == ["growth of the JSON monitor's memory"]


def test_a_monitor_that_is_too_large() -> None:
    run = good()
    for row in run.samples:
        row["screen"]["rss_bytes"] = 115 * MIB
    assert missed(run) == ["the screen's memory at its largest"]


def test_a_leak_that_noise_may_have_made_is_not_known() -> None:
    run = good()
    for row in run.samples:
        shaken = 4 * MIB * (int(row["s"]) // 360 % 2)
        row["watched"]["rss_bytes"] += 6 * MIB * row["s"] / HOUR_S + shaken
    what = "growth of the watched run's memory beyond its twin's"
    assert [bar.held for bar in bars(run) if bar.what == what] == [None]


@pytest.mark.parametrize(("load", "held"), [(1.2, False), (2.1, None), (None, None)])
def test_what_a_busy_machine_makes_dear_and_late_is_held_against_nobody(
    load: float | None, held: bool | None
) -> None:
    run = good()
    for row in run.samples:
        row["screen"]["cpu_s"] = 0.06 * row["s"]
        row["load"] = load
        if load is None:
            del row["load"]
    late = read_output(line_of(second) for second in range(0, 3601, 2))
    found = {bar.what: bar.held for bar in bars(replace(run, attached=late))}
    assert found["the screen's CPU"] is held
    assert found["lines of the JSON monitor"] is held


def test_a_line_that_is_wrong_is_wrong_however_busy_the_machine() -> None:
    run = good()
    for row in run.samples:
        row["load"] = 15.0
    wrong = read_output([*(line_of(second) for second in range(3601)), line_of(3601)])
    found = {bar.what: bar.held for bar in bars(replace(run, attached=wrong))}
    assert found["lines of the JSON monitor"] is False


def test_a_cpu_on_both_sides_of_its_bar_is_not_known() -> None:
    run = good()
    for at, row in enumerate(run.samples):
        row["screen"]["cpu_s"] = 0.05 * row["s"] + 0.5 * (at // 36 % 2)
    assert [bar.held for bar in bars(run) if bar.what == "the screen's CPU"] == [None]


def test_a_descriptor_every_ten_minutes_is_growth_and_one_that_comes_and_goes_is_none() -> None:
    leaking, steady = good(), good()
    for at, row in enumerate(leaking.samples):
        row["watched"]["descriptors"] += at // 60
    for at, row in enumerate(steady.samples):
        row["watched"]["descriptors"] += at % 3
    assert missed(leaking) == ["watched descriptors"]
    assert missed(steady) == []


def test_a_loss_that_differs_and_messages_that_were_lost() -> None:
    run = good()
    run.watched[-2] = {**run.watched[-2], "losses": "another"}
    lost = read_output(line_of(second, lost_messages=second // 3000) for second in range(3601))
    assert missed(run) == ["losses, watched and bare"]
    assert missed(replace(good(), attached=lost)) == ["messages lost"]


@pytest.mark.parametrize("word", [None, False])
def test_a_screen_that_does_not_answer_is_none_that_lost_something(word: bool | None) -> None:
    run = replace(good(), closing={**(good().closing or {}), "screen_says_none_lost": word})
    assert [bar.held for bar in bars(run) if bar.what == "messages lost"] == [word]


def test_steps_that_the_monitor_was_not_sent() -> None:
    run = good()
    run.watched[-1]["hooked_steps"] += 1
    assert missed(run) == ["steps reported by the JSON monitor"]


def test_a_cost_that_doubles_over_the_hour_has_drifted() -> None:
    run = good()
    for row in run.rounds:
        grown = 12 * row["steps"] / 360_000
        row["triples"] = [{**one, "hooked": block(812.0 + grown)} for one in row["triples"]]
    assert missed(run) == ["drift of the hooks' cost"]


def test_a_machine_too_busy_to_see_a_drift_is_reported_to_be_that() -> None:
    run = good()
    for row in run.rounds:
        shaken = 50 * (int(row["t"] - BEGAN) // 360 % 2)
        row["triples"] = [{**one, "hooked": block(812.0 + shaken)} for one in row["triples"]]
    assert [bar.held for bar in bars(run) if bar.what == "drift of the hooks' cost"] == [None]


def test_a_run_that_goes_on_misses_nothing_yet_and_a_killed_monitor_does() -> None:
    run = replace(good(), closing=None, watched=good().watched[:-1])
    run = replace(run, attached=read_output(line_of(second) for second in range(3600)))
    assert [bar.what for bar in bars(run) if bar.held is False] == []
    closing = {**(good().closing or {}), "json_status": -9}
    assert missed(replace(good(), closing=closing)) == ["how they end"]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{\n", ["a line is no JSON"]),
        (line_of(2).replace('"schema": 1', '"schema": 2'), ["schema 2"]),
        (line_of(0).replace(" 0}", " 100}"), ["time went back"]),
        (line_of(2).replace("200", "50"), ["steps were taken back"]),
    ],
)
def test_a_line_that_breaks_the_contract(line: str, wrong: list[str]) -> None:
    assert read_output([line_of(1), line]).wrong == wrong


def test_a_line_that_is_being_written_is_not_read_and_one_that_is_late_is_counted() -> None:
    reported_of = read_output([line_of(1), line_of(4), line_of(5)[:40]])
    assert (reported_of.lines, reported_of.late, reported_of.longest_gap_s, reported_of.wrong) == (
        2,
        1,
        3.0,
        [],
    )


def test_a_trend_is_the_slope_of_the_tenths_and_its_interval_that_of_their_noise() -> None:
    line = trend([7.0, *(2.0 + at for at in range(9))], HOUR_S)
    assert line is not None
    assert (line.hourly, line.low, line.high) == pytest.approx((10.0, 10.0, 10.0))
    noise = trend([0.0, *(at % 2 for at in range(9))], HOUR_S)
    assert noise is not None
    assert noise.hourly == pytest.approx(0.0)
    assert noise.low < -0.5 < 0.5 < noise.high
    assert trend([1.0, 2.0, None, 3.0, *[None] * 6], HOUR_S) is None


def test_parts_have_medians_and_an_empty_one_has_none() -> None:
    assert parts([(0.0, 1.0), (1.0, 9.0), (2.0, 2.0), (100.0, 5.0)], 100.0) == [
        2.0,
        *[None] * (PARTS - 2),
        5.0,
    ]


def test_a_sprint_has_as_many_steps_as_its_loader_has_batches() -> None:
    order = list(orders(3))
    assert len(order) == TRIPLES
    assert all(sorted(triple) == sorted(ARMS) for triple in order)
    assert sum(len(triple) for triple in order) * (UNTIMED + BLOCK_STEPS) == STEPS
    assert order != list(orders(4))


def test_a_cost_is_measured_from_blocks_that_others_disturb() -> None:
    shaken = random.Random(1)
    triples = []
    for _ in range(200):
        disturbed = {arm: shaken.choice((0.0, 1.0, 200.0, 5000.0)) for arm in ARMS}
        triples.append({arm: block(800.0 + us) for arm, us in disturbed.items()})
    costly = [{**one, "hooked": block(one["hooked"][0] + 12)} for one in triples]
    found, none = cost(costly, LEAST_CPU), cost(triples, LEAST_CPU)
    assert found is not None
    assert none is not None
    assert found.us == pytest.approx(12, abs=1)
    assert none.us == pytest.approx(0, abs=1)
    assert found.noise_us == none.noise_us == pytest.approx(0, abs=1)
    assert interval(costly, LEAST_CPU)[0] > interval(triples, LEAST_CPU)[1]
    assert cost([], LEAST_CPU) is None
