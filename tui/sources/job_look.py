"""A profiler's window over the same steps on all ranks of a job on this host.

The ranks are asked how many collectives each process group has issued, twice; from that comes a
number that none will have reached before all have been asked, and each begins its window behind it.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from threading import Event
from typing import Final, NamedTuple

from .. import clock
from ..discovery.targets import own_page
from ..errors import GpuwatchError, NothingToMeasureError
from ..formats.job_profile_report import JobReport
from ..messages import Hello
from ..model.snapshot import Snapshot
from ..trace.against import against_job
from ..trace.file import file_of
from ..trace.job import JobProfile, RankRecorded, job_profile_of
from ..trace.profile import Window
from ..verdict.job.matching import Collective
from .collectives import RankLink, answer_of
from .deep_look import DeepLookLink, ProfileAnswer
from .launcher import ranks_here

MOST_RANKS: Final = 64
AHEAD_S: Final = 1.5
"""Until all ranks have the question: a probe that nobody watches looks for one once a second."""
ENTRIES_S: Final = 10.0
"""For the flight recorder's entries of these steps: without them collectives have no sizes."""
POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class JobLooked:
    """Windows that were opened and read."""

    pids: tuple[int, ...]
    answers: tuple[ProfileAnswer, ...]
    """In the order of the ranks, as the windows."""
    windows: tuple[Window, ...]
    profile: JobProfile

    def traces(self) -> tuple[bytes, ...]:
        """A file of each rank for Perfetto."""
        return tuple(file_of(one) for one in self.windows)


class RankHere(NamedTuple):
    """A rank of the job on this host."""

    rank: int
    pid: int
    hello: Hello


class RankLook:
    """One rank of them, with its link, which `stack` closes."""

    def __init__(self, here: RankHere, stack: ExitStack) -> None:
        self.rank, self.pid, self.hello = here
        self.link = stack.enter_context(DeepLookLink(here.hello, here.pid))


def open_job_windows(pid: int, steps: int, most_s: float, stop: Event | None = None) -> JobLooked:
    """Ask all ranks, wait and read. Raises a GpuwatchError where one of them cannot be profiled, or
    is alone."""
    found = ranks_of_job(pid)
    with ExitStack() as stack:
        ranks = [RankLook(one, stack) for one in found]
        with ThreadPoolExecutor(len(ranks)) as pool:
            first, first_ns = list(pool.map(_issued, ranks)), clock.now_ns()
            second, second_ns = list(pool.map(_issued, ranks)), clock.now_ns()
            group, number = begin_behind(first, second, (second_ns - first_ns) / 1e9)

            looked = _all_looked(pool, ranks, steps, most_s, (group, number), stop)
            on_device = all(one.answer.on_device for one in looked)
            entries = list(pool.map(_entries, ranks)) if on_device else [()] * len(ranks)
    recorded = [
        RankRecorded(rank.rank, one.window.times, one.issued, on_device, has)
        for rank, one, has in zip(ranks, looked, entries, strict=True)
    ]
    try:
        profile = job_profile_of(recorded)
    except ValueError as error:
        raise NothingToMeasureError("the windows show nothing", str(error)) from None
    return JobLooked(
        tuple(one.pid for one in ranks),
        tuple(one.answer for one in looked),
        tuple(one.window for one in looked),
        profile,
    )


@dataclass(frozen=True, slots=True)
class _Looked:
    answer: ProfileAnswer
    window: Window
    issued: tuple[Mapping[str, int], ...]


def _all_looked(
    pool: ThreadPoolExecutor,
    ranks: Sequence[RankLook],
    steps: int,
    most_s: float,
    behind: tuple[str, int],
    stop: Event | None,
) -> list[_Looked]:
    """One that cannot be recorded makes all others vain: nobody waits for them. Raises what that
    one says."""
    vain = stop or Event()
    errors: list[GpuwatchError] = []

    def look(one: RankLook) -> _Looked | None:
        try:
            answer, window = one.link.profile(steps, most_s, False, vain, behind)
        except GpuwatchError as error:
            errors.append(error)
            vain.set()
            return None
        issued = answer.times.issued if answer.times is not None else []
        return _Looked(answer, window, tuple(issued))

    found = list(pool.map(look, ranks))
    if errors:
        raise errors[0]
    return [one for one in found if one is not None]


def ranks_of_job(pid: int) -> list[RankHere]:
    """All ranks here, in their order; none is asked yet. Raises NothingToMeasureError where there
    is but one."""
    page = own_page(pid)
    if page is None:
        raise NothingToMeasureError(f"process {pid} has ended")
    hello = page.hello
    page.close()
    found: list[RankHere] = []
    for rank, (rank_pid, opened) in sorted(ranks_here(pid, hello, MOST_RANKS).items()):
        found.append(RankHere(rank, rank_pid, opened.hello))
        opened.close()
    if len(found) < 2:
        raise NothingToMeasureError(
            f"process {pid} is no rank of a job with others here",
            "One rank's recording does not tell waiting from transfer.",
            f"Profile it alone: gpuwatch profile {pid}",
        )
    return found


def _issued(one: RankLook) -> Mapping[str, int]:
    return one.link.issued()


def begin_behind(
    first: Sequence[Mapping[str, int]], second: Sequence[Mapping[str, int]], passed_s: float
) -> tuple[str, int]:
    """The process group of all ranks that issues most, and a number that none has reached
    `AHEAD_S` later. Raises NothingToMeasureError where they have none in common."""
    groups = set(second[0]).intersection(*second[1:])
    if not groups:
        raise NothingToMeasureError(
            "the ranks here have no process group in common",
            "Nothing shows that their steps are the same.",
        )

    def pace(group: str) -> float:
        """The fastest rank's, a second."""
        return max(
            (now[group] - before.get(group, now[group])) / max(1e-3, passed_s)
            for before, now in zip(first, second, strict=True)
        )

    group = max(sorted(groups), key=pace)
    newest = max(one[group] for one in second)
    return group, newest + max(1, ceil(pace(group) * AHEAD_S))


def _entries(one: RankLook) -> tuple[Collective, ...]:
    """What the flight recorder has by now; nothing where it is off or does not answer."""
    import zmq

    link, context = RankLink(one.hello, one.pid, one.hello.uid), zmq.Context()
    try:
        link.ask(context, clock.now_ns(), entries=True)
        waiting, until_ns = Event(), clock.now_ns() + round(ENTRIES_S * 1e9)
        while clock.now_ns() < until_ns:
            for reply in link.answers():
                if reply.entries:
                    return answer_of(reply).collectives
            waiting.wait(POLL_S)
        return ()
    except GpuwatchError:
        return ()
    finally:
        link.close()
        context.term()


def job_report_of(before: Snapshot, looked: JobLooked) -> JobReport:
    """`before`: the run as it was, with its verdict."""
    seen = before.job
    finding = seen.finding if seen is not None else before.verdict.finding
    late = seen.late.rank.rank if seen is not None and seen.late is not None else None
    return JobReport(
        script=before.script,
        world_size=max(before.world_size, len(looked.profile.ranks)),
        pids=looked.pids,
        profile=looked.profile,
        verdict=seen,
        finding=finding,
        comparison=against_job(finding.kind, late, looked.profile),
        pause_ns=max(answer.pause_ns for answer in looked.answers),
        torn_down=all(answer.torn_down for answer in looked.answers),
    )
