"""The picker in rows: what can be watched here, or how to make something so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..discovery.candidates import Candidate
from .text import EMPTY, Row, Span, clip, ends, row, rule, wrap

FRAME: Final = 5
"""Rows that are not the list: title, heading, names of the columns, what was typed, keys."""
LINES: Final = ("import probe", "probe.install()")
"""What a script needs at its top."""
TO_DO: Final = (
    "Nothing that this user may look at has a probe. Put these lines at the top of the training "
    "script, and start it:"
)
THEN: Final = "It is in the list as soon as it runs. To see a run now:"
NAMES: Final = ("PID", "USER", "RANK", "STEPS", "GPU", "SCRIPT")
MOST_USER: Final = 12


@dataclass(frozen=True, slots=True)
class Picking:
    """How far a person is."""

    candidates: tuple[Candidate, ...] | None
    """None: still looking."""
    typed: str = ""
    chosen: int = 0
    """Position in `shown`."""

    @property
    def shown(self) -> tuple[Candidate, ...]:
        """Those that have what was typed in their line."""
        return tuple(one for one in self.candidates or () if self.typed in _line(one))

    @property
    def pick(self) -> Candidate | None:
        """The one that Enter takes."""
        shown = self.shown
        return shown[min(self.chosen, len(shown) - 1)] if shown else None


def picker_rows(picking: Picking, width: int, height: int) -> list[Row]:
    """The whole screen."""
    shown, room = picking.shown, height - FRAME
    title = ends(
        (Span(" gpuwatch  ", "dim"), Span("which process?", "strong")),
        (Span("looked for every second ", "dim"),),
        width,
    )
    heading = rule("Processes", _sums(picking), width)
    if not shown:
        body: list[Row] = [EMPTY, *_nothing(picking, width)]
    else:
        body = _table(shown, picking, width, room)
    body = (body + [EMPTY] * height)[: room + 1]
    return [title, heading, *body, _typed(picking), _keys(width)]


def _sums(picking: Picking) -> list[str]:
    candidates = picking.candidates or ()
    probed = sum(one.found is not None for one in candidates)
    bare = len(candidates) - probed
    return [f"{probed} with a probe", *([f"{bare} without" if bare else ""])]


def _table(shown: Sequence[Candidate], picking: Picking, width: int, room: int) -> list[Row]:
    """The names of the columns, then a line a process, below its launcher; the chosen in sight."""
    cells = [_cells(one) for one in shown]
    wide = [max(len(row[at]) for row in (NAMES, *cells)) for at in range(5)]
    head = row("   " + _aligned(NAMES, wide), "dim")
    pick = picking.pick
    rows: list[Row] = []
    at_pick = 0
    for one, cell in zip(shown, cells, strict=True):
        before = shown[shown.index(one) - 1] if one is not shown[0] else None
        if one.launcher is not None and (before is None or before.launcher != one.launcher):
            rows.append(row(f"   {one.launcher.name} (pid {one.launcher.pid})", "dim"))
        is_pick = one is pick
        at_pick = len(rows) if is_pick else at_pick
        mark, role = (" ▸ ", "focus") if is_pick else ("   ", _role(one))
        rows.append((Span(mark, "focus"), Span(clip(_aligned(cell, wide), width - 4), role)))
    first = max(0, min(at_pick - room // 2, len(rows) - room))
    return [head, *rows[first : first + room]]


def _role(one: Candidate) -> str:
    return "dim" if one.found is None else "text"


def _aligned(cells: Sequence[str], wide: Sequence[int]) -> str:
    pid, user, rank, steps, gpu, script = cells
    return (
        f"{pid:>{wide[0]}}  {user:{wide[1]}}  {rank:>{wide[2]}}  {steps:>{wide[3]}}  "
        f"{gpu:>{wide[4]}}  {script}"
    )


def _cells(one: Candidate) -> tuple[str, ...]:
    label = f"└ {one.label}" if one.launcher else one.label
    return str(one.pid), clip(one.user, MOST_USER), one.rank, one.steps, one.gpu, label


def _line(one: Candidate) -> str:
    launcher = one.launcher.name if one.launcher else ""
    return f"{one.pid} {one.user} {one.label} {launcher}"


def _nothing(picking: Picking, width: int) -> list[Row]:
    if picking.candidates is None:
        return [row("   looking", "dim")]
    if picking.candidates:
        return [row(clip(f"   none of them has {picking.typed!r} in its line", width), "dim")]
    return [
        *_wrapped(TO_DO, width),
        EMPTY,
        *(row(f"       {line}", "key") for line in LINES),
        EMPTY,
        *_wrapped(THEN, width),
        EMPTY,
        row("       gpuwatch demo", "key"),
    ]


def _wrapped(text: str, width: int) -> list[Row]:
    return [row(f"   {line}") for line in wrap(text, width - 4, 3)]


def _typed(picking: Picking) -> Row:
    if picking.typed:
        return (Span(" find ", "dim"), Span(picking.typed, "strong"), Span("▏", "focus"))
    return EMPTY


def _keys(width: int) -> Row:
    keys = [("↑↓", "choose"), ("enter", "watch"), ("letters", "find")]
    left = tuple(
        span for key, word in keys for span in (Span(f" {key}", "key"), Span(f" {word} ", "dim"))
    )
    return ends(left, (Span("q", "key"), Span(" leave ", "dim")), width, gap=0)
