"""What a process id is watched by: its page, its sources, its session."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .. import clock
from ..discovery.pids import Watchable, find_watchable
from ..discovery.targets import own_page, python_of
from ..errors import NothingToMeasureError
from ..messages import Hello
from ..model.snapshot import unseen
from ..recording.header import header_of
from ..recording.tape import Tape
from ..session.collector import Source
from ..session.judge import Annotate
from ..session.live import Connection, LiveProvider
from ..session.session import Session
from ..sources.feed import FeedSource
from ..sources.process import ProcessSource
from ..sources.without_probe import PageSource
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
    return Connection(session, sources, header)


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
    if opened is None:
        from ..sources.without_probe import WithoutProbe

        lacks = session.lacks_stacks
        sources.insert(0, WithoutProbe(pid, python_of(pid), stacks=stacks, lacks_stacks=lacks))
    else:
        feed = FeedSource(opened.hello, pid, session.lacks_stacks, count_flops)
        sources[:0] = [PageSource(opened, pid), feed]
    if opened and opened.hello.rank is not None and (opened.hello.world_size or 1) > 1:
        sources.append((ranks_of or _own_ranks)(pid, opened.hello))
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
