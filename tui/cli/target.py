"""A process id becomes a picture: its page, its sources, its session."""

from functools import partial

from probe.wire.messages import Hello
from tui import clock
from tui.collect import Collector
from tui.recording.format import Header
from tui.recording.tape import Tape
from tui.session import Session
from tui.session.live import LivePicture
from tui.session.recordable import RecordablePicture
from tui.sources.feed import FeedSource
from tui.sources.page import PageSource
from tui.sources.process import ProcessSource
from tui.sources.source import Source
from tui.state_page import OpenPage, pages_of
from tui.targets import is_own, open_target, script_of
from tui.verdict.engine import Engine


def picture_of(pid: int, stacks: bool) -> RecordablePicture:
    """The picture of a process, not started yet.

    Raises a GpuwatchError that says why where it cannot be watched.
    """
    opened = open_target(pid)
    tape = Tape()
    script, started_ns = script_of(opened.hello.argv), clock.now_ns()
    session = Session(pid, script, started_ns, Engine(), tape=tape)
    live = LivePicture(session, Collector(_sources(pid, opened, stacks), session))
    about = partial(_about, opened.hello, script, started_ns, clock.now_unix())
    return RecordablePicture(live, tape, about)


def _about(
    hello: Hello, script: str, started_ns: int, started_unix: float, begins_ns: int | None
) -> Header:
    """The header of a recording of this process that begins there."""
    from tui.cli.versions import DISTRIBUTION, version_of

    return Header(
        gpuwatch=version_of(DISTRIBUTION),
        probe=hello.probe,
        torch=hello.torch,
        host=hello.host,
        pid=hello.pid,
        script=script,
        started_ns=started_ns,
        started_unix=started_unix,
        begins_ns=max(started_ns, begins_ns or 0),
    )


def _sources(pid: int, opened: OpenPage, stacks: bool) -> list[Source]:
    """In the order in which they are asked: what says most about the run first."""
    from tui.sources.nvml import NvmlSource

    sources: list[Source] = [
        PageSource(opened),
        FeedSource(opened.hello),
        ProcessSource(pid),
        NvmlSource(pid),
    ]
    if stacks:
        from tui.sources.stacks import StacksSource

        sources.append(StacksSource(pid))
    return sources


def has_probe(pid: int) -> bool:
    """Whether the process shows its state page by now."""
    try:
        pages = pages_of(pid)
    except OSError:
        return False
    found = any(is_own(opened.hello, pid) for opened in pages)
    for opened in pages:
        opened.close()
    return found
