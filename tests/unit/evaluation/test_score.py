"""One track becomes one score."""

import pytest

from evaluation.catalogue import Expected
from evaluation.score import Begun, score
from evaluation.verdict_track import Judgement

LOADER = Expected(("input",), "workers", negative=False)
START = Begun(0, 0, 0)
LEAK = Expected(("memory-growth",), "leak", negative=False)


def look(at_s: float, kind: str, *contributors: str) -> Judgement:
    return Judgement(
        at_s,
        round(10 * at_s),
        kind,
        "workers" if kind == "input" else None,
        confidence=0.9,
        speedup=2.0,
        speedup_is="bound",
        contributors=contributors,
        advice="more workers",
    )


def test_steps_count_from_the_end_of_the_warm_up() -> None:
    looks = [look(1, "warming-up"), *(look(at, "input") for at in range(2, 30))]
    found = score(looks, LOADER, Begun(5, 8, 0))
    assert found is not None
    assert found.first_right_steps == 12
    assert found.first_right_s == 2
    assert found.right
    assert found.sub_right
    assert found.changes == 0
    assert found.steps_settled == 270
    assert found.forecast == 2.0
    attached_late = score(looks, LOADER, Begun(15, 8, 0))
    assert attached_late is not None
    assert attached_late.first_right_steps == 5


def test_what_is_reported_beside_the_verdict_counts_apart() -> None:
    looks = [look(at, "host", "input", "sync") for at in range(1, 30)]
    found = score(looks, LOADER, START)
    assert found is not None
    assert not found.right
    assert found.right_or_second
    assert found.first_right_steps is None
    second = score([look(at, "host", "sync", "input") for at in range(1, 30)], LOADER, START)
    assert second is not None
    assert not second.right_or_second, "the third is no runner-up"


def test_memory_may_grow_before_it_is_reported() -> None:
    looks = [
        *(look(at, "healthy") for at in range(1, 20)),
        *(look(at, "memory-growth") for at in range(20, 40)),
    ]
    found = score(looks, LEAK, START)
    assert found is not None
    assert found.right
    assert found.changes == 0
    other = score(looks, LOADER, START)
    assert other is not None
    assert other.changes == 1


def test_a_cause_that_comes_later_is_judged_from_there_on() -> None:
    looks = [
        *(look(at, "healthy") for at in range(1, 50)),
        *(look(at, "input") for at in range(53, 60)),
    ]
    found = score(looks, LOADER, Begun(0, 8, cause=500))
    assert found is not None
    assert found.right
    assert found.first_right_steps == 30
    assert score(looks[:40], LOADER, Begun(0, 8, cause=500)) is None, "it was not there yet"


def test_a_tool_that_never_spoke_has_no_score() -> None:
    assert score([], LOADER, START) is None


def test_a_verdict_at_the_end_of_the_run_is_not_live() -> None:
    found = score([look(20, "input")], LOADER, START)
    assert found is not None
    assert found.right
    assert not found.live


@pytest.mark.parametrize("kind", ["input", "healthy"])
def test_the_end_is_kept_beside_step_200(kind: str) -> None:
    looks = [*(look(at, "input") for at in range(1, 40)), look(40, kind)]
    found = score(looks, LOADER, START)
    assert found is not None
    assert found.right
    assert found.right_at_end == (kind == "input")
