"""`gpuwatch profile PID`: a profiler's window over a few steps of a running training."""

import argparse
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .attach import process_id, seconds
from .options import Manual, examples
from .output import width, write_lines, write_notes

if TYPE_CHECKING:
    from ..formats.profile_report import DeepReport
    from ..model.snapshot import Snapshot
    from ..session.live import LiveProvider
    from ..sources.deep_report import Looked

STEPS: Final = 3
JOB_STEPS: Final = 10
"""Who is the last in nine of ten is hardly so by chance; in three of three he may be."""
MOST_STEPS: Final = 100
MOST_S: Final = 20.0
AFTER_STEPS: Final = 40
"""That are wanted after the window."""
VERDICT_S: Final = 12.0
AFTER_S: Final = 4.0
MOST_AFTER_S: Final = 20.0
LOOK_S: Final = 0.1


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "profile",
        help="profile a few steps of a running process",
        description="Record a few steps with PyTorch's profiler inside the process, name what they "
        "wait for, and leave it as it was. The process needs the probe.",
        epilog=examples(
            ("gpuwatch profile 48213", "three steps"),
            ("gpuwatch profile 48213 --steps 10 -o t.json", "ten, and keep the trace"),
            ("gpuwatch profile 48213 --job", "all ranks of its job here"),
            ("gpuwatch profile 48213 --json", "one JSON object"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "pid", metavar="PID", type=process_id, help="process id; see `gpuwatch ls`"
    )
    command.add_argument(
        "--steps",
        type=step_count,
        metavar="N",
        help=f"steps; {STEPS} by default, {JOB_STEPS} with --job",
    )
    command.add_argument(
        "-o", "--output", metavar="TRACE", type=Path, help="write the trace (JSON, for Perfetto)"
    )
    command.add_argument(
        "--no-operators",
        action="store_true",
        help="leave out the slower step that records operators and shapes",
    )
    command.add_argument(
        "--most", type=seconds, default=MOST_S, metavar="S", help="stop after S seconds (20)"
    )
    command.add_argument(
        "--job",
        action="store_true",
        help="all ranks of its job on this host: what collectives take, and who is waited for",
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def step_count(text: str) -> int:
    """1 to 100. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= MOST_STEPS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps from 1 to 100")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the process cannot be profiled, or the trace not be written."""
    from ..errors import GpuwatchError
    from ..formats.profile_report import profile_costs, profile_json, profile_lines
    from .target import watch_live

    path: Path | None = arguments.output
    if path is not None:
        check_free(path)
    pid = probed(arguments.pid, "profile")
    if arguments.job:
        return _run_job(pid, arguments, arguments.steps or JOB_STEPS)
    steps = arguments.steps or STEPS
    write_notes(profile_costs(steps, not arguments.no_operators))
    provider = watch_live(pid, stacks=True)
    try:
        provider.start()
        operators = not arguments.no_operators
        report, looked = profiled(provider, pid, steps, arguments.most, operators, _patience())
    finally:
        provider.close()
    fault: GpuwatchError | None = None
    if path is not None:
        trace = looked.trace()
        try:
            write_private(path, trace)
            report = replace(report, trace=str(path), trace_bytes=len(trace))
        except GpuwatchError as error:
            fault = error  # the run was held up for the report, which is there
    write_lines([profile_json(report)] if arguments.json else profile_lines(report, width()))
    if fault is not None:
        raise fault
    return 0


def _run_job(pid: int, arguments: argparse.Namespace, steps: int) -> int:
    """The same steps on all ranks; with `-o t.json` their traces are t.0.json, t.1.json …"""
    from ..errors import GpuwatchError
    from ..formats.job_profile_report import (
        job_profile_costs,
        job_profile_json,
        job_profile_lines,
    )
    from ..sources.job_look import MOST_RANKS, job_report_of, open_job_windows, ranks_of_job
    from .target import watch_live

    path: Path | None = arguments.output
    if path is not None:
        for rank in range(MOST_RANKS):
            check_free(_of_rank(path, rank))
    ranks_of_job(pid)  # one alone is refused before anything is announced
    write_notes(job_profile_costs(steps))
    provider = watch_live(pid, stacks=False)
    try:
        provider.start()
        before = _before(provider, _patience())
    finally:
        provider.close()
    looked = open_job_windows(pid, steps, arguments.most)
    report = job_report_of(before, looked)
    fault: GpuwatchError | None = None
    if path is not None:
        paths = [_of_rank(path, one.rank) for one in report.profile.ranks]
        try:
            for one, trace in zip(paths, looked.traces(), strict=True):
                write_private(one, trace)
            report = replace(report, traces=tuple(map(str, paths)))
        except GpuwatchError as error:
            fault = error
    lines = [job_profile_json(report)] if arguments.json else job_profile_lines(report, width())
    write_lines(lines)
    if fault is not None:
        raise fault
    return 0


def _of_rank(path: Path, rank: int) -> Path:
    return path.with_suffix(f".{rank}{path.suffix}")


def probed(pid: int, command: str) -> int:
    """The process to ask; as `attach` finds it.

    Raises NothingToMeasureError where it has no probe.
    """
    from ..discovery.pids import find_watchable
    from ..errors import NothingToMeasureError

    found = find_watchable(pid)
    if found.page is None:
        raise NothingToMeasureError(
            f"process {found.pid} has no probe",
            f"gpuwatch {command} works inside the process.",
            "Start the run with `import probe; probe.install()`, or by gpuwatch run",
        )
    found.page.close()
    write_notes([f"gpuwatch: {line}" for line in found.notes])
    return found.pid


def check_free(path: Path) -> None:
    """Raises UsageError where something else would be overwritten, or nothing can be written."""
    from ..errors import UsageError

    if path.exists():
        raise UsageError(f"{path} exists", "It would be overwritten.", "Choose another with -o")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path.absolute().parent} is not a directory")


def write_private(path: Path, data: bytes) -> None:
    """A new file of our own, whole or none. Raises UsageError where it cannot be written."""
    from ..errors import UsageError
    from ..private_files import write_whole

    try:
        write_whole(path, data, new=True)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise UsageError(f"{path} cannot be written", why, "Choose another with -o") from None


@dataclass(frozen=True)
class Patience:
    """How long what is around a window is waited for, s."""

    verdict_s: float
    """The verdict: a report needs none."""
    after_s: float
    """Steps after the window: so long at the least, until there are `AFTER_STEPS`…"""
    most_after_s: float
    """…and so long at the most."""


def _patience() -> Patience:
    """A person's."""
    return Patience(VERDICT_S, AFTER_S, MOST_AFTER_S)


def profiled(
    provider: "LiveProvider",
    pid: int,
    steps: int,
    most_s: float,
    operators: bool,
    patience: Patience,
) -> "tuple[DeepReport, Looked]":
    """Watch until there is a verdict, open the window, and watch some steps after it. Raises a
    GpuwatchError where the window cannot be had."""
    from ..sources.deep_report import StepsAfter, open_window, report_of

    before = _before(provider, patience)
    looked = open_window(pid, steps, most_s, operators)
    after = StepsAfter(before, looked.over_ns)

    def enough(now: "Snapshot") -> bool:
        after.add(now)
        passed_s = (now.t_ns - looked.over_ns) / 1e9
        late = passed_s >= patience.most_after_s
        return late or (passed_s >= patience.after_s and after.count >= AFTER_STEPS)

    _watched(provider, enough)
    return after.on(report_of(before, looked)), looked


def _before(provider: "LiveProvider", patience: Patience) -> "Snapshot":
    """The run with its verdict, once there is one, or without if that takes too long."""
    from .watching import RIPE_S, has_verdict

    return _watched(
        provider,
        lambda now: (
            (has_verdict(now) and now.attached_s >= RIPE_S) or now.attached_s >= patience.verdict_s
        ),
    )


def _watched(provider: "LiveProvider", until: "Callable[[Snapshot], bool]") -> "Snapshot":
    """The first snapshot of which that is true, or the last of a process that has ended."""
    pause = threading.Event()
    while True:
        snapshot = provider.snapshot()
        if until(snapshot) or snapshot.status.state == "ended":
            return snapshot
        pause.wait(LOOK_S)
