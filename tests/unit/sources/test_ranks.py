"""What the pages of ranks say, look by look."""

import os
from array import array

import pytest

from gpuwatch.probe.identity import Identity
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import marks, page
from gpuwatch.tui.discovery.state_page import OpenPage, Words
from gpuwatch.tui.model.observations import Missing, RanksSeen
from gpuwatch.tui.sources import ranks
from gpuwatch.tui.sources.collectives import Answer, CollectivesAsker, Trace
from gpuwatch.tui.sources.lacking import LONG_NS, NOT_WHOLE
from gpuwatch.tui.sources.ranks import READ_NS, RanksSource
from gpuwatch.tui.verdict.job.matching import Collective
from tests.unit.sources.own_pages import opened_at
from tests.unit.sources.test_collectives import reply

STEP = (
    *(marks.FETCH_ENTER, marks.FETCH_LEAVE, marks.BACKWARD_ENTER, marks.BACKWARD_LEAVE),
    *(marks.OPTIMIZER_ENTER, marks.OPTIMIZER_LEAVE),
)
ENDPOINT = "ipc:///tmp/ranks-of-a-test"


class Publisher:
    """The state page of a bare loop, in this process."""

    def __init__(self) -> None:
        self._page = StatePage(Identity(ENDPOINT, None).as_json(page.HELLO_BYTES))
        self.steps = 0

    def make(self, steps: int) -> None:
        """So many more."""
        first = self.steps * len(STEP)
        words = [marks.word_of(kind) for kind in STEP] * steps
        times_ns = [10 * (first + at) for at in range(1, len(words) + 1)]
        self._page.put(first, array("q", times_ns), array("q", words))
        self.steps += steps
        self._page.words[page.WORD_MARKS] = first + len(words)
        self._page.words[page.WORD_STEPS] = self.steps


def test_steps_made_while_a_page_is_read_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = Publisher()
    publisher.make(5)
    found = opened_at(ENDPOINT)
    words = OpenPage.words

    def words_before_more(self: OpenPage) -> Words:
        """Its process makes three steps between the look at the words and that at the marks."""
        seen = words(self)
        publisher.make(3)
        return seen

    monkeypatch.setattr(OpenPage, "words", words_before_more)
    monkeypatch.setattr(ranks, "ranks_here", lambda *_: {0: (os.getpid(), found)})
    source = RanksSource(os.getpid(), found.hello)
    source.open()
    counted = 0
    for look in range(4):
        (seen,) = (one for one in source.poll(look * READ_NS) if isinstance(one, RanksSeen))
        counted += seen.ranks[0].counted
    assert publisher.steps == 17
    assert counted == pytest.approx(17, abs=1)  # the last may be open
    source.close()


def one_rank(monkeypatch: pytest.MonkeyPatch) -> tuple[Publisher, OpenPage]:
    """Rank 0 is here, and has made five steps."""
    publisher = Publisher()
    publisher.make(5)
    found = opened_at(ENDPOINT)
    monkeypatch.setattr(ranks, "ranks_here", lambda *_: {0: (os.getpid(), found)})
    return publisher, found


@pytest.mark.parametrize("most", [928, 1])
def test_ranks_of_other_hosts_are_not_left_out_here(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing says how many of the job's ranks are here, and that many could not be held."""
    _publisher, found = one_rank(monkeypatch)
    monkeypatch.setattr(ranks, "local_ranks", lambda *_: 2_048)
    monkeypatch.setattr(ranks, "room_for_pages", lambda _: most)
    source = RanksSource(os.getpid(), found.hello)
    source.open()
    reasons = [one.reason for one in source.poll(0) if isinstance(one, Missing)]
    source.close()
    too_few = "1 of the 2048 ranks here are shown: ulimit -n is too low"
    assert reasons == ([too_few] if most == 1 else [])


class Unanswered(CollectivesAsker):
    """Its questions to rank 0 stay without an answer."""

    since_ns = 0

    def poll(self, now_ns: int) -> None:
        return None

    def unanswered(self, now_ns: int) -> dict[int, tuple[int, str]]:
        return {rank: (self.since_ns, "no room in /tmp") for rank in self._links}


@pytest.mark.parametrize("steps_since", [True, False])
def test_a_rank_that_makes_steps_and_does_not_answer_is_why_there_are_no_collectives(
    steps_since: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is in a long evaluation cannot answer yet."""
    _publisher, found = one_rank(monkeypatch)
    monkeypatch.setattr(ranks, "CollectivesAsker", Unanswered)
    monkeypatch.setattr(Unanswered, "since_ns", 0 if steps_since else READ_NS)
    source = RanksSource(os.getpid(), found.hello)
    source.open()
    lacking = [
        one for look in range(4) for one in source.poll(look * READ_NS) if isinstance(one, Missing)
    ]
    source.close()
    reason = "rank 0 does not answer: no room in /tmp"
    assert [(one.source, one.reason) for one in lacking] == [("collectives", reason)] * steps_since


class Unmatched(CollectivesAsker):
    """Of two ranks that share no process group."""

    def poll(self, now_ns: int) -> dict[int, Answer] | None:
        return {
            rank: Answer(reply(), Trace(), (Collective(str(rank), 1, "nccl:barrier", 8, 100, 1),))
            for rank in self._links
        } or None


def test_that_no_step_is_known_on_every_rank_is_said_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher = Publisher()
    publisher.make(5)
    both = {rank: (os.getpid(), opened_at(ENDPOINT)) for rank in (0, 1)}
    monkeypatch.setattr(ranks, "ranks_here", lambda *_: both)
    monkeypatch.setattr(ranks, "local_ranks", lambda *_: 2)
    monkeypatch.setattr(ranks, "CollectivesAsker", Unmatched)
    source = RanksSource(os.getpid(), both[0][1].hello)
    source.open()
    reasons = []
    for t_ns in (0, READ_NS, LONG_NS, READ_NS + LONG_NS):
        reasons.append([one.reason for one in source.poll(t_ns) if isinstance(one, Missing)])
    source.close()
    assert reasons == [[], [], [], [NOT_WHOLE]]
