"""`gpuwatch doctor [PID]`: what can be measured here, what cannot, and what changes that."""

import argparse
import json
import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from .attach import process_id
from .options import Manual, examples
from .output import width, write_lines

if TYPE_CHECKING:
    from ..doctor.checks import Check
    from ..model.machine_facts import TargetFact
    from ..model.snapshot import Snapshot

SCHEMA: Final = 1
WATCH_S: Final = 4.0
"""A process is watched for so long: py-spy's first chunk takes two seconds, and two to spare."""
LABEL: Final = 20


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "doctor",
        help="check what can be measured here, and how to fix the rest",
        description="Check driver, kernel and terminal. With a PID, also watch that process for "
        f"{WATCH_S:.0f} s and report which signals arrive. Exit code 3, 4 or 5: the process "
        "cannot be watched.",
        epilog=examples(
            ("gpuwatch doctor", "check this machine and terminal"),
            ("gpuwatch doctor 48213", "check what can be measured of a process"),
            ("gpuwatch doctor --json", "for a script; the ids are stable"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument("pid", metavar="PID", nargs="?", type=process_id, help="process id")
    command.add_argument("--json", action="store_true", help="JSON lines, one per check")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the checks. Raises NoProcessError where there is no such process."""
    from ..doctor.checks import examine
    from ..sources.surroundings import facts_of

    pid: int | None = arguments.pid
    target, snapshot, code = (None, None, 0) if pid is None else _watched(pid)
    checks = examine(facts_of(os.getpid() if pid is None else pid, target), snapshot)
    if arguments.json:
        write_lines(json.dumps(_record(check), allow_nan=False) for check in checks)
    else:
        write_lines(lines(checks, width()))
    return code


def _watched(pid: int) -> "tuple[TargetFact, Snapshot | None, int]":
    """Who it is, its picture after a while, and the exit code."""
    from ..errors import GpuwatchError, NoProcessError
    from ..model.machine_facts import TargetFact
    from .target import watch_live
    from .watching import for_duration, watch

    try:
        provider = watch_live(pid, stacks=True)
    except NoProcessError:
        raise
    except GpuwatchError as error:
        fault = f"{error.what}: {error.why}" if error.why else error.what
        return TargetFact(pid, "", "", None, fault, error.fix.strip()), None, error.exit_code
    snapshot = watch(provider, _Silence(), for_duration(WATCH_S))
    hello = snapshot.hello
    schema = None if hello is None else hello.schema
    version = "" if hello is None else hello.probe
    return TargetFact(pid, snapshot.script, version, schema, fault=""), snapshot, 0


def lines(checks: "Sequence[Check]", columns: int) -> list[str]:
    """A check a line, what changes it below; the sum at the end."""
    from ..doctor.checks import GLYPHS, WORDS

    out: list[str] = []
    for check in checks:
        head = f" {GLYPHS[check.state]} {check.id}".ljust(LABEL)
        out += _wrapped(head, check.text, columns)
        if check.fix:
            out += _wrapped(" " * LABEL + "→ ", check.fix, columns)
    states = [check.state for check in checks]
    sums = [f"{states.count(state)} {word}" for state, word in WORDS.items() if state in states]
    return [*out, "", " · ".join(sums)]


def _wrapped(head: str, text: str, columns: int) -> list[str]:
    return textwrap.wrap(
        text,
        max(columns, LABEL + 20),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _record(check: "Check") -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "id": check.id,
        "state": check.state,
        "says": check.text,
        "fix": check.fix or None,
    }


class _Silence:
    """Watches, and says nothing."""

    def show(self, snapshot: "Snapshot") -> None:
        """Nothing to show."""

    def last(self, snapshot: "Snapshot") -> None:
        """Nothing to show."""
