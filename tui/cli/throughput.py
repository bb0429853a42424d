"""`gpuwatch throughput PID`: samples, tokens, FLOPs, MFU, roofline and energy of a process."""

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from .attach import process_id, seconds
from .options import Manual, examples
from .output import width, write_lines, write_notes
from .profile import probed

if TYPE_CHECKING:
    from ..model.snapshot import Snapshot
    from .watching import Until

WATCHED_S: Final = 15.0
AFTER_COUNT_S: Final = 10.0
"""The counted step is slow, and not among those that give the rate for long."""


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "throughput",
        help="samples, tokens, FLOPs and MFU of a process",
        description="Watch a process for a while and print what it gets done. The FLOPs of one "
        "step are counted once in its life, on its training thread: that step takes some ten "
        "times as long. --no-count leaves it alone.",
        epilog=examples(
            ("gpuwatch throughput 48213", "with FLOPs and MFU"),
            ("gpuwatch throughput 48213 --no-count", "without touching a step"),
            ("gpuwatch throughput 48213 --json", "one object"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "pid", metavar="PID", type=process_id, help="process id; see `gpuwatch ls`"
    )
    command.add_argument(
        "--duration", type=seconds, metavar="S", default=WATCHED_S, help="watch it for S seconds"
    )
    command.add_argument("--no-count", action="store_true", help="count no FLOPs")
    command.add_argument("--json", action="store_true", help="JSON instead of text")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the process cannot be watched, has no probe, or makes no step."""
    from ..errors import NothingToMeasureError
    from ..formats.jsonlines import record
    from ..formats.report_layout import wrapped
    from ..wording.numbers import count, milliseconds
    from ..wording.throughput import throughput_words
    from .record import Silence
    from .target import watch_live
    from .watching import watch

    pid = probed(arguments.pid, "throughput")
    counts = not arguments.no_count
    provider = watch_live(pid, stacks=False, count_flops=counts)
    if counts:
        write_notes([f"gpuwatch: asking {pid} to count the FLOPs of one step: that is slow"])
    last = watch(provider, Silence(), _over(arguments.duration))
    if last.throughput is None or last.steps is None:
        if last.status.state == "ended":
            raise NothingToMeasureError(f"process {pid} has ended", "It made no step meanwhile.")
        raise NothingToMeasureError(f"process {pid} made no step", "", f"gpuwatch doctor {pid}")
    if arguments.json:
        write_lines([json.dumps(record(last, final=True)["throughput"], allow_nan=False)])
        return 0
    steps = last.steps
    lines = [f"{milliseconds(1000 / steps.steps_s)} per step, {count(steps.in_window)} steps"]
    for line in (*lines, *throughput_words(last.throughput)):
        write_lines(wrapped("", line, width()))
    return 0


def _over(duration_s: float) -> "Until":
    """So long, and AFTER_COUNT_S more where the FLOPs are known late."""
    known_s: list[float] = []

    def over(snapshot: "Snapshot") -> bool:
        found = snapshot.throughput
        if found is not None and found.flops_step is not None and not known_s:
            known_s.append(snapshot.attached_s)
        since_s = known_s[0] + AFTER_COUNT_S if known_s else 0.0
        return snapshot.attached_s >= max(duration_s, min(since_s, duration_s + AFTER_COUNT_S))

    return over
