"""Said against right, and which half of the scenarios a name is in."""

from evaluation.catalogue import scenarios
from evaluation.reliability import Claim, half_of, levels_of, reliability_table


def claim(run: str, confidence: float, right: bool) -> Claim:
    return Claim(run, "report", True, confidence, right)


def test_each_run_counts_as_one_however_often_it_was_looked_at() -> None:
    looks = [claim("a", 0.95, True)] * 9 + [claim("b", 0.91, False)]
    [level] = levels_of(looks)
    assert (level.begins, level.runs, level.looks, level.right) == (0.9, 2, 10, 0.5)


def test_levels_begin_at_tenths() -> None:
    looks = [claim("a", 0.49, True), claim("a", 0.5, True), claim("a", 0.9, False)]
    assert [level.begins for level in levels_of(looks)] == [0.0, 0.5, 0.9]


def test_the_halves_are_halves() -> None:
    halves = [half_of(scenario.name) for scenario in scenarios()]
    assert 0.4 < halves.count("report") / len(halves) < 0.6


def test_the_table_names_both_halves() -> None:
    table = reliability_table([claim("a", 0.95, True)])
    assert "| with the probe, report | 90% and more | 1 | 1 | 95% | 100% |" in table
