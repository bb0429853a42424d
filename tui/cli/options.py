"""The options of how the screen looks, the same for every command that opens one."""

import argparse

from ..terminal import THEMES, Appearance

SLOWEST, FASTEST = 1, 10
"""Frames a second: more than ten nobody sees, and each costs bytes on the link."""


def add_appearance(command: argparse.ArgumentParser) -> None:
    """Add them to a command."""
    look = command.add_argument_group("the screen")
    look.add_argument("--theme", choices=THEMES, default=THEMES[0], help="T changes it later")
    look.add_argument("--ascii", action="store_true", help="no characters beyond ASCII")
    look.add_argument("--no-color", action="store_true", help="no colours (as NO_COLOR=1 does)")
    look.add_argument("--mouse", action="store_true", help="take the mouse from the terminal")
    look.add_argument(
        "--fps", type=_frames, metavar="N", help="frames a second, 1 to 10 (4, over SSH 2)"
    )


def appearance_of(arguments: argparse.Namespace) -> Appearance:
    """What was asked for."""
    return Appearance(
        theme=arguments.theme,
        ascii_only=arguments.ascii,
        colour=not arguments.no_color,
        mouse=arguments.mouse,
        frames_s=arguments.fps,
    )


def _frames(text: str) -> float:
    """Frames a second. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdecimal() or not SLOWEST <= int(text) <= FASTEST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {SLOWEST} to {FASTEST}")
    return float(text)


# What `--help` prints: sentences wrapped to the terminal, examples as they stand.

HEADING = "examples:"


class Manual(argparse.HelpFormatter):
    """Leaves an epilog of examples alone, which argparse would run together."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(HEADING) else super()._fill_text(text, width, indent)


def examples(*rows: tuple[str, str]) -> str:
    """The epilog of a command: command lines as they would be typed, and what each does."""
    wide = max(len(command) for command, _ in rows)
    lines = [f"  {command:{wide}}  {what}".rstrip() for command, what in rows]
    return "\n".join([HEADING, *lines])
