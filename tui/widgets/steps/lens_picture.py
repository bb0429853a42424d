"""The picture of the step lens: two lanes of time, and lines between the same marks on both."""

from collections.abc import Sequence

from probe.wire.messages import GpuStep, Step
from tui.snapshot import Phase, Snapshot
from tui.widgets.charts.runs import runs_of
from tui.widgets.spans import Row, Span, ends, length
from tui.widgets.steps.lanes import Pair, gpu_pieces, host_pieces, marks_of
from tui.widgets.steps.lens_blocks import Block, blocks_of, cells_of
from tui.widgets.steps.lens_plan import Plan
from tui.widgets.steps.lens_window import Window
from tui.widgets.steps.phases import Look, looks_of
from tui.widgets.steps.slants import Slant, slant_rows
from tui.wording.numbers import count, span

GUTTER = 6
"""Cells for the names of the lanes."""
SAME = 0.75
"""Columns: two marks nearer than this share a line."""


def picture_rows(pairs: Sequence[Pair], window: Window, plan: Plan, columns: int) -> list[Row]:
    """Numbers, the host's lane, and with a GPU the lines, its lane and the numbers again."""
    until_ns = window.from_ns + columns * window.column_ns
    near = [pair for pair in pairs if _touches(pair, window.from_ns, until_ns)]
    looks = _looks(near)
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


def _begins(window: Window, pair: Pair) -> bool:
    """A block begins with it, or it is the one that is told."""
    return pair is window.last or pair.step.number // pair.step.count % window.a_block == 0


def _host(pair: Pair) -> tuple[int, Block]:
    return pair.step.number // pair.step.count, host_pieces(pair)


def _gpu(on: GpuStep) -> tuple[int, Block]:
    return on.number // on.count, gpu_pieces(on)


def _touches(pair: Pair, from_ns: int, until_ns: float) -> bool:
    step, on = pair
    ends_ns = step.end_ns if on is None else max(step.end_ns, on.gpu_end_ns)
    return ends_ns > from_ns and step.start_ns < until_ns


def _looks(pairs: Sequence[Pair]) -> dict[str, Look]:
    """Of the phases that these steps have."""
    names = {piece.phase for pair in pairs for piece in host_pieces(pair)}
    return {phase.name: look for phase, look in looks_of([Phase(n, 1.0, 1.0) for n in names])}


def _lane(name: str, cells: Sequence[str | None], looks: dict[str, Look]) -> Row:
    blank = Look(" ", "", "", "text")
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


def _slants(near: Sequence[Pair], window: Window, rows: int) -> list[Slant]:
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


def legend_row(snapshot: Snapshot, window: Window, columns: int, width: int) -> Row:
    """What the fills are, and how long a piece of the axis is."""
    phases = snapshot.steps.phases if snapshot.steps else ()
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
