"""`gpuwatch attach PID`: watch a running process."""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..discovery.pids import Watchable, find_watchable
from ..errors import NotPermittedError, UsageError
from ..launch.inject import Injection
from ..launch.interpreter import target_python
from .alerting import Alerting, add_alerts, alerting_of, why_no_signs
from .job import JobNamed, add_job, job_named, watch_job
from .options import Manual, add_appearance, add_whole_argv, appearance_of, examples
from .output import write_notes
from .remote import add_via, target, with_via
from .screen import (
    choose,
    leave_out_what_is_there,
    search_seldom,
    show_screen,
    why_no_screen,
)

if TYPE_CHECKING:
    from ..discovery.pids import Watchable
    from ..model.provider import SnapshotProvider
    from ..model.snapshot import Rank
    from ..recording.tape import Tape
    from ..remote.places import Target
    from ..remote.provider import RemoteProvider
    from ..screens.switching import Make
    from ..session.live import Connection, LiveProvider


def resolve(pid: int) -> Watchable:
    """The process that a pid on the command line means, with a note where it is another one.

    Raises GpuwatchError where it cannot be watched.
    """
    found = find_watchable(pid)
    if found.page is not None:
        found.page.close()
    write_notes([f"gpuwatch: {line}" for line in found.notes])
    return found


@contextmanager
def injected(pid: int, yes: bool) -> Iterator[None]:
    """Ask, put the probe in, and take it out on leaving. One that is there already stays.

    Raises GpuwatchError where it cannot be put in, or the answer is no.
    """
    from .target import has_probe

    if has_probe(pid):
        yield
        return
    python = target_python(pid)
    if not yes:
        _ask(pid)
    python.check_version()
    injection = Injection(python)
    injection.put_in()
    try:
        yield
    finally:
        if not injection.take_out():
            write_notes(
                [
                    f"gpuwatch: the probe is still in process {pid}, which runs no Python now",
                    "It leaves as soon as Python runs there, or a minute after this ends.",
                ]
            )


def _ask(pid: int) -> None:
    """Raises UsageError where nobody can be asked, NotPermittedError when the answer is no."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"--inject changes process {pid}, and there is no terminal to confirm it",
            "It runs a few lines on the main thread of the process, once.",
            f"To confirm: gpuwatch attach --inject --yes {pid}",
        )
    write_notes(
        [
            f"gpuwatch: put the probe into process {pid}?",
            "It runs a few lines on the main thread, once; its own threads stay until you quit, or "
            "a minute after this monitor was killed.",
            "[y/N]",
        ]
    )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotPermittedError(
            f"process {pid} was not changed",
            "",
            f"Watch it without the probe: gpuwatch attach {pid}",
        )


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "attach",
        help="watch a running process",
        description="Watch a running training. It only reads: the run is not changed, except by "
        "--inject.",
        epilog=examples(
            ("gpuwatch attach 48213", "live screen"),
            ("gpuwatch attach", "choose a process first"),
            ("gpuwatch attach 48213 --once", "one report, then exit"),
            ("gpuwatch attach 48213 --json --duration 60", "JSON lines for a minute"),
            ("gpuwatch attach 48213 --json --once", "one line, with the verdict"),
            ("gpuwatch attach 48213 --plain", "lines of text, until ctrl-c"),
            ("gpuwatch attach --inject 48213", "add the probe to a running process"),
            ("gpuwatch attach node7:48213", "a process on node7, over ssh"),
            ("gpuwatch attach n7:48213 --hosts n8,n9", "its job, over three hosts"),
            ("gpuwatch attach --job n7:48213 n8:51877", "the same by its ranks"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "pid",
        metavar="[HOST:]PID",
        nargs="?",
        type=target,
        help="from `gpuwatch ls`; without: choose",
    )
    add_via(command)
    add_job(command)
    face = command.add_mutually_exclusive_group()
    face.add_argument("--plain", action="store_true", help="lines of text instead of a screen")
    face.add_argument("--json", action="store_true", help="JSON lines, at least one per second")
    command.add_argument(
        "--once",
        action="store_true",
        help="wait for a verdict, print a report (with --json one line), exit",
    )
    command.add_argument(
        "--duration", type=seconds, metavar="S", help="stop after S seconds; implies --plain"
    )
    command.add_argument("--no-stacks", action="store_true", help="no stack samples (py-spy)")
    command.add_argument(
        "--inject",
        action="store_true",
        help="put the probe into a process without one, remove it on leaving (Python 3.14+)",
    )
    command.add_argument("--yes", action="store_true", help="--inject without asking")
    add_whole_argv(command)
    add_alerts(command)
    add_appearance(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises GpuwatchError where the process cannot be watched, or none was named."""
    named = with_via(arguments.pid, arguments.via)
    job = job_named(arguments, named)
    if named.place is not None or job is not None:
        return _run_remote(arguments, named, job)
    arguments.pid = named.pid
    if arguments.pid is None:
        arguments.pid = _chosen_for(arguments)
        if arguments.pid is None:
            return 0
    if not arguments.inject:
        return _watch(arguments)

    with injected(arguments.pid, arguments.yes):
        return _watch(arguments)


def _run_remote(arguments: argparse.Namespace, named: "Target", job: JobNamed | None) -> int:
    """The same on another machine, or on several. Raises GpuwatchError."""
    if arguments.inject:
        raise UsageError(
            "--inject works on this machine alone",
            "It changes a process, which no link should.",
            f"Run it there: gpuwatch attach --inject {named.pid or 'PID'}",
        )
    alerting = alerting_of(arguments)
    try:
        return _watch_remote(arguments, named, job, alerting)
    finally:
        if alerting is not None:
            alerting.close()


def _watch_remote(
    arguments: argparse.Namespace,
    named: "Target",
    job: JobNamed | None,
    alerting: Alerting | None,
) -> int:
    from ..remote.link import KEEP_S
    from . import remote

    why_not = _why_no_screen_for(arguments)
    options = {"stacks": not arguments.no_stacks, "whole_argv": arguments.argv}
    keep_s = 0.0 if arguments.once else KEEP_S
    if named.pid is None and job is None and why_not is not None:
        raise UsageError("which process?", f"no PID was given, and {why_not}", "See: gpuwatch ls")
    if why_not is not None and not (arguments.json or arguments.once or arguments.plain):
        write_notes([f"gpuwatch: {why_not}: writing lines of text (--plain)"])
    make: Callable[[Rank], RemoteProvider] | None = None
    if job is not None:
        for_screen = why_not is None
        provider, make = watch_job(job, keep_s=keep_s, for_screen=for_screen, **options)
    elif why_not is not None:
        provider = remote.watch_target(named, keep_s=keep_s, **options)
    else:
        found = remote.reached(named, appearance_of(arguments))
        if found is None:
            return 0
        provider, make = remote.on_screen(*found, **options)
    if alerting is not None:
        alerting.follow(provider)
    if why_not is not None:
        return _without_screen(arguments, provider)
    if alerting is None:
        return show_screen(provider, appearance_of(arguments), make)
    alerting.on_a_screen(provider.report)
    other = None if make is None else _followed(make, alerting)
    return show_screen(provider, appearance_of(arguments), other, alerting.signs)


def _followed(make: "Callable[[Rank], RemoteProvider]", alerting: Alerting) -> "Make":
    def other(rank: "Rank") -> "LiveProvider":
        return alerting.follow(make(rank))

    return other


def _why_no_screen_for(arguments: argparse.Namespace) -> str | None:
    """Why there is no screen for this command; None where there is one."""
    if arguments.json or arguments.once or arguments.plain:
        return "lines of text were asked for"
    return "--duration was given" if arguments.duration is not None else why_no_screen()


def _chosen_for(arguments: argparse.Namespace) -> int | None:
    """Raises UsageError where nobody can choose."""
    without_screen = arguments.json or arguments.once or arguments.plain or arguments.duration
    why_not = "lines of text were asked for" if without_screen else why_no_screen()
    if why_not is not None:
        raise UsageError("which process?", f"no PID was given, and {why_not}", "See: gpuwatch ls")
    return choose(appearance_of(arguments))


def _watch(arguments: argparse.Namespace) -> int:
    alerting = alerting_of(arguments)
    try:
        return _watch_with(arguments, alerting)
    finally:
        if alerting is not None:
            alerting.close()


def _watch_with(arguments: argparse.Namespace, alerting: Alerting | None) -> int:
    def make(pid: int) -> "LiveProvider":
        provider = _watch_live(pid, not arguments.no_stacks, arguments.argv)
        return provider if alerting is None else alerting.follow(provider)

    def make_rank(rank: "Rank") -> "LiveProvider":
        return make(rank.pid)

    found = resolve(arguments.pid)
    lines = arguments.json or arguments.once or arguments.plain
    why_not = "--duration was given" if arguments.duration is not None else why_no_screen()
    if lines or why_not is not None:
        if not lines:
            write_notes([f"gpuwatch: {why_not}: writing lines of text (--plain)"])
        if (arguments.bell or arguments.desktop) and (reason := why_no_signs()) is not None:
            write_notes([f"gpuwatch: no --bell and no --desktop: {reason}"])
        return _without_screen(arguments, make(arguments.pid))
    first = _connecting(arguments.pid, found, stacks=not arguments.no_stacks)
    first.recording.tape.whole_argv = arguments.argv
    if alerting is None:
        return show_screen(first, appearance_of(arguments), make_rank)
    alerting.follow(first)
    alerting.on_a_screen(first.report)
    return show_screen(first, appearance_of(arguments), make_rank, alerting.signs)


def _watch_live(pid: int, stacks: bool, whole_argv: bool) -> "LiveProvider":
    from .target import watch_live

    return watch_live(pid, stacks, whole_argv=whole_argv)


def _connecting(pid: int, found: "Watchable", stacks: bool) -> "LiveProvider":
    """For the first frame, which waits for nothing that watching needs. `found`: what the pid
    means."""
    from .. import clock
    from ..model.snapshot import unseen
    from ..session.live import LiveProvider

    def connect(tape: "Tape") -> "Connection":
        from . import target

        return target.connect(pid, stacks, tape)

    return LiveProvider(unseen(found.pid, found.script, clock.now_ns(), clock.now_unix()), connect)


def _without_screen(arguments: argparse.Namespace, provider: "SnapshotProvider") -> int:
    from . import watching

    search_seldom()
    leave_out_what_is_there()
    if arguments.once:
        face = watching.OnceJsonFace() if arguments.json else watching.OnceFace()
        watching.watch(provider, face, watching.until_verdict(arguments.duration))
    elif arguments.json:
        watching.watch(provider, watching.JsonFace(), watching.for_duration(arguments.duration))
    else:
        watching.watch(provider, watching.PlainFace(), watching.for_duration(arguments.duration))
    return 0


def process_id(text: str) -> int:
    """A process id. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a process id; see `gpuwatch ls`")
    return int(text)


def seconds(text: str) -> float:
    """A duration, more than 0. Raises ArgumentTypeError for anything else."""
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return given
