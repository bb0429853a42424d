"""`gpuwatch record PID -o FILE`: write down everything that is seen of a process."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .attach import seconds
from .options import Manual, add_whole_argv, examples
from .output import write_notes
from .remote import add_via, target, with_via

if TYPE_CHECKING:
    from ..model.snapshot import Snapshot
    from ..session.live import LiveProvider


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "record",
        help="record a process to a file",
        description="Record everything that is measured until the process ends or ctrl-c. "
        "`gpuwatch replay` plays it. About 100 KB per minute.",
        epilog=examples(
            ("gpuwatch record 48213 -o run.gpuwatch", "until it ends or ctrl-c"),
            ("gpuwatch record 48213 -o run.gpuwatch --duration 600", "for ten minutes"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "pid", metavar="[HOST:]PID", type=target, help="process id; see `gpuwatch ls`"
    )
    add_via(command)
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="file to write; an existing recording is replaced",
    )
    command.add_argument("--duration", type=seconds, metavar="S", help="stop after S seconds")
    command.add_argument("--no-stacks", action="store_true", help="no stack samples (py-spy)")
    add_whole_argv(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the process cannot be watched or the file not be written."""
    from ..errors import GpuwatchError, UsageError
    from ..remote.link import KEEP_S
    from .attach import resolve
    from .remote import watch_target
    from .target import watch_live
    from .watching import for_duration, watch

    path: Path = arguments.output
    _check_free(path)
    named = with_via(arguments.pid, arguments.via)
    options = {"stacks": not arguments.no_stacks, "whole_argv": arguments.argv}
    provider: LiveProvider
    if named.place is not None and named.pid is not None:
        provider = watch_target(named, keep_s=KEEP_S, **options)
    elif named.pid is not None:
        provider = watch_live(resolve(named.pid).pid, **options)
    else:
        raise UsageError("which process?", "no PID was given", "See: gpuwatch ls HOST")
    over = for_duration(arguments.duration)
    provider.recording.begin(path, overwrite=True)
    until = "until it ends or ctrl-c"
    if arguments.duration is not None:
        until = f"for {arguments.duration:g} s"
    write_notes([f"gpuwatch: recording {named.pid} to {path}, {until}"])
    try:
        watch(provider, Silence(), lambda now: over(now) or provider.recording.fault is not None)
    except KeyboardInterrupt:
        pass  # that is how a recording is ended
    if provider.recording.fault is not None:
        raise GpuwatchError(
            f"{path} cannot be written",
            provider.recording.fault,
            "What was written so far can be replayed. Choose another file with -o",
        )
    write_notes(
        [f"gpuwatch: recorded {path.stat().st_size / 1000:,.0f} KB: gpuwatch replay {path}"]
    )
    return 0


def _check_free(path: Path) -> None:
    """Raises UsageError where there is no such folder, or something else than a recording: it is
    not replaced."""
    from ..errors import UsageError
    from ..recording.format import MAGIC

    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path.absolute().parent} is not a directory")
    if path.is_dir():
        raise UsageError(f"{path} is a directory", "", "Name a file with -o")
    if not path.is_file():
        return  # there is nothing, or nothing to lose
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"{path} cannot be written", str(error.strerror)) from None
    if start not in (b"", MAGIC):
        raise UsageError(
            f"{path} exists and is not a recording",
            "It would be overwritten.",
            "Choose another file with -o",
        )


class Silence:
    """Shows nothing: the recording is the result."""

    def show(self, snapshot: "Snapshot") -> None:
        """Nothing to show."""

    def last(self, snapshot: "Snapshot") -> None:
        """Nothing to show."""
