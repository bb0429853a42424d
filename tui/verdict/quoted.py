"""The call that is meant in a line of the user's own, and where it stands."""

import re
from typing import Final

from tui.verdict.places import position_of, spot
from tui.verdict.window import FrameShare

LONGEST: Final = 60
"""Characters of a call that are quoted."""


def call_at(place: FrameShare, call: re.Pattern[str]) -> str:
    """ "`loss.item()` at train.py:88"; the place alone where its line is not known."""
    where = position_of(place)
    if not place.line or not where:
        return spot(place)
    return f"`{_call_in(place.line, call)}` at {where}"


def _call_in(line: str, call: re.Pattern[str]) -> str:
    """The last match, which is the innermost or the end of a chain, with what it is called on and
    with its arguments; else the line."""
    found = list(call.finditer(line))
    if not found:
        return _short(line)
    start, end = found[-1].span()
    while start and (line[start - 1] in "_.)]" or line[start - 1].isalnum()):
        start = _opening(line, start - 1) if line[start - 1] in ")]" else start - 1
    if line[end - 1] == "(":
        end = _closing(line, end - 1)
    return _short(line[start:end])


def _opening(line: str, at: int) -> int:
    """Index of the bracket that the one at `at` closes; 0 where it is not on the line."""
    depth = 0
    for index in range(at, -1, -1):
        depth += (line[index] in ")]") - (line[index] in "([")
        if not depth:
            return index
    return 0


def _closing(line: str, at: int) -> int:
    """Index behind the bracket that closes the one at `at`; the line's end where there is none."""
    depth = 0
    for index in range(at, len(line)):
        depth += (line[index] in "([") - (line[index] in ")]")
        if not depth:
            return index + 1
    return len(line)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
