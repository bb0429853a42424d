"""`gpuwatch ls`: which processes can be watched. Also what `gpuwatch` alone does."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from tui.cli.output import write_lines, write_notes

if TYPE_CHECKING:
    from tui.targets import Found

SCHEMA = 1


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "ls",
        help="which processes can be watched",
        description="Processes with a probe, on this machine and readable by this user.",
        allow_abbrev=False,
    )
    command.add_argument("--json", action="store_true", help="one JSON object a process and line")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print them; none is no error."""
    from tui.targets import find_probes

    found = find_probes()
    if arguments.json:
        write_lines(json.dumps(_record(one), allow_nan=False) for one in found)
        return 0
    _write_table(found)
    return 0


def run_without_command(_: argparse.Namespace) -> int:
    """The list, and how to go on."""
    from tui.targets import find_probes

    found = find_probes()
    _write_table(found)
    if found:
        write_notes([f"To watch one: gpuwatch attach {found[0].pid}"])
    return 0


def _write_table(found: "list[Found]") -> None:
    if found:
        write_lines(table(found))
        return
    write_notes(
        [
            "gpuwatch: no process with a probe runs here (as far as this user may look)",
            "A training script has one with these lines at its top: import probe; probe.install()",
            "See one at work: gpuwatch demo",
        ]
    )


def table(found: "list[Found]") -> list[str]:
    """A header and one line a process."""
    rows = [("PID", "USER", "RANK", "STEPS", "SCRIPT")]
    for one in found:
        hello = one.hello
        rank = "-" if hello.rank is None else f"{hello.rank}/{hello.world_size or '?'}"
        rows.append((str(one.pid), one.user, rank, f"{one.words.steps:,}", one.script))
    wide = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        f"{pid:>{wide[0]}}  {user:{wide[1]}}  {rank:>{wide[2]}}  {steps:>{wide[3]}}  {script}"
        for pid, user, rank, steps, script in rows
    ]


def _record(one: "Found") -> dict[str, Any]:
    hello = one.hello
    return {
        "schema": SCHEMA,
        "pid": one.pid,
        "user": one.user,
        "script": one.script,
        "argv": hello.argv,
        "rank": hello.rank,
        "local_rank": hello.local_rank,
        "world_size": hello.world_size,
        "steps": one.words.steps,
        "started": hello.started_unix,
        "python": hello.python,
        "torch": hello.torch,
        "endpoint": hello.endpoint,
        "fault": hello.fault,
    }
