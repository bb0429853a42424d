"""The doctor's answers in rows: what is not measured first to the eye, and what changes it."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from tui.doctor.check import Check, State
from tui.doctor.checks import GLYPHS, WORDS
from tui.widgets.spans import EMPTY, Row, Span, fit, wrap

ROLES: Final[dict[State, str]] = {
    "ok": "good",
    "partly": "warning",
    "missing": "critical",
    "unknown": "dim",
}
NAME: Final = 16
"""Cells of the longest id, and a blank."""
INDENT: Final = 3 + NAME
NARROW: Final = 60
"""Below this a check's name has a row of its own."""
BESIDE: Final = 150
"""From here on the remedy stands beside the answer."""
MOST_LINES: Final = 6


def doctor_rows(checks: Sequence[Check], width: int) -> list[Row]:
    """The sum, then every check."""
    rows = [_sum(checks), EMPTY]
    for check in checks:
        rows += _check(check, width)
    return rows


def _sum(checks: Sequence[Check]) -> Row:
    """ " ✓ 9 measured   ▲ 2 missing"."""
    spans: list[Span] = []
    for state, word in WORDS.items():
        number = sum(check.state == state for check in checks)
        if number:
            spans += [Span(f" {GLYPHS[state]} ", ROLES[state]), Span(f"{number} {word}  ")]
    return tuple(spans)


def _check(check: Check, width: int) -> list[Row]:
    mark = Span(f" {GLYPHS[check.state]} ", ROLES[check.state])
    role = "dim" if check.state == "unknown" else "text"
    if width < NARROW:
        said = _lines(check.says, role, width, 3)
        return [(mark, Span(check.id, "strong")), *said, *_fix(check, width, 3)]
    each = (width - INDENT) // 2 if width >= BESIDE else width - INDENT
    said = _lines(check.says, role, each, 0)
    head = (mark, Span(check.id.ljust(NAME), "strong"))
    if width >= BESIDE:
        parts = zip_longest(said, _fix(check, each, 2), fillvalue=EMPTY)
        both = [(*fit(left, each), *right) for left, right in parts]
        return [(*(head if at == 0 else _blank(INDENT)), *row) for at, row in enumerate(both)]
    below = _fix(check, each, 0)
    return [
        (*(head if at == 0 else _blank(INDENT)), *row) for at, row in enumerate([*said, *below])
    ]


def _fix(check: Check, width: int, indent: int) -> list[Row]:
    if not check.fix:
        return []
    lines = wrap(check.fix, width - indent - 3, MOST_LINES)
    return [
        (*_blank(indent), Span("→ " if at == 0 else "  ", "key"), Span(line, "key"))
        for at, line in enumerate(lines)
    ]


def _lines(text: str, role: str, width: int, indent: int) -> list[Row]:
    return [
        (*_blank(indent), Span(line, role)) for line in wrap(text, width - indent - 1, MOST_LINES)
    ]


def _blank(cells: int) -> Row:
    return (Span(" " * cells),) if cells else ()
