"""Two lanes of time, one for each clock, and lines between the same marks on both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Final, NamedTuple

from ...model.snapshot import PhaseStats, Snapshot
from ...steps import GpuStep, Step
from ...wording.numbers import count, span
from ...wording.steps import GPU_WAIT, drawn_phases
from ..charts.columns import runs_of
from ..text import Row, Span, ends, length
from .lanes import LaneBlock, Pair, blocks_of, cells_of, gpu_pieces, host_pieces, marks_of
from .phases import LOOKS, PhaseStyle, looks_of

# Which steps are drawn, and where in time.

COLUMNS_A_STEP: Final = 16
"""Enough to distinguish the parts of a step."""
LEAST_STEPS: Final = 2
BLOCK_COLUMNS: Final = 8
"""Steps that take less are drawn several as one: no room for three phases and what is between."""
CALM_NS: Final = 1_000_000_000
SHORT_NS: Final = 250_000_000
"""Of steps shorter than this a picture stays for a second: nobody reads four a second."""


class DrawnSpan(NamedTuple):
    """A stretch of time, and the step that it ends with."""

    from_ns: int
    column_ns: float
    last: Pair
    a_block: int
    """Steps that are drawn as one."""

    def column(self, t_ns: int) -> float:
        """Where a moment lies, in columns from the left."""
        return (t_ns - self.from_ns) / self.column_ns


def candidates(pairs: Sequence[Pair]) -> list[Pair]:
    """The steps that the picture can end with: those known on both clocks, else all."""
    return [pair for pair in pairs if pair.on_gpu is not None] or list(pairs)


def window_of(pairs: Sequence[Pair], last: Pair, columns: int) -> DrawnSpan:
    """The time until a step has ended on both clocks, from the beginning of as many steps before it
    as fit, and at least from its own."""
    at = pairs.index(last)
    ends_ns = _ends_ns(last)
    length_ns = max(1, last.step.end_ns - last.step.start_ns)
    steps = columns // COLUMNS_A_STEP - (ends_ns - last.step.end_ns) // length_ns
    if last.on_gpu is not None:
        steps = min(steps, max(LEAST_STEPS, _measured_run(pairs, at)))
    shown = pairs[max(0, at + 1 - max(1, steps)) : at + 1]
    from_ns = shown[0].step.start_ns
    column_ns = max(1.0, (ends_ns - from_ns) / columns)
    return DrawnSpan(from_ns, column_ns, last, _steps_a_block(shown, column_ns))


def _steps_a_block(pairs: Sequence[Pair], column_ns: float) -> int:
    """As many as take the columns that a block needs, by the middle one of them."""
    lengths = sorted(pair.step.end_ns - pair.step.start_ns for pair in pairs)
    middle_ns = max(1, lengths[len(lengths) // 2])
    return max(1, round(BLOCK_COLUMNS * column_ns / middle_ns))


def _measured_run(pairs: Sequence[Pair], at: int) -> int:
    """Steps in a row up to this one that the GPU's lane can show: where it is sampled, few."""
    first = at
    while first > 0 and pairs[first - 1].on_gpu is not None:
        first -= 1
    return at + 1 - first


def _ends_ns(pair: Pair) -> int:
    step, row = pair
    return step.end_ns if row is None else max(step.end_ns, row.gpu_end_ns)


# Lines between two lanes of time, in dots: eight to a cell.

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Braille: the bits of the left and of the right half of a cell, from the top."""
_BRAILLE = 0x2800
DOTS_X, DOTS_Y = 2, 4


class Slant(NamedTuple):
    """From a place in the upper lane to one in the lower lane, in columns from the left."""

    upper: float
    lower: float
    role: str


def slant_rows(slants: Sequence[Slant], columns: int, rows: int) -> list[Row]:
    """The lines, each from the first of the rows to the last; where they share a cell the later
    one gives it its colour."""
    dots = [[0] * columns for _ in range(rows)]
    roles = [["dim"] * columns for _ in range(rows)]
    height = rows * DOTS_Y
    for upper, lower, role in slants:
        for y in range(height):
            ends = [(upper + (lower - upper) * (y + at) / height) * DOTS_X for at in (0, 1)]
            first = max(0, floor(min(ends)))
            last = min(columns * DOTS_X - 1, max(floor(min(ends)), floor(max(ends) - 1e-9)))
            for x in range(first, last + 1):
                dots[y // DOTS_Y][x // DOTS_X] |= _DOTS[x % DOTS_X][y % DOTS_Y]
                roles[y // DOTS_Y][x // DOTS_X] = role
    return [_row(*one) for one in zip(dots, roles, strict=True)]


def _row(dots: Sequence[int], roles: Sequence[str]) -> Row:
    pairs = zip(dots, roles, strict=True)
    cells = [Span(chr(_BRAILLE + bits) if bits else " ", role) for bits, role in pairs]
    return runs_of(cells)


# What there is room for.

ORDER: Final = (
    *("numbers", "slants", "legend", "words", "slants", "numbers_below", "slants", "lanes"),
    *("slants", "slants", "lanes"),
)
"""What each further row is for."""


@dataclass(frozen=True, slots=True)
class DrawingRows:
    """Rows of each kind."""

    numbers: int = 0
    lanes: int = 1
    slants: int = 0
    """0: there is no second lane."""
    numbers_below: int = 0
    legend: int = 0
    words: int = 1


def plan_for(height: int, two_lanes: bool) -> DrawingRows:
    """The rows of a panel of this height, its heading included; what is left over is for a list."""
    plan = DrawingRows(slants=1 if two_lanes else 0)
    left = height - (5 if two_lanes else 4)
    for kind in ORDER:
        if not two_lanes and kind in ("slants", "numbers_below"):
            continue
        cost = 2 if two_lanes and kind == "lanes" else 1
        if left < cost:
            break
        left -= cost
        plan = replace(plan, **{kind: getattr(plan, kind) + 1})
    return plan


GUTTER = 6
"""Cells for the names of the lanes."""
MOSTLY = 0.8
SAME = 0.75
"""Columns: two marks nearer than this share a line."""


def picture_rows(
    pairs: Sequence[Pair],
    window: DrawnSpan,
    plan: DrawingRows,
    columns: int,
    phases: Sequence[PhaseStats] = (),
) -> list[Row]:
    """Numbers, the host's lane, and with a GPU the lines, its lane and the numbers again. `phases`
    of the window say whether what is left of a step is a wait for the GPU."""
    until_ns = window.from_ns + columns * window.column_ns
    near = [pair for pair in pairs if _touches(pair, window.from_ns, until_ns)]
    looks = _looks(near)
    if _waits_for_gpu(phases):
        looks["other"] = LOOKS[GPU_WAIT]
    out: list[Row] = []
    if plan.numbers:
        starts = [
            (window.column(pair.step.start_ns), pair.step) for pair in near if _begins(window, pair)
        ]
        out.append(_numbers(starts, "┌", window.last.step, columns))
    on_host = blocks_of([_host(pair) for pair in near], window.a_block)
    lane = cells_of(on_host, window.from_ns, window.column_ns, columns)
    out += [_lane(" host ", lane, looks), *[_lane("", lane, looks)] * (plan.lanes - 1)]
    if not plan.slants:
        return out
    lines = _slants(near, window, plan.slants)
    blank = Span(" " * GUTTER)
    out += [(blank, *line) for line in slant_rows(lines, columns, plan.slants)]
    rows = [pair.on_gpu for pair in near if pair.on_gpu is not None]
    on_gpu = blocks_of([_gpu(on) for on in rows], window.a_block)
    lane = cells_of(on_gpu, window.from_ns, window.column_ns, columns)
    out += [_lane("  GPU ", lane, looks), *[_lane("", lane, looks)] * (plan.lanes - 1)]
    if plan.numbers_below:
        below = [
            (window.column(pair.on_gpu.gpu_start_ns), pair.step)
            for pair in near
            if pair.on_gpu is not None and _begins(window, pair)
        ]
        out.append(_numbers(below, "└", window.last.step, columns))
    return out


def _begins(window: DrawnSpan, pair: Pair) -> bool:
    """A block begins with it, or it is the one that is described."""
    return pair is window.last or pair.step.number // pair.step.count % window.a_block == 0


def _host(pair: Pair) -> tuple[int, LaneBlock]:
    return pair.step.number // pair.step.count, host_pieces(pair)


def _gpu(on: GpuStep) -> tuple[int, LaneBlock]:
    return on.number // on.count, gpu_pieces(on)


def _touches(pair: Pair, from_ns: int, until_ns: float) -> bool:
    step, on = pair
    ends_ns = step.end_ns if on is None else max(step.end_ns, on.gpu_end_ns)
    return ends_ns > from_ns and step.start_ns < until_ns


def _looks(pairs: Sequence[Pair]) -> dict[str, PhaseStyle]:
    """Of the phases that these steps have."""
    names = {piece.phase for pair in pairs for piece in host_pieces(pair)}
    return {phase.name: look for phase, look in looks_of([PhaseStats(n, 1.0, 1.0) for n in names])}


def _waits_for_gpu(phases: Sequence[PhaseStats]) -> bool:
    """Most of what no other phase claims is one: by samples, so of single steps nobody can say."""
    shares = {phase.name: phase.share for phase in phases}
    wait = shares.get(GPU_WAIT, 0.0)
    return wait > 0 and wait >= MOSTLY * (wait + shares.get("other", 0.0))


def _lane(name: str, cells: Sequence[str | None], looks: dict[str, PhaseStyle]) -> Row:
    blank = PhaseStyle(" ", "", "", "text")
    drawn = [blank if phase is None else looks[phase] for phase in cells]
    fills = runs_of(Span(look.fill, look.role) for look in drawn)
    return (Span(f"{name:<{GUTTER}}", "dim"), *fills)


def _numbers(starts: Sequence[tuple[float, Step]], corner: str, last: Step, columns: int) -> Row:
    """The steps' numbers where they begin, as many as fit; the last one's always."""
    cells = [(" ", "dim")] * columns
    labelled = sorted(starts, key=lambda one: one[1] is not last)
    for column, step in labelled:
        text = f"{corner}{count(step.number)}"
        x = round(column)
        role = "strong" if step is last else "dim"
        if step is last:
            x = max(0, min(x, columns - len(text)))
        if x < 0 or x + len(text) > columns:
            continue
        taken = cells[max(0, x - 1) : x + len(text) + 1]
        if all(char == " " for char, _ in taken):
            cells[x : x + len(text)] = [(char, role) for char in text]
        elif cells[x][0] == " ":
            cells[x] = (corner, role)
    return (Span(" " * GUTTER), *runs_of(Span(char, role) for char, role in cells))


def _slants(near: Sequence[Pair], window: DrawnSpan, rows: int) -> list[Slant]:
    """From each mark on the host's clock to the same on the GPU's: of the last step all of them, of
    the others the start, unless a lag of more steps than there are rows made them a solid mass."""
    last = window.last
    far = _lag_steps(last) > rows
    lines: list[Slant] = []
    for pair in (*(pair for pair in near if pair is not last and not far), last):
        if pair.on_gpu is None:
            continue
        marks = zip(marks_of(host_pieces(pair)), marks_of(gpu_pieces(pair.on_gpu)), strict=True)
        role = "strong" if pair is last else "dim"
        own = [Slant(window.column(here), window.column(there), role) for here, there in marks]
        if pair is not last:
            lines.append(own[0])
        elif far and rows == 1:
            lines += [own[0], own[-1]]
        else:
            lines += _apart(own)
    return lines


def _apart(lines: Sequence[Slant]) -> list[Slant]:
    """Without those that lie on the one before."""
    kept: list[Slant] = []
    for line in lines:
        before = kept[-1] if kept else None
        near = before and max(line.upper - before.upper, line.lower - before.lower) < SAME
        if not near:
            kept.append(line)
    return kept


def _lag_steps(pair: Pair) -> float:
    step, on = pair
    assert on is not None
    return (on.gpu_end_ns - step.end_ns) / max(1, step.end_ns - step.start_ns)


def legend_row(snapshot: Snapshot, window: DrawnSpan, columns: int, width: int) -> Row:
    """What the fills are, and how long a piece of the axis is."""
    phases = drawn_phases(snapshot)
    entries = [
        (Span(look.fill, look.role), Span(f" {look.short}", "dim")) for _, look in looks_of(phases)
    ]
    if window.last.on_gpu is not None:
        entries.append((Span("⠑⠢", "text"), Span(" the same mark on both clocks", "dim")))
    bar = _scale_bar(window.column_ns, columns)
    left: Row = ()
    for entry in entries:
        longer = (*left, Span("  " if left else " "), *entry)
        if length(longer) <= width - len(bar) - 9:
            left = longer
    return ends(left, (Span(f"{bar} ", "dim"),), width)


def _scale_bar(column_ns: float, columns: int) -> str:
    """ "├── 50 ms ──┤": a round time of about a sixth of the axis."""
    most_ms = columns * column_ns / 6e6
    ms = 10.0 ** len(str(int(most_ms))) if most_ms >= 1 else 1.0
    while ms > most_ms:
        ms /= 2 if f"{ms:.0e}"[0] in "12" else 2.5
    cells = max(2, round(ms * 1e6 / column_ns))
    text = f" {span(ms / 1e3) if ms >= 1e3 else f'{ms:g} ms'} "
    line = "─" * max(0, cells - 2 - len(text))
    half = len(line) // 2
    return f"├{line[:half]}{text}{line[half:]}┤"
