"""A process id becomes a picture: its page, its sources, its session."""

from tui import clock
from tui.collect import Collector
from tui.session import Session
from tui.session.live import LivePicture
from tui.sources.feed import FeedSource
from tui.sources.page import PageSource
from tui.sources.process import ProcessSource
from tui.sources.source import Source
from tui.state_page import OpenPage, pages_of
from tui.targets import is_own, open_target, script_of
from tui.verdict.engine import Engine


def picture_of(pid: int, stacks: bool) -> LivePicture:
    """The picture of a process, not started yet.

    Raises a GpuwatchError that says why where it cannot be watched.
    """
    opened = open_target(pid)
    session = Session(pid, script_of(opened.hello.argv), clock.now_ns(), Engine())
    return LivePicture(session, Collector(_sources(pid, opened, stacks), session))


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
