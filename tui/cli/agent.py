"""`gpuwatch agent`: the far side of `gpuwatch attach HOST:PID`, which starts it there."""

import argparse
import platform
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import DISTRIBUTION, UsageError, version_of
from .options import Manual, examples

if TYPE_CHECKING:
    from ..recording.tape import Tape
    from ..remote.agent import Watched
    from ..remote.frames import LinkHello, Listing, Watch
    from ..remote.node import NodeReports
    from ..session.live import Connection


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "agent",
        help="the far side of attach HOST:PID, which starts it",
        description="Collects beside a run and hands on what it sees over standard input and "
        "output. `gpuwatch attach HOST:PID` starts it on that host, and it ends with the link.",
        epilog=examples(("gpuwatch agent", "waits for frames of another gpuwatch")),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Raises UsageError where a person has typed it."""
    from ..remote.agent import Agent, descriptors

    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "the agent speaks with another gpuwatch, not with a person",
            "It is started by: gpuwatch attach HOST:PID",
        )
    into, out = descriptors()
    Agent(_find, _listing, _hello(), _prepare).serve(into, out)
    return 0


def _hello() -> "LinkHello":
    from ..remote import frames

    return frames.LinkHello(
        protocol=frames.PROTOCOL,
        oldest=frames.OLDEST,
        coding=frames.CODING,
        gpuwatch=version_of(DISTRIBUTION),
        python=f"{platform.python_version()} at {sys.executable}",
        host=socket.gethostname(),
    )


def _prepare() -> None:
    from ..sources import nvml, stacks  # noqa: F401
    from . import target  # noqa: F401


def _find(watch: "Watch", tape: "Tape", whole: "NodeReports | None") -> "Watched":
    from .. import clock
    from ..discovery.pids import find_watchable
    from ..errors import NoProcessError, NothingToMeasureError
    from ..recording.header import header_of
    from ..remote.agent import Watched
    from .main import with_candidates

    try:
        found = find_watchable(watch.pid)
    except NoProcessError as error:
        raise with_candidates(error) from None
    hello = found.page.hello if found.page else None
    if found.page is not None:
        found.page.close()
    if watch.ranks_alone and (hello is None or hello.rank is None):
        raise NothingToMeasureError(
            f"process {watch.pid} is no rank of a job, or has no probe", "", "See: gpuwatch ls"
        )
    header = header_of(found, hello, clock.now_ns(), clock.now_unix())
    connect = partial(_connect, watch, found.pid, tape, whole)
    return Watched(found.pid, header, found.notes, connect)


def _connect(watch: "Watch", pid: int, tape: "Tape", whole: "NodeReports | None") -> "Connection":
    from ..sources.ranks import RanksSource
    from .target import connect, connect_ranks

    if whole is None:
        return connect(pid, watch.stacks, tape)
    if watch.ranks_alone:
        return connect_ranks(pid, tape, whole)
    return connect(pid, watch.stacks, tape, ranks_of=partial(RanksSource, whole=whole))


def _listing() -> "Listing":
    from ..clock import now_unix
    from ..discovery.candidates import find_candidates
    from ..remote.frames import Listing
    from ..remote.listing import listed

    return Listing(processes=tuple(map(listed, find_candidates())), now_unix=now_unix())
