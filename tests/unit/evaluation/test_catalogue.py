"""What is right on a machine, by the catalogue."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.catalogue import Scenario, scenarios
from tests.unit.evaluation.examples import ROW


def scenario(**parts: Any) -> Scenario:
    return Scenario(**{**ROW, **parts})


def test_without_a_gpu_something_else_may_be_true() -> None:
    moot = scenario(kind_without_gpu="healthy", also_accept_without_gpu=["host"])
    assert moot.expected(gpu=True).kinds == ("launch", "sync")
    assert not moot.expected(gpu=True).negative
    assert moot.expected(gpu=False).kinds == ("healthy", "host")
    assert moot.expected(gpu=False).negative, "there is nothing to fix there"
    assert scenario().expected(gpu=False).kinds == ("launch", "sync")


def test_what_grows_is_not_slower_so_running_without_it_shows_nothing() -> None:
    assert scenario().costs_time
    assert not scenario(kind="memory-growth").costs_time
    assert not scenario(switch=None).costs_time


def test_both_halves_have_enough_of_both_sorts() -> None:
    for negative in (True, False):
        halves = [each.half for each in scenarios() if each.negative == negative]
        assert set(halves) == {"tune", "report"}
        assert min(halves.count("tune"), halves.count("report")) >= len(halves) // 3


def test_a_step_is_of_the_usual_length_among_others() -> None:
    assert all(1.0 in each.scales for each in scenarios())


def test_names_are_looked_up(tmp_path: Path) -> None:
    rows = [{**ROW, "name": name} for name in ("a", "b", "c")]
    (tmp_path / "catalogue.json").write_text(json.dumps(rows))
    assert [each.name for each in scenarios("c,a", tmp_path)] == ["c", "a"]
    with pytest.raises(SystemExit, match="no such scenario: d"):
        scenarios("a,d", tmp_path)
