"""`gpuwatch attach PID`: watch a running process."""

import argparse
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from tui.appearance import Appearance
from tui.cli.appearance_options import add_appearance, appearance_of
from tui.cli.manual import Manual, examples
from tui.cli.output import write_notes
from tui.garbage import leave_out_what_is_there, search_seldom

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui.picture import Picture
    from tui.session.recordable import RecordablePicture
    from tui.switching import Make
    from tui.watchable import Watchable


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "attach",
        help="watch a running process",
        description="Watch a process that trains. Reading only, but for --inject: the run is never "
        "changed.",
        epilog=examples(
            ("gpuwatch attach 48213", "the live screen"),
            ("gpuwatch attach 48213 --once", "one report, then exit"),
            ("gpuwatch attach 48213 --json --duration 60", "JSON lines, for a minute"),
            ("gpuwatch attach 48213 --plain", "lines, until it ends or ctrl-c"),
            ("gpuwatch attach --inject 48213", "with the probe that nobody put in"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("pid", metavar="PID", type=process_id, help="as `gpuwatch ls` shows it")
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
    """Raises GpuwatchError where the process cannot be watched."""
    if not arguments.inject:
        return _watch(arguments)
    from tui.cli.injecting import injected

    with injected(arguments.pid, arguments.yes):
        return _watch(arguments)


def _watch(arguments: argparse.Namespace) -> int:
    from tui.cli.meant import meant

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
    from tui.cli.target import picture_of

    return picture_of(pid, stacks)


def _awaited(found: "Watchable", make: "Callable[[int], RecordablePicture]") -> "Picture":
    """The picture for the first frame."""
    from tui import clock
    from tui.session.awaited import AwaitedPicture
    from tui.snapshot import unseen

    first = unseen(found.pid, found.script, clock.now_ns(), clock.now_unix())
    return AwaitedPicture(first, partial(make, found.pid))


def _without_screen(arguments: argparse.Namespace, picture: "Picture") -> int:
    from tui.cli import watching

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
    from tui.terminal import why_no_screen as why

    return why()


def show_screen(picture: "Picture", appearance: Appearance, other: "Make | None" = None) -> int:
    """Open the screen; `other` makes the picture of another process. With the picker, the only
    place from which the command line reaches textual."""
    from tui.app import run_screen

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
