"""Another rank of a job is shown: links to the other hosts go on, their reports are kept."""

from typing import Any

from gpuwatch.tui.model.link import LinkStatus
from gpuwatch.tui.model.observations import RanksSeen
from gpuwatch.tui.recording.format import Header
from gpuwatch.tui.remote.far_clock import FarClock
from gpuwatch.tui.remote.frames import Watching
from gpuwatch.tui.remote.job import JobSource
from gpuwatch.tui.remote.line import Line
from gpuwatch.tui.remote.link import Began, Link, watch_for
from gpuwatch.tui.remote.node import NodeReport
from gpuwatch.tui.remote.places import Place
from gpuwatch.tui.remote.provider import RemoteProvider
from tests.unit.remote.jobs import report
from tests.unit.session.making import S


class FakeLink:
    """A link to a host whose reports are given."""

    clock_ahead_ns = 0

    def __init__(self, host: str) -> None:
        self.place_name = host
        self.reports: list[NodeReport] = []
        self.started = self.closed = 0

    def start(self) -> None:
        self.started += 1

    def close(self) -> None:
        self.closed += 1

    def take(self) -> list[Any]:
        return []

    def take_reports(self) -> list[NodeReport]:
        taken, self.reports = self.reports, []
        return taken

    def status(self) -> LinkStatus:
        return LinkStatus(self.place_name, None, "", None, None, None, None, 0)


class FakeClock:
    """Stands still."""

    def now_ns(self) -> int:
        return 20 * S

    def now_unix(self) -> float:
        return 1.8e9

    def own_cpu_ns(self) -> int:
        return 0


def a_job(hosts: int = 3) -> tuple[JobSource, list[FakeLink]]:
    """Of two ranks a host, each reported once; the first host's rank 0 is shown."""
    links: list[Any] = [FakeLink(f"node{host}") for host in range(hosts)]
    source = JobSource(links[0], links[1:], FakeClock())
    source.open()
    for host, link in enumerate(links):
        link.reports.append(report(1, range(2 * host, 2 * host + 2), 2 * hosts))
    source.poll(0)
    return source, links


def test_links_that_were_handed_over_outlive_the_one_that_had_them() -> None:
    source, links = a_job()
    handed, _ = source.hand_over(but={"node0", "node1"})
    assert [link.place_name for link in handed] == ["node2"]
    source.close()
    source.close()
    assert [link.closed for link in links] == [2, 2, 0]


def test_the_next_knows_all_ranks_before_a_report_and_counts_no_step_again() -> None:
    source, links = a_job()
    handed, known = source.hand_over(but={"node0", "node1"})
    assert sorted(known) == ["node0", "node1", "node2"]
    first: Any = FakeLink("node1")
    aside: Any = FakeLink("node0")
    after = JobSource(first, [*handed, aside], FakeClock(), known)
    (seen,) = (one for one in after.poll(0) if isinstance(one, RanksSeen))
    assert [(one.rank, one.host) for one in seen.ranks] == [
        (0, "node0"),
        (1, "node0"),
        (2, ""),
        (3, ""),
        (4, "node2"),
        (5, "node2"),
    ]
    links[2].reports.append(report(2, range(4, 6), 6))
    first.reports.append(report(2, range(2, 4), 6))
    (seen,) = (one for one in after.poll(0) if isinstance(one, RanksSeen))
    assert [one.counted for one in seen.ranks] == [0, 0, 10, 10, 10, 10]
    after.close()
    assert [link.closed for link in links] == [0, 0, 1]
    assert (first.closed, aside.closed) == (1, 1)


def test_a_host_that_cannot_be_reached_aside_keeps_the_link_that_tries_on() -> None:
    source, _ = a_job(2)
    handed, _ = source.hand_over(but={"node1"})
    assert [link.place_name for link in handed] == ["node0"]


class FakeLine:
    """A line to an agent that says nothing."""

    bytes_in = 0

    def __init__(self, host: str) -> None:
        self.place = Place(host)
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_provider_that_was_never_read_leaves_its_agents() -> None:
    """Else they would collect on for a minute: they take it for a lost link."""
    header = Header(
        gpuwatch="0",
        probe="0",
        torch=None,
        host="node1",
        pid=7,
        script="train.py",
        started_ns=S,
        started_unix=1.8e9,
        begins_ns=S,
    )
    watch = watch_for(7, stacks=False, whole_argv=False, keep_s=60.0)
    watching = Watching(pid=7, header=header, token="", now_ns=S)
    lines: list[Any] = [FakeLine("node1"), FakeLine("node2")]
    first, other = (Began(line, watch, watching) for line in lines)
    provider = RemoteProvider(first, never, [Link(other, never, FarClock())]).connect()
    provider.start()
    provider.close()
    assert [line.closed for line in lines] == [1, 1]


def never() -> Line:
    """Nothing is lost here."""
    raise AssertionError
