"""What `--help` prints: sentences wrapped to the terminal, examples as they stand."""

import argparse

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
