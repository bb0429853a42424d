"""`gpuwatch record PID -o FILE`: write down everything that is seen of a process."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .attach import process_id, seconds
from .options import Manual, examples
from .output import write_notes

if TYPE_CHECKING:
    from ..model.snapshot import Snapshot


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "record",
        help="write down everything that is seen of a process",
        description="Record a process until it ends, or until ctrl-c. `gpuwatch replay` plays it. "
        "About 100 KB a minute.",
        epilog=examples(
            ("gpuwatch record 48213 -o run.gpuwatch", "until it ends, or ctrl-c"),
            ("gpuwatch record 48213 -o run.gpuwatch --duration 600", "ten minutes"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("pid", metavar="PID", type=process_id, help="as `gpuwatch ls` shows it")
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="an older recording of that name is replaced",
    )
    command.add_argument("--duration", type=seconds, metavar="S", help="stop after S seconds")
    command.add_argument("--no-stacks", action="store_true", help="do not sample stacks (py-spy)")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the process cannot be watched or the file not be written."""
    from ..errors import GpuwatchError
    from .attach import meant
    from .target import picture_of
    from .watching import for_duration, watch

    path: Path = arguments.output
    _check_free(path)
    pid = meant(arguments.pid).pid
    picture = picture_of(pid, stacks=not arguments.no_stacks)
    over = for_duration(arguments.duration)
    picture.record_to(path, overwrite=True)
    write_notes([f"gpuwatch: recording {pid} to {path}, until it ends or ctrl-c"])
    try:
        watch(picture, _Silence(), lambda now: over(now) or picture.fault is not None)
    except KeyboardInterrupt:
        pass  # that is how a recording is ended
    if picture.fault is not None:
        raise GpuwatchError(
            f"{path} cannot be written",
            picture.fault,
            "what was written before can be replayed; name a file elsewhere with -o",
        )
    write_notes(
        [f"gpuwatch: recorded {path.stat().st_size / 1000:,.0f} KB: gpuwatch replay {path}"]
    )
    return 0


def _check_free(path: Path) -> None:
    """Raises UsageError where there is something else than a recording: it is not replaced."""
    from ..errors import UsageError
    from ..recording.format import MAGIC

    if not path.is_file():
        return  # there is nothing, or nothing to lose
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"{path} cannot be written", str(error.strerror)) from None
    if start not in (b"", MAGIC):
        raise UsageError(
            f"{path} is there already, and it is no recording",
            "a recording would replace it",
            "name another file with -o",
        )


class _Silence:
    """Shows nothing: the recording is the result."""

    def look(self, snapshot: "Snapshot") -> None:
        """Nothing to show."""

    def last(self, snapshot: "Snapshot") -> None:
        """Nothing to show."""
