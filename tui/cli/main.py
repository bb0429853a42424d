"""`gpuwatch`: reads the command line, runs one command, and turns every end into an exit code."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..discovery.candidates import find_candidates
from ..errors import USAGE, NoProcessError
from .output import (
    CannotWriteError,
    ReaderClosedError,
    discard_if_stalled,
    discard_output,
    write_lines,
    write_notes,
)

if TYPE_CHECKING:
    from ..errors import GpuwatchError

SUGGESTED: Final = 5
"""Processes that an error about a wrong pid names."""


def with_candidates(error: NoProcessError) -> NoProcessError:
    """The same error with the processes that can be watched, unless it gives a reason."""
    if error.why:
        return error
    running = ", ".join(f"{one.pid} ({one.script})" for one in find_candidates()[:SUGGESTED])
    why = f"Processes that can be watched now: {running}" if running else ""
    return NoProcessError(error.what, why, error.fix)


# SIGTERM and SIGHUP end a command like ctrl-c: its last line is still written.


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def end_on_signals() -> None:
    """From now on these signals raise Interrupted in the main thread."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _raise)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """As a shell reports a program that a signal ended."""
    number = interrupt.number if isinstance(interrupt, Interrupted) else signal.SIGINT
    return 128 + number


def _raise(number: int, _: FrameType | None) -> None:
    raise Interrupted(number)


INTERNAL: Final = 1
COMMANDS: Final = {
    "ls": "listing",
    **{name: name for name in ("attach", "run", "record", "replay", "doctor", "demo")},
    **{name: name for name in ("profile", "memory")},
    **{name: name for name in ("report", "compare", "throughput", "lab", "export")},
    **{name: name for name in ("agent", "completion")},
}
"""The module of each. Only the module of the command that runs is imported."""
DESCRIPTION: Final = "Why is my PyTorch training slow, right now?"
EPILOG: Final = """\
examples:
  gpuwatch                      pick a process and watch it
  gpuwatch ls                   list processes that can be watched
  gpuwatch attach 48213         watch it on a live screen
  gpuwatch attach 48213 --once  print one report
  gpuwatch attach node7:48213   watch a process on another machine, over ssh
  gpuwatch run train.py         run a script with the probe inside
  gpuwatch record 48213 -o F    record it to a file
  gpuwatch replay F             play the recording
  gpuwatch report F -o R.html   a page of a recording or a process, to send
  gpuwatch compare A B          what changed from one recording to another
  gpuwatch throughput 48213     samples, tokens, FLOPs and MFU of it
  gpuwatch lab -- python t.py   try tf32, bf16, compile, workers: what each gives
  gpuwatch export --prometheus  metrics of this host's trainings
  gpuwatch profile 48213        profile three steps of it
  gpuwatch memory 48213         find lines that keep GPU memory
  gpuwatch doctor               check what can be measured here
  gpuwatch demo                 start and watch a slow training run
  gpuwatch demo --gpu           play a recording from an H200, no GPU needed

exit codes: 0 ok, 1 error in gpuwatch, 2 wrong usage, 3 no such process,
4 not permitted, 5 nothing to measure, 6 a condition of --fail-if holds
"""


class _Version(argparse.Action):
    """Prints versions; they are read only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        from ..errors import version_lines

        write_lines(version_lines())
        parser.exit(0)


class _Parser(argparse.ArgumentParser):
    """Short errors, and output that notices a full disk, unlike argparse's own."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """An unknown command: suggests the nearest."""
        commands = action.choices
        if isinstance(action, argparse._SubParsersAction) and value not in (commands or ()):
            from difflib import get_close_matches

            from ..errors import UsageError

            near = get_close_matches(str(value), commands or (), n=1)
            raise UsageError(
                f"unknown command {value!r}",
                f"Commands: {', '.join(commands or ())}",
                f"Try: gpuwatch {near[0]}" if near else "See: gpuwatch --help",
            )
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        """Without argparse's usage block, which hides the message below it."""
        self.exit(USAGE, f"{self.prog}: {message}\nSee: {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            write_lines(message.splitlines())
        else:
            write_notes(message.splitlines())


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands."""
    top = _Parser(
        prog="gpuwatch",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print versions for a bug report")
    top.set_defaults(run=_run_without_command)
    commands = top.add_subparsers(title="commands", metavar="")
    for name in names:
        import_module(f"{__package__}.{COMMANDS[name]}").add_to(commands)
    return top


def _run_without_command(arguments: argparse.Namespace) -> int:
    from .listing import run_without_command

    return run_without_command(arguments)


def _names_host(word: str) -> bool:
    """Whether the only word is a machine: what is nearly a command is taken for one."""
    from difflib import get_close_matches

    from .remote import names_host

    return not get_close_matches(word, COMMANDS, n=1) and names_host(word)


def _watch_on(host: str) -> int:
    """`gpuwatch HOST`."""
    from ..remote.places import target_of
    from ..terminal import Appearance
    from .listing import pick_and_watch_on

    place = target_of(f"{host.rstrip(':')}:", None).place
    assert place is not None
    return pick_and_watch_on(place, Appearance())


def main(argv: Sequence[str] | None = None) -> int:
    """Run `gpuwatch` with these arguments (the process's own without); returns the exit code."""
    try:
        return _run(argv)
    except ReaderClosedError:
        discard_output()
        return 0
    except CannotWriteError as error:
        discard_output()
        write_notes([f"gpuwatch: cannot write to standard output: {error}"])
        return INTERNAL
    except KeyboardInterrupt as interrupt:
        discard_if_stalled()
        return exit_code(interrupt)
    except Exception as error:
        return _unexpected(error)


def _run(argv: Sequence[str] | None) -> int:
    from ..errors import GpuwatchError, NoProcessError

    end_on_signals()
    try:
        words = sys.argv[1:] if argv is None else argv
        if len(words) == 1 and words[0] not in COMMANDS and _names_host(words[0]):
            return _watch_on(words[0])
        if words[:1] == ["run"]:
            from .run import program_apart

            words = ["run", *program_apart(words[1:])]
        named = words[:1] if not words or words[0] in COMMANDS else COMMANDS
        known = parser(named)
        arguments, rest = known.parse_known_args(words)
        if rest:
            _not_known(known, words[0], rest)
        code: int = arguments.run(arguments)
    except SystemExit as leaving:  # argparse: usage, --help, --version
        return leaving.code if isinstance(leaving.code, int) else INTERNAL
    except NoProcessError as error:
        return _end(with_candidates(error))
    except GpuwatchError as error:
        return _end(error)
    return code


def _not_known(top: argparse.ArgumentParser, command: str, rest: Sequence[str]) -> NoReturn:
    """Words that are left over: names the command whose help shows what there is."""
    if command in COMMANDS:
        top.prog = f"{top.prog} {command}"
    top.error(f"unrecognized arguments: {' '.join(rest)}")


def _end(error: "GpuwatchError") -> int:
    write_notes(str(error).splitlines())
    return error.exit_code


def _unexpected(error: Exception) -> int:
    """A bug of ours: its message, and the traceback with GPUWATCH_DEBUG."""
    if os.environ.get("GPUWATCH_DEBUG"):
        traceback.print_exception(error)
        return INTERNAL
    message = " ".join(str(error).split())
    write_notes(
        [
            f"gpuwatch: unexpected {type(error).__name__}{': ' if message else ''}{message}",
            "This is a bug in gpuwatch. GPUWATCH_DEBUG=1 shows the traceback.",
        ]
    )
    return INTERNAL


if __name__ == "__main__":
    sys.exit(main())
