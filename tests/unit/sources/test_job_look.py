"""Behind which collective all ranks of a job begin to record."""

import pytest

from gpuwatch.tui.errors import NothingToMeasureError
from gpuwatch.tui.sources.job_look import AHEAD_S, begin_behind


def test_no_rank_has_reached_it_when_the_last_one_is_asked() -> None:
    """Rank 1's host is 40 ahead; both issue a hundred a second."""
    first = [{"0": 400, "own0": 7}, {"0": 440, "own1": 9}]
    second = [{"0": 500, "own0": 7}, {"0": 540, "own1": 9}]
    group, number = begin_behind(first, second, 1.0)
    assert group == "0"
    assert number == 540 + 100 * AHEAD_S


def test_the_group_that_issues_most_is_counted() -> None:
    first = [{"0": 3, "shard": 400}, {"0": 3, "shard": 400}]
    second = [{"0": 3, "shard": 420}, {"0": 3, "shard": 421}]
    assert begin_behind(first, second, 0.5) == ("shard", 421 + round(42 * AHEAD_S))
    assert begin_behind(second, second, 0.5) == ("0", 4), "nothing moves: the next one"


def test_ranks_without_a_group_in_common_are_refused() -> None:
    with pytest.raises(NothingToMeasureError, match="no process group in common"):
        begin_behind([{"a": 1}, {"b": 1}], [{"a": 2}, {"b": 2}], 1.0)
