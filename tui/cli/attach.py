"""`gpuwatch attach PID`: watch a running process."""

import argparse
import math
from typing import TYPE_CHECKING, Any

from tui.cli.output import write_notes

if TYPE_CHECKING:
    from tui.picture import Picture


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "attach",
        help="watch a running process",
        description="Watch a process that trains. Reading only: the run is never changed.",
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
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the process cannot be watched."""
    from tui.cli.target import picture_of

    picture = picture_of(arguments.pid, stacks=not arguments.no_stacks)
    if arguments.json or arguments.once or arguments.plain:
        return _without_screen(arguments, picture)
    why_not = "--duration was given" if arguments.duration is not None else why_no_screen()
    if why_not is not None:
        write_notes([f"gpuwatch: {why_not}: writing lines of text (--plain)"])
        return _without_screen(arguments, picture)
    return show_screen(picture)


def _without_screen(arguments: argparse.Namespace, picture: "Picture") -> int:
    from tui.cli import watching

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


def show_screen(picture: "Picture") -> int:
    """Open the screen. The only place from which the command line reaches textual."""
    from tui.app import run_screen

    return run_screen(picture)


def process_id(text: str) -> int:
    """A process id. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
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
