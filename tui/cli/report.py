"""`gpuwatch report FILE|PID`: the whole report, as text or as a page to send."""

import argparse
import errno
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .attach import process_id, seconds
from .options import Manual, examples
from .output import width, write_lines, write_notes

if TYPE_CHECKING:
    from ..errors import GpuwatchError
    from ..model.snapshot import Snapshot
    from ..recording.whole_run import WholeRun
    from ..session.live import LiveProvider

WATCHED_S: Final = 30.0
"""A process is watched so long by default: the verdict's window."""


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "report",
        help="a report of a recording or a process, as text or HTML",
        description="Report on a recording, or on a running process after watching it for a "
        "while. With -o a page of HTML: one file, no network, no script.",
        epilog=examples(
            ("gpuwatch report run.gpuwatch", "as text"),
            ("gpuwatch report run.gpuwatch -o report.html", "a page to send"),
            ("gpuwatch report 48213 -o report.html --duration 60", "watch it for a minute"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("what", metavar="FILE|[HOST:]PID", help="a recording or a process")
    command.add_argument("-o", "--output", metavar="FILE", type=Path, help="write a page of HTML")
    command.add_argument(
        "--duration",
        type=seconds,
        metavar="S",
        default=WATCHED_S,
        help="watch a process for S seconds (default: 30)",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where there is neither such a file nor such a process."""
    if arguments.output is not None:
        check_page(arguments.output)
    path = Path(arguments.what)
    if path.exists() or not _names_process(arguments.what):
        whole, last = _of_file(path)
    else:
        whole, last = _of_process(arguments.what, arguments.duration)
    if arguments.output is None:
        from ..formats.report import report_lines

        write_lines(report_lines(last, width()))
        return 0
    from ..formats.html_report import report_page

    write_page(arguments.output, report_page(last, whole.steps, whole.curves))
    return 0


def _names_process(what: str) -> bool:
    """PID, or HOST:PID of another machine."""
    return what.rpartition(":")[2].isdecimal()


def check_page(path: Path) -> None:
    """Before a run is read or watched for it: raises GpuwatchError where there is no such folder,
    or something that is no page of HTML would be overwritten."""
    from ..errors import UsageError

    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path.absolute().parent} is not a directory")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_file() and not path.read_bytes()[:15].lower().startswith(b"<!doctype html"):
            raise UsageError(
                f"{path} exists and is no page of HTML",
                "It would be overwritten.",
                "Choose another file with -o",
            )
    except OSError as error:
        raise _cannot_write(path, error) from None


def write_page(path: Path, page: str) -> None:
    """Write a page of HTML, which is its owner's alone; a page that is there is replaced. Raises
    GpuwatchError where it cannot be written, or something else would be overwritten."""
    from ..private_files import write_whole

    check_page(path)
    try:
        write_whole(path, page.encode(), new=False)
    except OSError as error:
        raise _cannot_write(path, error) from None
    write_notes([f"gpuwatch: wrote {path}"])


def _cannot_write(path: Path, error: OSError) -> "GpuwatchError":
    from ..errors import GpuwatchError

    why = os.strerror(error.errno) if error.errno else str(error)
    return GpuwatchError(f"{path} cannot be written", why, "Choose another with -o")


def _of_file(path: Path) -> "tuple[WholeRun, Snapshot]":
    from ..recording.reader import Recording
    from ..recording.whole_run import read_whole
    from .replay import last_snapshot

    recording = Recording(path)
    return read_whole(recording), last_snapshot(recording)


def _of_process(pid: str, duration_s: float) -> "tuple[WholeRun, Snapshot]":
    """Watches it, and keeps what was seen in a recording for as long as that takes."""
    from ..errors import GpuwatchError
    from ..recording.reader import Recording
    from ..recording.whole_run import read_whole
    from ..remote.link import KEEP_S
    from ..remote.places import target_of
    from .attach import resolve
    from .record import Silence
    from .remote import watch_target
    from .target import watch_live
    from .watching import for_duration, watch

    named = target_of(pid, None)
    provider: LiveProvider
    if named.place is not None:
        provider = watch_target(named, stacks=True, whole_argv=False, keep_s=KEEP_S)
    else:
        provider = watch_live(resolve(process_id(pid)).pid, stacks=True)
    write_notes([f"gpuwatch: watching {pid} for {duration_s:g} s"])
    with tempfile.TemporaryDirectory(prefix="gpuwatch-report-") as folder:
        path = Path(folder) / "watched.gpuwatch"
        provider.recording.begin(path, overwrite=True)
        last = watch(provider, Silence(), for_duration(duration_s))
        if provider.recording.fault is not None:
            raise GpuwatchError(f"{path} cannot be written", provider.recording.fault)
        recording = Recording(path)
        try:
            return read_whole(recording), _unrecorded(last)
        finally:
            recording.close()


def _unrecorded(last: "Snapshot") -> "Snapshot":
    """Without the recording, which is ours and goes with its folder."""
    events = tuple(event for event in last.events if event.kind != "recording")
    return replace(last, status=replace(last.status, recording=None), events=events)
