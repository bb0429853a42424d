"""What a process id is watched by: its page, its sources, its session."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from .. import clock
from ..discovery.pids import Watchable, find_watchable, watched_now
from ..discovery.targets import own_page, python_of
from ..errors import NothingToMeasureError
from ..messages import Hello
from ..model.observations import AnyObservation
from ..model.snapshot import unseen
from ..recording.header import header_of
from ..recording.tape import Tape
from ..session.collector import Source
from ..session.judge import Annotate
from ..session.live import Connection, LiveProvider
from ..session.session import Session
from ..sources.feed import FeedSource
from ..sources.launcher import FIND_NS
from ..sources.process import ProcessSource
from ..sources.without_probe import SEARCH_NS, PageSource
from ..verdict.engine import Engine

if TYPE_CHECKING:
    from ..sources.ranks import WholeJob

RanksOf = Callable[[int, Hello], Source]
"""Makes the source of the ranks of a process's job."""


def watch_live(
    pid: int,
    stacks: bool,
    annotate: Annotate | None = None,
    whole_argv: bool = False,
    ranks_of: RanksOf | None = None,
    count_flops: bool = False,
) -> LiveProvider:
    """Watches a process; connected, and not started yet. `annotate` adds notes to its verdicts,
    `whole_argv` leaves the secrets on its command line, `ranks_of` stands in for a reader of its
    job's ranks of its own, `count_flops` has the FLOPs of one step counted.

    Raises a GpuwatchError that says why where it cannot be watched.
    """
    connecting = partial(
        connect, pid, stacks, annotate=annotate, ranks_of=ranks_of, count_flops=count_flops
    )
    first = unseen(pid, "", clock.now_ns(), clock.now_unix())
    provider = LiveProvider(first, connecting)
    provider.recording.tape.whole_argv = whole_argv
    return provider.connect()


def connect(
    pid: int,
    stacks: bool,
    tape: Tape,
    annotate: Annotate | None = None,
    ranks_of: RanksOf | None = None,
    count_flops: bool = False,
) -> Connection:
    """The session of a process and all that fills it. Raises as `watch_live` does."""
    found = find_watchable(pid)
    started_ns = clock.now_ns()
    session = Session(found.pid, found.script, started_ns, Engine(), tape=tape, annotate=annotate)
    hello = found.page.hello if found.page else None
    header = partial(header_of, found, hello, started_ns, clock.now_unix())
    sources = _sources(found, stacks, session, ranks_of, count_flops)
    meaning = Meaning(pid, found.pid)
    return Connection(session, [*sources, meaning], header, lambda: meaning.is_another)


def connect_ranks(pid: int, tape: Tape, whole: "WholeJob") -> Connection:
    """The same with the ranks of its host alone. Raises a GpuwatchError where it is no rank."""
    from ..sources.ranks import RanksSource

    found = find_watchable(pid)
    hello = found.page.hello if found.page else None
    if found.page is not None:
        found.page.close()
    if hello is None or hello.rank is None:
        raise NothingToMeasureError(
            f"process {pid} is no rank of a job, or has no probe", "", "See: gpuwatch ls"
        )
    started_ns = clock.now_ns()
    session = Session(found.pid, found.script, started_ns, Engine(), tape=tape)
    header = partial(header_of, found, hello, started_ns, clock.now_unix())
    return Connection(session, [RanksSource(found.pid, hello, whole=whole)], header)


def _sources(
    found: Watchable,
    stacks: bool,
    session: Session,
    ranks_of: RanksOf | None,
    count_flops: bool,
) -> list[Source]:
    """In the order in which they are asked: what says most about the run first."""
    from ..sources.nvml import NvmlSource

    pid, opened = found.pid, found.page
    sources: list[Source] = [ProcessSource(pid), NvmlSource(pid)]
    ranks = partial(ranks_of or _own_ranks, pid)
    if opened is None:
        from ..sources.without_probe import WithoutProbe

        lacks = session.lacks_stacks
        alone = WithoutProbe(pid, python_of(pid), stacks=stacks, lacks_stacks=lacks)
        sources.insert(0, alone)
        sources.append(LateRanks(lambda: alone.hello, ranks))
    else:
        feed = FeedSource(opened.hello, pid, session.lacks_stacks, count_flops)
        page = PageSource(opened, pid)
        sources[:0] = [page, feed]
        several = _is_of_several(opened.hello)
        sources.append(ranks(opened.hello) if several else LateRanks(lambda: page.hello, ranks))
    if stacks:
        from ..sources.stacks import StacksSource

        sources.append(
            StacksSource(
                pid,
                alone=opened is None,
                nearly_stalled=session.nearly_stalled,
                trains=session.training_thread,
                warm_since_ns=session.warm_since_ns,
            )
        )
    return sources


def _is_of_several(hello: Hello) -> bool:
    return hello.rank is not None and (hello.world_size or 1) > 1


class LateRanks:
    """Waits until a process says that it is one of several ranks; then it is their source."""

    name: Final = "ranks"

    def __init__(
        self, hello: Callable[[], Hello | None], ranks_of: Callable[[Hello], Source]
    ) -> None:
        """`hello`: as it is now; None while there is no probe."""
        self._hello = hello
        self._ranks_of = ranks_of
        self._ranks: Source | None = None

    @property
    def interval_ns(self) -> int:
        """The ranks' own pace, once there are any."""
        return SEARCH_NS if self._ranks is None else self._ranks.interval_ns

    def open(self) -> None:
        """Nothing is held before."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """What is seen of the ranks."""
        if self._ranks is None:
            hello = self._hello()
            if hello is None or not _is_of_several(hello):
                return []
            found = self._ranks_of(hello)
            found.open()
            self._ranks = found
        return self._ranks.poll(now_ns)

    def close(self) -> None:
        """Let go of them."""
        if self._ranks is not None:
            self._ranks.close()


class Meaning:
    """Looks now and then whether a pid means another process than the one that is watched for it,
    as long as that one does nothing."""

    name: Final = "probe"
    interval_ns = FIND_NS

    def __init__(self, pid: int, watched: int) -> None:
        self._pid = pid
        self._watched = watched
        self.is_another = False

    def open(self) -> None:
        """Nothing is held."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """Nothing is observed."""
        self.is_another = watched_now(self._pid, self._watched) != self._watched
        return []

    def close(self) -> None:
        """Nothing is held."""


def _own_ranks(pid: int, hello: Hello) -> Source:
    from ..sources.ranks import RanksSource  # what a process alone never needs

    return RanksSource(pid, hello)


def has_probe(pid: int) -> bool:
    """Whether the process shows its state page by now."""
    opened = own_page(pid)
    if opened is None:
        return False
    opened.close()
    return True
