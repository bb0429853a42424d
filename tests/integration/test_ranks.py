"""Ranks of a job, found and read by their state pages."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.tui.cli.target import watch_live
from gpuwatch.tui.clock import now_ns
from gpuwatch.tui.discovery.targets import open_target
from gpuwatch.tui.model.observations import RanksSeen
from gpuwatch.tui.model.provider import SnapshotProvider
from gpuwatch.tui.model.snapshot import JobVerdict, Snapshot
from gpuwatch.tui.sources.job_look import open_job_windows
from gpuwatch.tui.sources.ranks import READ_NS, RanksSource
from gpuwatch.tui.sources.stacks import find_py_spy
from gpuwatch.tui.verdict.findings import Finding
from tests.integration.rank_processes import (
    DDP_RANK,
    HUNG_RANK,
    LOCKED_RANK,
    SLOWED_RANK,
    Job,
    free_port,
    launched,
)
from tests.processes.monitored import until

COLLECTIVES_S = 70.0
"""On a busy machine they are read every 30 s, and two readings may be needed."""


class Looks:
    """The source at a rank, with a clock on which every look is due."""

    def __init__(self, source: RanksSource) -> None:
        self._source = source
        self._at_ns = now_ns()

    def look(self) -> RanksSeen:
        observed = self._source.poll(self._at_ns)
        (seen,) = (one for one in observed if isinstance(one, RanksSeen))
        self._at_ns += READ_NS
        return seen


@contextmanager
def looking(pid: int) -> Iterator[Looks]:
    opened = open_target(pid)
    source = RanksSource(pid, opened.hello)
    opened.close()
    source.open()
    yield Looks(source)
    source.close()


def two_ranks(folder: Path, script: str) -> AbstractContextManager[Job]:
    """All of a job that a launcher has started."""
    return launched(folder, local=2, world=2, port=free_port(), script=script)


@pytest.fixture(scope="module")
def late_by_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A job whose rank 1 waits for its data: one for all who only look at it."""
    with two_ranks(tmp_path_factory.mktemp("job"), DDP_RANK) as job:
        yield job


@contextmanager
def watched(pid: int) -> Iterator[SnapshotProvider]:
    """A monitor of it, without py-spy's samples."""
    provider = watch_live(pid, stacks=False)
    provider.start()
    try:
        yield provider
    finally:
        provider.close()


def found(pid: int) -> list[tuple[int, int]]:
    """Rank and pid of all that are found from this one."""
    with looking(pid) as looks:
        return [(one.rank, one.pid) for one in looks.look().ranks]


def test_the_ranks_of_a_launcher_are_found_and_no_others(tmp_path: Path) -> None:
    with (
        launched(tmp_path / "a", local=3, world=3, port=free_port()) as job,
        launched(tmp_path / "b", local=2, world=3, port=free_port()),
    ):
        assert found(job.pids[2]) == list(enumerate(job.pids))


def test_ranks_that_were_started_one_by_one_are_found(tmp_path: Path) -> None:
    port = free_port()
    both: dict[str, Any] = {"LOCAL_WORLD_SIZE": "2"}
    with (
        launched(tmp_path / "a", 1, 2, port, **both) as first,
        launched(tmp_path / "b", 1, 2, port, first_rank=1, **both) as second,
    ):
        pids = [*first.pids, *second.pids]
        assert found(first.pids[0]) == found(second.pids[0]) == list(enumerate(pids))


def test_a_rank_that_a_signal_holds_is_seen_as_that(tmp_path: Path) -> None:
    with (
        launched(tmp_path, local=2, world=2, port=free_port()) as job,
        looking(job.pids[0]) as looks,
    ):
        os.kill(job.pids[1], signal.SIGSTOP)
        assert until(lambda: [one.stopped for one in looks.look().ranks] == [False, True])
        os.kill(job.pids[1], signal.SIGCONT)
        assert until(lambda: not looks.look().ranks[1].stopped)


def test_steps_are_counted_once_and_a_killed_rank_is_seen(tmp_path: Path) -> None:
    with (
        launched(tmp_path / "a", local=2, world=2, port=free_port()) as job,
        looking(job.pids[0]) as looks,
    ):
        every = []

        def all_counted() -> bool:
            """By now: the publisher puts steps on the ring before the page's word counts them."""
            every.append(looks.look().ranks)
            counted = [sum(look[rank].counted for look in every) for rank in (0, 1)]
            return [one.steps for one in every[-1]] == pytest.approx(counted, abs=1)

        def has_made_seen(pid: int, steps: int) -> bool:
            """A rank that runs on meanwhile is looked at before its ring is full."""
            every.append(looks.look().ranks)
            return has_made(pid, steps)

        for steps in (8, 16, 24, 32):
            for pid in job.pids:  # neither waits for the other, and on busy cores one begins late
                until(partial(has_made_seen, pid, steps))
        until(all_counted)
        counted = [sum(look[rank].counted for look in every) for rank in (0, 1)]
        wall_ns = [sum(look[rank].wall_ns for look in every) for rank in (0, 1)]
        assert wall_ns[1] / counted[1] > 2 * wall_ns[0] / counted[0]
        slow = every[-1][1]
        os.kill(job.pids[1], signal.SIGKILL)
        until(lambda: not looks.look().ranks[1].running)
        last = looks.look().ranks
        assert last[0].running
        assert last[1].steps >= slow.steps


def test_the_late_rank_of_a_distributed_run_is_found_by_its_own_time(late_by_data: Job) -> None:
    """Rank 1 waits for its data, rank 0 in its backward for rank 1: their steps are as long."""
    with watched(late_by_data.pids[0]) as provider:
        until(lambda: [1 for one in provider.snapshot().ranks if one.steps > 100] == [1, 1])
        snapshot = provider.snapshot()
    victim, culprit = snapshot.ranks
    assert (victim.is_target, culprit.is_target) == (True, False)
    assert victim.step_ms == pytest.approx(culprit.step_ms, rel=0.2)
    assert culprit.data_share is not None
    assert victim.backward_share is not None
    assert culprit.data_share > 0.5 < victim.backward_share
    assert culprit.backward_share is not None
    assert 1 - culprit.backward_share > 2 * (1 - victim.backward_share)


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_the_collectives_of_a_distributed_run_name_the_late_rank(late_by_data: Job) -> None:
    """Of both ranks' own flight recorders, read in one step, whichever of them is watched."""
    for pid in late_by_data.pids:
        with watched(pid) as provider:
            snapshot = until(partial(_by_collectives, provider), limit_s=COLLECTIVES_S)
        assert snapshot is not None
        assert snapshot.job is not None
        assert snapshot.job.late is not None
        assert (snapshot.job.late.rank.rank, snapshot.job.late.by) == (1, "data")
        assert snapshot.job.late.share.mean > 0.5
        assert snapshot.job.finding.kind == "straggler"


@pytest.mark.slow
def test_all_ranks_are_profiled_over_the_same_steps(late_by_data: Job) -> None:
    """Gloo on CPU: rank 0 waits for rank 1's loader in its collectives."""
    pids = late_by_data.pids
    until(lambda: all(steps_of(pid) > 20 for pid in pids))
    looked = open_job_windows(pids[1], steps=10, most_s=30.0)
    profile = looked.profile
    assert looked.pids == tuple(pids)
    assert (profile.steps, profile.unlike, profile.on_device) == (10, "", False)
    assert profile.latest is not None
    assert profile.latest.rank == 1
    assert profile.latest.late > 0.3
    assert sum(one.a_step for one in profile.collectives) >= 1
    assert {one.kind for one in profile.collectives} == {"all_reduce"}


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_rank_that_becomes_slow_is_dated_within_a_few_steps(tmp_path: Path) -> None:
    """The monitor has read their collectives while both were alike."""
    slow_from = tmp_path / "slow_from"
    with two_ranks(tmp_path, SLOWED_RANK) as job, watched(job.pids[0]) as provider:
        until(lambda: provider.snapshot().job)
        until(partial(has_made, job.pids[1], steps_of(job.pids[1]) + 100))
        slow_from.touch()
        seen = until(partial(_dated, provider), limit_s=COLLECTIVES_S)
        slows_at = int(slow_from.read_text())
    assert seen is not None
    assert seen.late is not None
    assert seen.late.rank.rank == 1
    assert seen.late.lateness is not None
    since = seen.late.lateness.since_step
    assert since is not None
    assert abs(since - slows_at) <= 5
    assert f"since step {since:,}" in seen.finding.headline


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_the_rank_that_never_joins_a_collective_is_named(tmp_path: Path) -> None:
    with two_ranks(tmp_path, HUNG_RANK) as job, watched(job.pids[0]) as provider:
        finding = until(partial(_stalled, provider))
    assert finding is not None
    assert "rank 1 is not in all_reduce" in finding.headline
    assert finding.evidence[0].text == "in it: rank 0; not: rank 1"
    late, waits = (one.text for one in finding.evidence[1:3])
    assert re.search(r"^rank 1: .*<module> \(train.py:\d+\)$", late), late
    assert re.search(r"^rank 0: backward .*<module> \(train.py:\d+\)$", waits), waits


@pytest.mark.slow
@pytest.mark.skipif(find_py_spy() is None, reason="py-spy is not installed")
def test_a_rank_that_holds_its_lock_in_c_is_named_and_where_it_is(tmp_path: Path) -> None:
    with two_ranks(tmp_path, LOCKED_RANK) as job, watched(job.pids[0]) as provider:
        finding = until(partial(_stalled_with_line, provider))
    assert finding is not None
    assert "rank 1 is not in all_reduce" in finding.headline
    assert "its Python lock is held" in finding.headline
    assert finding.evidence[1].source == "py-spy"


def _stalled_with_line(provider: SnapshotProvider) -> Finding | None:
    """Once py-spy has answered, too."""
    finding = _stalled(provider)
    return finding if finding is not None and "train.py:" in finding.headline else None


def _stalled(provider: SnapshotProvider) -> Finding | None:
    """Once it is known which ranks stand where."""
    finding = provider.snapshot().verdict.finding
    return finding if (finding.kind, finding.sub) == ("stalled", "ranks") else None


def has_made(pid: int, steps: int) -> bool:
    """So many, or more."""
    return steps_of(pid) >= steps


def steps_of(pid: int) -> int:
    """That it has made."""
    opened = open_target(pid)
    steps = opened.words().steps
    opened.close()
    return steps


def _dated(provider: SnapshotProvider) -> JobVerdict | None:
    """Once the job's verdict is that a rank is late, and since when: until a new step has ended the
    verdict stays the one from before its collectives were read."""
    job = provider.snapshot().job
    if job is None or job.late is None or job.finding.kind != "straggler":
        return None
    return job if "since" in job.finding.headline else None


def _by_collectives(provider: SnapshotProvider) -> Snapshot | None:
    """Once the collectives have named the late rank, and that is the job's verdict."""
    snapshot = provider.snapshot()
    job = snapshot.job
    if job is None or job.late is None or not job.late.from_collectives:
        return None
    return snapshot if job.finding.kind == "straggler" else None
