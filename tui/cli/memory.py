"""`gpuwatch memory PID`: which lines of a running training allocate what stays."""

import argparse
from pathlib import Path
from typing import Any, Final

from .attach import process_id, seconds
from .options import Manual, examples
from .output import width, write_lines, write_notes
from .profile import check_free, probed, write_private

FOR_S: Final = 30.0


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "memory",
        help="find the lines that keep memory",
        description="Record who allocates for some seconds, and show what outlives them, by line. "
        "The process needs the probe.",
        epilog=examples(
            ("gpuwatch memory 48213", "GPU memory, for 30 s"),
            ("gpuwatch memory 48213 --seconds 120 -o m.pickle", "longer, and keep the snapshot"),
            ("gpuwatch memory 48213 --host", "Python's memory too"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "pid", metavar="PID", type=process_id, help="process id; see `gpuwatch ls`"
    )
    command.add_argument(
        "--seconds", "--duration", type=seconds, default=FOR_S, metavar="S", help="how long (30)"
    )
    command.add_argument(
        "--host",
        action="store_true",
        help="trace Python's memory too (tracemalloc): Python code runs 2 to 4 times as long "
        "meanwhile; always so where the process uses no GPU",
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write a snapshot for memory_viz"
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the process cannot be asked, or the file not be written."""
    from ..discovery.targets import script_of
    from ..errors import GpuwatchError
    from ..formats.memory_report import (
        NO_SNAPSHOT,
        memory_costs,
        memory_json,
        memory_report_lines,
    )
    from ..sources.deep_look import DeepLookLink
    from ..sources.deep_report import hello_of

    path: Path | None = arguments.output
    if path is not None:
        check_free(path)
    pid = probed(arguments.pid, "memory")
    hello = hello_of(pid)
    write_notes(memory_costs(arguments.seconds, arguments.host or None))
    with DeepLookLink(hello, pid) as link:
        window, snapshot = link.memory(arguments.seconds, arguments.host)
    written = ""
    fault: GpuwatchError | None = None
    if path is not None and snapshot is not None:
        try:
            write_private(path, snapshot)
            written = str(path)
        except GpuwatchError as error:
            fault = error  # the run was held up for the report, which is there
    elif path is not None and not window.no_file:
        window.no_file = NO_SNAPSHOT
    script = script_of(hello.argv)
    if arguments.json:
        write_lines([memory_json(script, pid, window, written)])
    else:
        write_lines(memory_report_lines(script, pid, window, written, width()))
    if fault is not None:
        raise fault
    return 0
