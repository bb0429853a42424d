"""How a place in the code that samples name is told to its user: the function and its file, the
user's own line that leads there, and the call in it that counts."""

import re
from collections.abc import Iterable
from typing import Final

from . import code_origin
from .findings import Evidence
from .format import percent
from .stack_samples import FrameShare

_FRAME: Final = re.compile(r"(?P<function>.*) \((?P<file>[^():]*)(:(?P<line>\d+))?\)$")
LONGEST: Final = 60
"""Characters of a call that are quoted."""


def function_of(frame: str) -> str:
    """ "load (PIL/ImageFile.py:300)" -> "load"."""
    match = _FRAME.match(frame)
    return (match["function"] if match else frame).rpartition(".")[2].strip()


def called_function(frame: str) -> str:
    """ "Envs.step_wait.<locals>.<listcomp> (a2c.py:302)" -> "step_wait": the function called there,
    for a frame within it."""
    return function_of(_whole_name(frame))


def called_at(frame: str) -> str:
    """ "Envs.step_wait (a2c.py:302)" of the same: the function, with the line in it."""
    return f"{_whole_name(frame)} ({frame.rpartition(' (')[2]}"


def _whole_name(frame: str) -> str:
    """ "Envs.step_wait", without what lies within."""
    match = _FRAME.match(frame)
    return (match["function"] if match else frame).partition(".<locals>")[0]


def file_of(frame: str) -> str:
    """ "load (PIL/ImageFile.py:300)" -> "ImageFile.py"; "" where there is none."""
    return path_of(frame).rpartition("/")[2]


def path_of(frame: str) -> str:
    """ "load (PIL/ImageFile.py:300)" -> "PIL/ImageFile.py"; "" where there is none."""
    return match["file"] if (match := _FRAME.match(frame)) else ""


def own_frame(place: FrameShare) -> str | None:
    """The innermost frame of the user's own; None where only a library's is known."""
    if place.caller:
        return place.caller
    return place.frame if code_origin.is_users(path_of(place.frame)) else None


def users_function(place: FrameShare) -> tuple[str, str]:
    """The user's innermost function, with its class, and its file."""
    frame = own_frame(place) or ""
    return frame.partition(" (")[0], file_of(frame)


def place_name(place: FrameShare) -> str:
    """The place, and the user's own line above it."""
    if place.caller and place.caller != place.frame:
        return f"{place.frame}, called from {place.caller}"
    return place.frame


def place_evidence(place: FrameShare, whose: str) -> Evidence:
    """ "162 of 200 worker samples (81%) are in load (PIL/ImageFile.py:300), called from …"."""
    counted = f"{percent(place.share)} of {whose} samples"
    if place.samples:
        seen = round(place.share * place.samples)
        counted = f"{seen:,} of {place.samples:,} {whose} samples ({percent(place.share)})"
    text = f"{counted} are in {place_name(place)}"
    return Evidence(text, "py-spy", place.share)


def position_of(place: FrameShare) -> str:
    """ "train.py:88", of the user's own line that leads there; "" where there is none."""
    match = _FRAME.match(place.caller or place.frame)
    return f"{match['file']}:{match['line']}" if match is not None and match["line"] else ""


def line_of(place: FrameShare) -> tuple[str, int]:
    """File and line of the user's own that leads there, to sort by."""
    file, _, line = position_of(place).rpartition(":")
    return file, int(line) if line else 0


def by_user_function(places: Iterable[FrameShare]) -> tuple[FrameShare, ...]:
    """The shares summed by the user's own function that leads to each place, the largest first.

    A slow loop spreads its samples over its lines, its comprehensions and what they call. A
    script's own level is no function: of its lines each stands for itself.
    """
    sums: dict[tuple[str, str, str], float] = {}
    first: dict[tuple[str, str, str], str] = {}
    samples = 0
    for place in places:
        frame = place.caller or place.frame
        match = _FRAME.match(frame)
        function = _whole_name(frame)
        alone = match["line"] or "" if match and function == "<module>" else ""
        key = (function, match["file"] if match else "", alone)
        sums[key] = sums.get(key, 0.0) + place.share
        samples = max(samples, place.samples)
        line = f":{match['line']}" if match and match["line"] else ""
        first.setdefault(key, f"{key[0]} ({key[1]}{line})" if match else frame)
    summed = (
        FrameShare(min(1.0, share), first[key], None, samples=samples)
        for key, share in sums.items()
    )
    return tuple(sorted(summed, key=lambda place: -place.share))


def call_at(place: FrameShare, call: re.Pattern[str]) -> str:
    """ "`loss.item()` at train.py:88"; the place alone where its line is not known."""
    where = position_of(place)
    if not place.line or not where:
        return place_name(place)
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
