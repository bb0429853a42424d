"""A process of another machine on the screen: where it is, how far, and that its link is lost."""

from dataclasses import replace
from functools import partial

import pytest

from gpuwatch.tui.formats.report import link_words
from gpuwatch.tui.model.link import LinkStatus
from gpuwatch.tui.model.snapshot import Rank, Snapshot
from gpuwatch.tui.widgets.gpu.ranks import outliers
from gpuwatch.tui.wording.gpu import trouble_words
from tests.tui import rank_states
from tests.tui.fake_run import START, S, snapshot_at
from tests.tui.golden_text import picture_of

LINK = LinkStatus("node7", None, "", 152.0, 3.2, 76.0, 1_240.0, 0)
LOST = replace(LINK, lost_s=12.0, why="nothing has come for 6 s")
SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]


def over(link: LinkStatus, snapshot: Snapshot) -> Snapshot:
    """The fake run, over this link."""
    return replace(snapshot, status=replace(snapshot.status, link=link))


@pytest.mark.parametrize("size", SIZES)
def test_the_header_names_the_machine_where_there_is_room(size: tuple[int, int]) -> None:
    text = picture_of(size, partial(over, LINK))
    assert "link lost" not in text
    if size[0] >= 80:
        assert "on node7" in text
    if size[0] >= 200:
        assert "152 ms away" in text


@pytest.mark.parametrize("size", SIZES)
def test_a_lost_link_is_reported_in_the_place_of_freshness(size: tuple[int, int]) -> None:
    assert "○ link lost 12 s" in picture_of(size, partial(over, LOST))


def test_the_report_shows_how_far_it_is_and_what_its_clock_shows() -> None:
    assert link_words(LINK) == [
        "on node7",
        "round trip 152 ms",
        "its clock is 3.20 ms ahead (± 76.0 ms)",
        "1.2 kB/s",
    ]
    assert "link lost 12 s ago: nothing has come for 6 s" in link_words(LOST)
    assert "1,240 rows left out" in link_words(replace(LINK, left_out=1_240))[-1]


def a_job(count: int) -> tuple[Rank, ...]:
    """Ranks of which the target is 0, one is gone, and one spends twice as long on its own."""
    first = rank_states.eight_ranks(snapshot_at(START + 400 * S)).ranks[0]
    ranks = [
        replace(
            first,
            rank=number,
            is_target=number == 0,
            step_ms=100.0,
            backward_share=0.2 if number == count - 5 else 0.6,
            state="ended" if number == count - 2 else "live",
        )
        for number in range(count)
    ]
    return tuple(ranks)


def test_of_a_large_job_the_outliers_are_shown() -> None:
    ranks = a_job(1_024)
    shown = outliers(ranks, {700}, 4)
    assert [one.rank for one in shown] == [0, 700, 1_019, 1_022]


def test_a_host_without_a_link_is_one_trouble_and_not_eight() -> None:
    ranks = tuple(
        replace(one, host="node7", state="no link") if one.rank >= 4 else one
        for one in a_job(12)[:8]
    )
    assert trouble_words(ranks, 0) == ["no link to node7 (4 ranks)"]
