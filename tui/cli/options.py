"""Screen options and help texts, shared by the commands."""

import argparse

from ..terminal import THEMES, Appearance

SLOWEST, FASTEST = 1, 10
"""Frames per second: more than ten cannot be seen, and each costs bytes on the link."""
WITH_VALUE = ("--theme", "--fps")
"""Of the options for the screen those that a value follows."""


def add_appearance(command: argparse.ArgumentParser) -> None:
    """Add them to a command."""
    look = command.add_argument_group("the screen")
    look.add_argument("--theme", choices=THEMES, default=THEMES[0], help="colours; T switches")
    look.add_argument("--ascii", action="store_true", help="ASCII characters only")
    look.add_argument("--no-color", action="store_true", help="no colours, like NO_COLOR=1")
    look.add_argument(
        "--mouse",
        action="store_true",
        help="use the mouse",
    )
    look.add_argument(
        "--fps",
        type=_frames,
        metavar="N",
        help="frames per second, 1 to 10 (4, over SSH 2)",
    )


def appearance_of(arguments: argparse.Namespace) -> Appearance:
    """The chosen appearance."""
    return Appearance(
        theme=arguments.theme,
        ascii_only=arguments.ascii,
        colour=not arguments.no_color,
        mouse=arguments.mouse,
        frames_s=arguments.fps,
    )


def _frames(text: str) -> float:
    """Frames per second. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdecimal() or not SLOWEST <= int(text) <= FASTEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {SLOWEST} to {FASTEST}")
    return float(text)


def add_whole_argv(command: argparse.ArgumentParser) -> None:
    """Add the option that leaves secrets where they are."""
    command.add_argument(
        "--argv", action="store_true", help="show the command line with its passwords and tokens"
    )


# `--help`: descriptions are wrapped, examples are not.

HEADING = "examples:"


class Manual(argparse.HelpFormatter):
    """Keeps the lines of an epilog of examples, which argparse would join."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(HEADING) else super()._fill_text(text, width, indent)


def examples(*rows: tuple[str, str]) -> str:
    """The epilog of a command: command lines, and what each does."""
    wide = max(len(command) for command, _ in rows)
    lines = [f"  {command:{wide}}  {what}".rstrip() for command, what in rows]
    return "\n".join([HEADING, *lines])
