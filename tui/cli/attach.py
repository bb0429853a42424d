"""`gpuwatch attach PID`: watch a running process."""

import argparse
import gc
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..discovery.pids import Watchable, find_watchable
from ..errors import NotPermittedError, UsageError
from ..launch.inject import Injection
from ..launch.interpreter import target_python
from ..terminal import Appearance
from .options import Manual, add_appearance, appearance_of, examples
from .output import write_notes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..discovery.pids import Watchable
    from ..model.provider import SnapshotProvider
    from ..screens.switching import Make
    from ..session.live import RecordablePicture

# The process that a pid on the command line means, said where it is another one.


def meant(pid: int) -> Watchable:
    """Its page is let go of: the picture opens it anew. Raises GpuwatchError where it cannot be
    watched."""
    found = find_watchable(pid)
    if found.page is not None:
        found.page.close()
    write_notes([f"gpuwatch: {line}" for line in found.told])
    return found


# Python's search for cycles of garbage, no more often than this program needs it.

NEW_OBJECTS: Final = 10_000
"""Between two searches among them."""
SEARCHES: Final = (5, 4)
"""Of the newer before one of the older: with Python's own ten of ten, garbage that outlives its
first search lies there for minutes."""


def search_seldom() -> None:
    """From now on. For it more garbage is held: 92 MB were resident and not 87 after 25 minutes of
    a run with two frames a second and another view every ten seconds."""
    gc.set_threshold(NEW_OBJECTS, *SEARCHES)


def leave_out_what_is_there() -> None:
    """From now on no search goes through the objects that are there by now: they stay. A last one
    does, so that no garbage is among them: 43 to 54 ms of CPU time in a screen that attaches, which
    are not its first picture's to wait for."""
    gc.collect()
    gc.freeze()


# `gpuwatch attach --inject PID`: asks, puts the probe in, and takes it out on leaving.


@contextmanager
def injected(pid: int, yes: bool) -> Iterator[None]:
    """The probe is in there meanwhile. One that is there already is left there.

    Raises GpuwatchError where it cannot be put in, or the answer is no.
    """
    from .target import has_probe

    if has_probe(pid):
        yield
        return
    python = target_python(pid)
    if not yes:
        _ask(pid)
    injection = Injection(python)
    injection.put_in()
    try:
        yield
    finally:
        if not injection.take_out():
            write_notes(
                [
                    f"gpuwatch: the probe is still in process {pid}: it runs no Python just now",
                    "It leaves by itself when it does, and costs nothing until then.",
                ]
            )


def _ask(pid: int) -> None:
    """Raises UsageError where nobody can be asked, NotPermittedError when the answer is no."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"nobody can be asked whether process {pid} may be changed",
            "--inject puts the probe into it: a few lines on its main thread, once.",
            f"If it may: gpuwatch attach --inject --yes {pid}",
        )
    write_notes(
        [
            f"gpuwatch: put the probe into process {pid}?",
            "A few lines run on its main thread, once; a thread of ours stays until you leave.",
            "[y/N]",
        ]
    )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotPermittedError(
            f"process {pid} was left as it is", "", f"Without the probe: gpuwatch attach {pid}"
        )


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "attach",
        help="watch a running process",
        description="Watch a process that trains. Reading only, but for --inject: the run is never "
        "changed.",
        epilog=examples(
            ("gpuwatch attach 48213", "the live screen"),
            ("gpuwatch attach", "choose a process first"),
            ("gpuwatch attach 48213 --once", "one report, then exit"),
            ("gpuwatch attach 48213 --json --duration 60", "JSON lines, for a minute"),
            ("gpuwatch attach 48213 --plain", "lines, until it ends or ctrl-c"),
            ("gpuwatch attach --inject 48213", "with the probe that nobody put in"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "pid", metavar="PID", nargs="?", type=process_id, help="from `gpuwatch ls`; without: choose"
    )
    face = command.add_mutually_exclusive_group()
    face.add_argument("--plain", action="store_true", help="lines of text instead of a screen")
    face.add_argument("--once", action="store_true", help="wait for a verdict, print one report")
    face.add_argument(
        "--json", action="store_true", help="one JSON object a line, at least one a s"
    )
    command.add_argument(
        "--duration", type=seconds, metavar="S", help="stop after S seconds (without a screen)"
    )
    command.add_argument("--no-stacks", action="store_true", help="do not sample stacks (py-spy)")
    command.add_argument(
        "--inject",
        action="store_true",
        help="put the probe into a process without one, and take it out on leaving (Python 3.14+)",
    )
    command.add_argument("--yes", action="store_true", help="do not ask before --inject")
    add_appearance(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the process cannot be watched, or none was named."""
    if arguments.pid is None:
        arguments.pid = _chosen_for(arguments)
        if arguments.pid is None:
            return 0
    if not arguments.inject:
        return _watch(arguments)

    with injected(arguments.pid, arguments.yes):
        return _watch(arguments)


def choose(appearance: Appearance) -> int | None:
    """Let a person choose a process; None who left."""
    from ..discovery.targets import find_candidates
    from ..screens.picker import pick

    return pick(find_candidates, appearance)


def _chosen_for(arguments: argparse.Namespace) -> int | None:
    """Raises UsageError where nobody can choose."""
    without_screen = arguments.json or arguments.once or arguments.plain or arguments.duration
    why_not = "lines of text were asked for" if without_screen else why_no_screen()
    if why_not is not None:
        raise UsageError("which process?", f"no PID was given, and {why_not}", "See: gpuwatch ls")
    return choose(appearance_of(arguments))


def _watch(arguments: argparse.Namespace) -> int:

    make = partial(_picture_of, stacks=not arguments.no_stacks)
    found = meant(arguments.pid)
    if arguments.json or arguments.once or arguments.plain:
        return _without_screen(arguments, make(found.pid))
    why_not = "--duration was given" if arguments.duration is not None else why_no_screen()
    if why_not is not None:
        write_notes([f"gpuwatch: {why_not}: writing lines of text (--plain)"])
        return _without_screen(arguments, make(found.pid))
    return show_screen(_awaited(found, make), appearance_of(arguments), make)


def _picture_of(pid: int, stacks: bool) -> "RecordablePicture":
    from .target import picture_of

    return picture_of(pid, stacks)


def _awaited(found: "Watchable", make: "Callable[[int], RecordablePicture]") -> "SnapshotProvider":
    """The picture for the first frame."""
    from .. import clock
    from ..model.snapshot import unseen
    from ..session.live import AwaitedPicture

    first = unseen(found.pid, found.script, clock.now_ns(), clock.now_unix())
    return AwaitedPicture(first, partial(make, found.pid))


def _without_screen(arguments: argparse.Namespace, picture: "SnapshotProvider") -> int:
    from . import watching

    search_seldom()
    leave_out_what_is_there()
    if arguments.json:
        watching.watch(picture, watching.JsonFace(), watching.for_duration(arguments.duration))
    elif arguments.once:
        watching.watch(picture, watching.OnceFace(), watching.until_verdict(arguments.duration))
    else:
        watching.watch(picture, watching.PlainFace(), watching.for_duration(arguments.duration))
    return 0


def why_no_screen() -> str | None:
    """Why the screen cannot be shown here; None where it can."""
    from ..terminal import why_no_screen as why

    return why()


def show_screen(
    picture: "SnapshotProvider", appearance: Appearance, other: "Make | None" = None
) -> int:
    """Open the screen; `other` makes the picture of another process. With the picker, the only
    place from which the command line reaches textual."""
    from ..app import run_screen

    search_seldom()
    return run_screen(picture, appearance, other, settled=leave_out_what_is_there)


def process_id(text: str) -> int:
    """A process id. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is no process id; `gpuwatch ls` shows them")
    return int(text)


def seconds(text: str) -> float:
    """A duration, more than 0. Raises ArgumentTypeError for anything else."""
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return given
