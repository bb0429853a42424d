"""`gpuwatch ls`: which processes can be watched. `gpuwatch` alone lets one be picked."""

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..clock import now_unix
from ..discovery.secrets import masked
from ..terminal import Appearance
from ..wording.numbers import duration
from .options import Manual, add_whole_argv, examples
from .output import write_lines, write_notes
from .remote import add_via, choose_on, list_on, on_screen, reach, with_via
from .screen import choose, show_screen, why_no_screen

if TYPE_CHECKING:
    from ..discovery.candidates import Candidate
    from ..remote.places import Place

SCHEMA: Final = 1
ALIGNED: Final = "><>>>>"
"""The columns of the table but for the last, as in format()."""


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "ls",
        help="list processes that can be watched",
        description="List this machine's training processes that you may watch: those with a "
        "probe, with ranks below their launcher, and Python processes without one that use a GPU "
        "or have loaded torch.",
        epilog=examples(
            ("gpuwatch ls", "a table"),
            ("gpuwatch ls --json", "for a script"),
            ("gpuwatch ls node7", "those of node7, over ssh"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("host", metavar="HOST", nargs="?", help="another machine, over ssh")
    add_via(command)
    command.add_argument("--json", action="store_true", help="JSON lines, one per process")
    add_whole_argv(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print them; none is no error."""
    found = _found(arguments)
    if arguments.json:
        write_lines(json.dumps(_record(one, arguments.argv), allow_nan=False) for one in found)
        return 0
    write_table(found)
    return 0


def _found(arguments: argparse.Namespace) -> "list[Candidate]":
    """Here, or on the machine that is named. Raises GpuwatchError."""
    if arguments.host is None and arguments.via is None:
        from ..discovery.candidates import find_candidates

        return find_candidates()
    from ..remote.places import target_of

    named = None if arguments.host is None else target_of(f"{arguments.host.rstrip(':')}:", None)
    place = with_via(named, arguments.via).place
    assert place is not None
    line = reach(place, None)
    try:
        return list_on(line)
    finally:
        line.close()


def run_without_command(_: argparse.Namespace) -> int:
    """The picker; without a terminal the list, and how to go on."""
    from ..discovery.candidates import find_candidates

    if why_no_screen() is None:
        return _pick_and_watch()
    found = find_candidates()
    write_table(found)
    if found:
        write_notes([f"To watch one: gpuwatch attach {found[0].pid}"])
    return 0


def _pick_and_watch() -> int:
    from .target import watch_live

    appearance = Appearance()
    pid = choose(appearance)
    if pid is None:
        return 0
    make = partial(watch_live, stacks=True)
    return show_screen(make(pid), appearance, make)


def pick_and_watch_on(place: "Place", appearance: Appearance) -> int:
    """`gpuwatch HOST`: the picker, then the screen; without a terminal the list."""
    if why_no_screen() is not None:
        line = reach(place, None)
        try:
            found = list_on(line)
        finally:
            line.close()
        write_table(found)
        return 0
    chosen = choose_on(place, appearance)
    if chosen is None:
        return 0
    provider, make = on_screen(*chosen, stacks=True, whole_argv=False)
    return show_screen(provider, appearance, make)


def write_table(found: "list[Candidate]") -> None:
    """The processes, or how to have some."""
    if found:
        write_lines(table(found))
        return
    write_notes(
        [
            "gpuwatch: found no process to watch (among those that you may read)",
            "Start one with the probe: gpuwatch run train.py",
            "Or try it: gpuwatch demo",
        ]
    )


def table(found: "list[Candidate]") -> list[str]:
    """A header and one line a process, ranks below their launcher."""
    rows = [("PID", "USER", "RANK", "STEPS", "AGE", "GPU", "SCRIPT")]
    launcher, now = None, now_unix()
    for one in found:
        if one.launcher is not None and one.launcher != launcher:
            rows.append((str(one.launcher.pid), one.user, "", "", "", "", one.launcher.name))
        launcher = one.launcher
        label = f"  {one.label}" if launcher else one.label
        age = "?" if one.started_unix is None else duration(now - one.started_unix)
        rows.append((str(one.pid), one.user, one.rank, one.steps, age, one.gpu, label))
    wide = [max(len(row[column]) for row in rows) for column in range(6)]
    return ["  ".join((*map(_cell, row, ALIGNED, wide), row[-1])) for row in rows]


def _cell(text: str, aligned: str, width: int) -> str:
    return f"{text:{aligned}{width}}"


def _record(one: "Candidate", whole_argv: bool) -> dict[str, Any]:
    """What only a probe knows is null without one."""
    hello = one.found.hello if one.found else None
    argv = hello.argv if hello else None
    return {
        "schema": SCHEMA,
        "pid": one.pid,
        "user": one.user,
        "script": one.script,
        "probe": hello.probe if hello else None,
        "launcher": one.launcher.pid if one.launcher else None,
        "argv": argv if argv is None or whole_argv else masked(argv),
        "rank": hello.rank if hello else None,
        "local_rank": hello.local_rank if hello else None,
        "world_size": hello.world_size if hello else None,
        "steps": one.found.words.steps if one.found else None,
        "started": hello.started_unix if hello else one.started_unix,
        "folder": one.folder or None,
        "gpus": list(one.gpus),
        "on_gpu": one.on_gpu,
        "python": hello.python if hello else None,
        "torch": hello.torch if hello else None,
        "endpoint": hello.endpoint if hello else None,
        "fault": hello.fault if hello else None,
    }
