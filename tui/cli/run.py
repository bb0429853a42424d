"""`gpuwatch run train.py ARGS`: start a program with the probe inside, and nothing else changed."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from .options import WITH_VALUE, Manual, add_appearance, appearance_of, examples
from .output import write_notes
from .screen import show_screen, why_no_screen

if TYPE_CHECKING:
    from ..launch.command import Command
    from ..terminal import Appearance

IGNORED_BY_PYTHON: Final = ("SIGPIPE", "SIGXFZ", "SIGXFSZ")


def add_to(commands: "argparse._SubParsersAction[Any]") -> None:
    """The command's part of the command line."""
    command = commands.add_parser(
        "run",
        help="run a program with the probe inside",
        usage="gpuwatch run [--attach] [--] {SCRIPT | -m MODULE | PROGRAM} [ARGS]",
        description="Run a training script, a module, or a launcher, with the probe in every "
        "process that imports torch. Nothing else changes: the program replaces gpuwatch and "
        "keeps its arguments, terminal, signals and exit code.",
        epilog=examples(
            ("gpuwatch run train.py --lr 3e-4", "a script and its arguments"),
            ("gpuwatch run -m pkg.train --lr 3e-4", "a module, like python -m"),
            ("gpuwatch run python -u train.py", "flags of the interpreter"),
            ("gpuwatch run torchrun --nproc-per-node 8 train.py", "every rank has the probe"),
            ("gpuwatch run accelerate launch train.py", ""),
            ("gpuwatch run --attach train.py", "open the screen here"),
        ),
        formatter_class=Manual,
        allow_abbrev=False,
    )
    command.add_argument(
        "--attach",
        action="store_true",
        help="open the screen in this terminal; after q the program runs on in the foreground",
    )
    command.add_argument(  # for its help: `program_apart` leaves none to be read
        "-m",
        dest="command",
        metavar="MODULE",
        nargs=argparse.REMAINDER,
        help="like python -m",
    )
    command.add_argument(
        "command",
        metavar="PROGRAM",
        nargs=argparse.REMAINDER,
        help="with its own arguments",
    )
    add_appearance(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Returns only with `--attach`. Raises GpuwatchError where the program cannot be started."""
    from ..launch.command import command_of, hidden_probe, why_unreached, with_probe

    command = command_of(program_of(arguments))
    environ: Mapping[str, str] = os.environ
    why_not = why_unreached(command.words)
    if os.environ.get("GPUWATCH") == "0":
        why_not = "GPUWATCH=0 is set"
    else:
        environ = with_probe(os.environ)
        hidden = hidden_probe(command.words, os.environ.get("PYTHONPATH", ""))
        if hidden is not None:
            write_notes([f"gpuwatch: {hidden}"])
    if why_not is not None:
        write_notes([f"gpuwatch: started without the probe: {why_not}"])
    elif arguments.attach:
        why_no = why_no_screen()
        if why_no is None:
            return _watched(command, environ, appearance_of(arguments))
        write_notes([f"gpuwatch: {why_no}: started without the screen"])
    _become(command, environ)


def program_apart(words: Sequence[str]) -> list[str]:
    """The same words with `--` before the program, whose options and further `--` are its own:
    argparse would end what follows -m at the next `--`, or behind -mMODULE, and drop the rest."""
    at = 0
    while at < len(words) and words[at].startswith("-") and not words[at].startswith("-m"):
        if words[at] == "--":
            return list(words)
        if words[at] == "-":
            break
        at += 2 if words[at] in WITH_VALUE else 1
    return [*words[:at], "--", *words[at:]]


def program_of(arguments: argparse.Namespace) -> list[str]:
    """Its words, with the module of `-mMODULE` as a word of its own."""
    words: list[str] = arguments.command[1:]
    glued = words[0] if words and words[0].startswith("-m") else ""
    return ["-m", glued[2:], *words[1:]] if glued[2:] else words


def _become(command: "Command", environ: Mapping[str, str]) -> NoReturn:
    """From here on this process is the program. Raises UsageError where the system refuses."""
    for name in IGNORED_BY_PYTHON:
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command.path, command.words, environ)
    except OSError as error:
        raise _not_started(command, error) from None


def _not_started(command: "Command", error: OSError) -> Exception:
    from ..errors import UsageError

    return UsageError(
        f"{command.path} cannot be started",
        os.strerror(error.errno or 0),
        f"Try it without gpuwatch: {command.words[0]}",
    )


def _watched(command: "Command", environ: Mapping[str, str], appearance: "Appearance") -> int:
    """The program in the foreground, the screen once its probe is there, and the rest of it."""
    from ..launch.inject import ProbeBelow
    from ..launch.pty import HeldOutput, OwnTerminal, relay, signals_passed_on

    output = HeldOutput(1 if os.isatty(1) else 2)
    try:
        program = OwnTerminal(command, environ, output.write)
    except OSError as error:
        raise _not_started(command, error) from None
    with signals_passed_on(program):
        try:
            probe = ProbeBelow(program.pid)
            relay(program, over=probe.is_there)
            if probe.pid is not None:
                output.hold()
                try:
                    code = _screen(probe.pid, appearance)
                finally:
                    output.release()
                if code > 128 and program.exit_status is None:
                    program.signal(code - 128)
                relay(program, over=lambda: False)
        finally:  # of a mistake of ours too: when we end, its terminal hangs up on it
            status = program.close()
        return status


def _screen(pid: int, appearance: "Appearance") -> int:
    """The screen's exit code. A screen that fails is reported: it does not end the program."""
    from ..errors import GpuwatchError
    from .target import watch_live

    try:
        make = partial(watch_live, stacks=True)
        return show_screen(make(pid), appearance, make)
    except GpuwatchError as error:
        write_notes(str(error).splitlines())
    except Exception as error:
        write_notes([f"gpuwatch: the screen failed ({error!r}); the program goes on"])
    return 0
