"""`gpuwatch ls`: which processes can be watched. `gpuwatch` alone lets one be picked."""

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from ..terminal import Appearance
from .attach import choose, show_screen, why_no_screen
from .options import Manual, examples
from .output import write_lines, write_notes

if TYPE_CHECKING:
    from ..discovery.targets import Candidate

SCHEMA = 1


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "ls",
        help="which processes can be watched",
        description="Processes with a probe, ranks below their launcher, and Python processes that "
        "hold a GPU without one: on this machine, and readable by this user.",
        epilog=examples(
            ("gpuwatch ls", "a table"),
            ("gpuwatch ls --json", "for a script"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("--json", action="store_true", help="one JSON object a process and line")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print them; none is no error."""
    from ..discovery.targets import find_candidates

    found = find_candidates()
    if arguments.json:
        write_lines(json.dumps(_record(one), allow_nan=False) for one in found)
        return 0
    _write_table(found)
    return 0


def run_without_command(_: argparse.Namespace) -> int:
    """The picker; without a terminal the list, and how to go on."""
    from ..discovery.targets import find_candidates

    if why_no_screen() is None:
        return _pick_and_watch()
    found = find_candidates()
    _write_table(found)
    if found:
        write_notes([f"To watch one: gpuwatch attach {found[0].pid}"])
    return 0


def _pick_and_watch() -> int:
    from .target import picture_of

    appearance = Appearance()
    pid = choose(appearance)
    if pid is None:
        return 0
    make = partial(picture_of, stacks=True)
    return show_screen(make(pid), appearance, make)


def _write_table(found: "list[Candidate]") -> None:
    if found:
        write_lines(table(found))
        return
    write_notes(
        [
            "gpuwatch: no process with a probe runs here (as far as this user may look)",
            "Start one with it inside: gpuwatch run train.py, or with probe.install() at its top",
            "See one at work: gpuwatch demo",
        ]
    )


def table(found: "list[Candidate]") -> list[str]:
    """A header and one line a process, ranks below their launcher."""
    rows = [("PID", "USER", "RANK", "STEPS", "SCRIPT")]
    launcher = None
    for one in found:
        if one.launcher is not None and one.launcher != launcher:
            rows.append((str(one.launcher.pid), one.user, "", "", one.launcher.name))
        launcher = one.launcher
        script = f"  {one.script}" if launcher else one.script
        rows.append((str(one.pid), one.user, one.rank, one.steps, script))
    wide = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        f"{pid:>{wide[0]}}  {user:{wide[1]}}  {rank:>{wide[2]}}  {steps:>{wide[3]}}  {script}"
        for pid, user, rank, steps, script in rows
    ]


def _record(one: "Candidate") -> dict[str, Any]:
    """What only a probe can tell is null without one."""
    hello = one.found.hello if one.found else None
    return {
        "schema": SCHEMA,
        "pid": one.pid,
        "user": one.user,
        "script": one.script,
        "probe": hello.probe if hello else None,
        "launcher": one.launcher.pid if one.launcher else None,
        "argv": hello.argv if hello else None,
        "rank": hello.rank if hello else None,
        "local_rank": hello.local_rank if hello else None,
        "world_size": hello.world_size if hello else None,
        "steps": one.found.words.steps if one.found else None,
        "started": hello.started_unix if hello else None,
        "python": hello.python if hello else None,
        "torch": hello.torch if hello else None,
        "endpoint": hello.endpoint if hello else None,
        "fault": hello.fault if hello else None,
    }
