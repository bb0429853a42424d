"""Processes of other machines on the command line: `HOST:PID`, and `--via COMMAND`."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import GpuwatchError, UsageError
from ..remote.places import Place, Target, target_of
from .output import write_notes

if TYPE_CHECKING:
    from ..discovery.candidates import Candidate
    from ..model.snapshot import Rank
    from ..remote.frames import Listing
    from ..remote.line import Line
    from ..remote.provider import RemoteProvider
    from ..terminal import Appearance

ANSWER_S = 20.0
"""Longest that another machine is waited for where nobody is asked anything."""
TYPING_S = 180.0
"""And where somebody may be typing a password: sshd itself waits 120 s for one."""


class UnreachableError(GpuwatchError):
    """The other machine cannot be reached."""


def add_via(command: argparse.ArgumentParser) -> None:
    """Add the option that names a command in the place of ssh."""
    command.add_argument(
        "--via",
        metavar="COMMAND",
        help="the process is where this command leads, as 'kubectl exec -i POD --'",
    )


def target(text: str) -> Target:
    """PID or HOST:PID. Raises ArgumentTypeError for anything else."""
    if ":" not in text and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a process id or HOST:PID")
    try:
        return target_of(text, None)
    except UsageError as error:
        raise argparse.ArgumentTypeError(error.what) from None


def with_via(named: Target | None, via: str | None) -> Target:
    """What was named, over there where `--via` says so. Raises UsageError."""
    if via is None:
        return named or Target(None, None)
    if named is not None and named.place is not None:
        raise UsageError(
            "HOST:PID and --via both say where the process is",
            "With --via a process is named by its pid over there alone.",
        )
    return Target(target_of(None, via).place, None if named is None else named.pid)


@contextmanager
def failing_clearly(place: Place) -> Iterator[None]:
    """A link that does not come about is a GpuwatchError."""
    from ..remote.frames import LinkError, clean
    from ..remote.line import LinkLostError

    try:
        yield
    except LinkLostError as error:
        how = "the command alone has to work" if place.via else f"ssh {place.host} has to work"
        raise UnreachableError(
            f"{place.name} cannot be reached", clean(str(error)), f"Try it: {how}"
        ) from None
    except LinkError as error:
        raise UnreachableError(
            f"what runs on {place.name} is no agent that this gpuwatch can speak with",
            clean(str(error)),
            "Have the same version on both sides: gpuwatch --version",
        ) from None


def load_session() -> None:
    """What watching needs, loaded while the other machine is still loading."""
    from ..remote import provider  # noqa: F401


def load_screen() -> None:
    """The same with what a screen needs, and the panels of its first view."""
    from .. import app  # noqa: F401
    from ..screens.tabs import TABS

    TABS[0].panels()
    load_session()


def reach(
    place: Place,
    pid: int | None,
    *,
    asks: bool = True,
    meanwhile: Callable[[], None] = load_session,
) -> "Line":
    """An agent over there, which can be asked. Raises a GpuwatchError that says why there is none.

    `asks`: a person is at the terminal, and ssh may ask for a password."""
    from ..remote.line import begin
    from ..remote.link import version_note

    with failing_clearly(place):
        limit_s = TYPING_S if asks and _has_terminal() else ANSWER_S
        line = begin(place, pid, asks=asks, limit_s=limit_s, meanwhile=meanwhile)
    if asks and (note := version_note(line)):
        write_notes([f"gpuwatch: {note}"])
    return line


def _has_terminal() -> bool:
    """Whether ssh can ask somebody."""
    try:
        with open("/dev/tty", "rb"):
            return True
    except OSError:
        return False


def watch_on(
    line: "Line", pid: int, *, stacks: bool, whole_argv: bool, keep_s: float
) -> "RemoteProvider":
    """Watches a process over there; connected, and not started yet. Raises a GpuwatchError."""
    from functools import partial

    from ..remote.frames import clean
    from ..remote.line import begin
    from ..remote.link import begin_watching, watch_for
    from ..remote.provider import RemoteProvider

    watch = watch_for(pid, stacks=stacks, whole_argv=whole_argv, keep_s=keep_s)
    try:
        with failing_clearly(line.place):
            began = begin_watching(line, watch)
    except BaseException:
        line.close()
        raise
    write_notes([f"gpuwatch: {clean(note)}" for note in began.watching.notes])
    again = partial(begin, line.place, pid, asks=False, limit_s=ANSWER_S)
    provider = RemoteProvider(began, again)
    provider.recording.tape.whole_argv = whole_argv
    provider.connect()
    return provider


def watch_target(
    target: Target, *, stacks: bool, whole_argv: bool, keep_s: float
) -> "RemoteProvider":
    """The same from the beginning."""
    assert target.place is not None
    assert target.pid is not None
    line = reach(target.place, target.pid)
    return watch_on(line, target.pid, stacks=stacks, whole_argv=whole_argv, keep_s=keep_s)


def list_on(line: "Line") -> "list[Candidate]":
    """The processes over there. Raises a GpuwatchError."""
    from ..remote.listing import candidates

    return candidates(listing_on(line))


def listing_on(line: "Line") -> "Listing":
    """The same as the agent sends it. Raises a GpuwatchError."""
    from ..remote.frames import Kind, Listing, decoded, frame

    with failing_clearly(line.place):
        line.send(frame(Kind.LIST))
        return decoded(line.wait_for((Kind.LISTING,), ANSWER_S).body, Listing)


def choose_on(place: Place, appearance: "Appearance") -> "tuple[Line, int] | None":
    """Let a person choose among the processes over there; None who left."""
    from ..screens.picker import pick

    line = reach(place, None, meanwhile=load_screen)
    try:
        list_on(line)  # what fails, fails before the screen
        line.be_quiet()
        pid = pick(lambda: list_on(line), appearance)
    except BaseException:
        line.close()
        raise
    if pid is None:
        line.close()
        return None
    return line, pid


def reached(named: Target, appearance: "Appearance") -> "tuple[Line, int] | None":
    """A link for a screen, and the process; None where a person left without choosing one."""
    assert named.place is not None
    if named.pid is None:
        return choose_on(named.place, appearance)
    return reach(named.place, named.pid, meanwhile=load_screen), named.pid


def on_screen(
    line: "Line", pid: int, *, stacks: bool, whole_argv: bool
) -> "tuple[RemoteProvider, Callable[[Rank], RemoteProvider]]":
    """A process over there for a screen, on which `<` and `>` switch to other ranks of its job."""
    from ..remote.link import KEEP_S

    provider = watch_on(line, pid, stacks=stacks, whole_argv=whole_argv, keep_s=KEEP_S)
    line.be_quiet()
    return provider, _Other(line.place, stacks, whole_argv)


class _Other:
    """Watches another rank of the same place, while a screen is up."""

    def __init__(self, place: Place, stacks: bool, whole_argv: bool) -> None:
        self._place = place
        self._stacks = stacks
        self._whole_argv = whole_argv

    def __call__(self, rank: "Rank") -> "RemoteProvider":
        """Raises a GpuwatchError."""
        from ..remote.link import KEEP_S

        line = reach(self._place, rank.pid, asks=False)
        options = {"stacks": self._stacks, "whole_argv": self._whole_argv}
        return watch_on(line, rank.pid, keep_s=KEEP_S, **options)


def names_host(word: str) -> bool:
    """Whether a word that is no command names a machine: it says so itself, ssh's configuration
    knows it, or the network does."""
    if word.startswith("-") or "/" in word:
        return False
    if "@" in word or word.endswith(":") or _is_configured(word):
        return True
    import socket

    try:
        socket.getaddrinfo(word, None)
    except (OSError, UnicodeError):
        return False
    return True


def _is_configured(word: str) -> bool:
    from pathlib import Path

    try:
        lines = (Path.home() / ".ssh" / "config").read_text(errors="replace").splitlines()
    except (OSError, RuntimeError):
        return False
    words = (line.split() for line in lines)
    return any(few[0].lower() == "host" and word in few[1:] for few in words if few)
