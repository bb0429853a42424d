"""`gpuwatch compare A B`: what changed from one recording to another."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import Manual, examples
from .output import width, write_lines
from .report import check_page, write_page

if TYPE_CHECKING:
    from ..compare.comparison import Side


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "compare",
        help="what changed from one recording to another",
        description="Compare two runs by their recordings: step time, phases, throughput, memory "
        "and verdict, each change with its interval. A and B are files, or folders of several "
        "recordings of the same run.",
        epilog=examples(
            ("gpuwatch compare before.gpuwatch after.gpuwatch", "as text"),
            ("gpuwatch compare before/ after/", "several runs a side"),
            ("gpuwatch compare A B -o compare.html", "a page to send"),
            ("gpuwatch compare A B --fail-if 'step_ms>+5%'", "for CI: exit code 6"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("a", metavar="A", type=Path, help="a recording, or a folder of them")
    command.add_argument("b", metavar="B", type=Path, help="the same of the other side")
    command.add_argument("--json", action="store_true", help="JSON instead of text")
    command.add_argument("-o", "--output", metavar="FILE", type=Path, help="write a page of HTML")
    command.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help="exit code 6 where it holds: 'step_ms>+5%%'; may be given several times",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where a recording cannot be read, a condition is none, or the page
    cannot be written."""
    from ..compare.comparison import compare, condition_of
    from ..compare.faces import as_json, text_lines
    from ..errors import CONDITION_HOLDS, NothingToMeasureError

    if arguments.output is not None:
        check_page(arguments.output)
    conditions = [condition_of(text) for text in arguments.fail_if]
    comparison = compare(_side(arguments.a), _side(arguments.b))
    failed = {condition: condition.holds(comparison.measured) for condition in conditions}
    if arguments.json:
        write_lines([json.dumps(as_json(comparison, failed), allow_nan=False)])
    elif arguments.output is None:
        write_lines(text_lines(comparison, failed, width()))
    if arguments.output is not None:
        from ..compare.page import page

        write_page(arguments.output, page(comparison, failed))
    if any(failed.values()):
        return CONDITION_HOLDS
    if unknown := [one.text for one, holds in failed.items() if holds is None]:
        raise NothingToMeasureError(
            f"--fail-if {unknown[0]}: not measured on both sides", "", "See: gpuwatch compare A B"
        )
    return 0


def _side(path: Path) -> "Side":
    """Of a recording, or of all those in a folder."""
    from ..compare.comparison import side
    from ..errors import UsageError
    from ..recording.format import SUFFIX
    from ..recording.reader import Recording
    from ..recording.whole_run import read_whole
    from .replay import last_snapshot

    paths = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not paths:
        raise UsageError(f"{path} holds no {SUFFIX} file", "", "gpuwatch record PID -o FILE")
    runs = []
    for one in paths[:-1]:
        recording = Recording(one)
        runs.append(read_whole(recording))
        recording.close()
    newest = Recording(paths[-1])
    runs.append(read_whole(newest))
    return side(path.name, runs, last_snapshot(newest))
