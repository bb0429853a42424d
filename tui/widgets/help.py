"""The help in rows: the focused panel's keys, everywhere's, how to read, the other panels' keys."""

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise, zip_longest
from typing import Final

from tui.keys import ACTIONS, Action, actions_of
from tui.widgets.spans import EMPTY, Row, Span, cell_len, fit, wrap

COLUMN: Final = 48
"""Narrower than this a column would wrap nearly every line."""
MOST_COLUMNS: Final = 3
GAP: Final = 3
SIGN: Final = 11
"""Cells of a key or a sign, and the blanks behind it."""
MOST_LINES: Final = 4
"""Of one entry."""

READING: Final = (
    (Span("▲ critical", "critical"), "holds the run back: see NEXT"),
    (Span("◆ warning", "warning"), "holds it back a little, or will"),
    (Span("● info", "info"), "worth knowing, nothing to mend"),
    (Span("○", "strong"), "no verdict yet, or data missing"),
    (Span("≤ 2.3x", "strong"), "faster at most, never more"),
    (Span("~2.3x", "strong"), "an estimate"),
    (Span("[hook]", "dim"), "by the probe inside the run"),
    (Span("[event]", "dim"), "on the GPU's clock, by CUDA events"),
    (Span("[gpm]", "dim"), "read from the GPU's counters"),
    (Span("[nvml]", "dim"), "told by the GPU's driver"),
    (Span("[py-spy]", "dim"), "stacks, sampled without a pause"),
    (Span("[probe]", "dim"), "where threads stand, told once by the probe"),
    (Span("[proc]", "dim"), "told by the kernel"),
    (Span("█ ▒ ░", "area"), "up to a column's lowest, its mean, its peak; without ▒ █ is the mean"),
    (Span("┴", "dim"), "a step begins"),
    (Span("┄", "dim"), "on an axis: not measured; in a bar: the loader starts"),
    (Span("↑", "area"), "goes on above the scale"),
    (Span("blank", "dim"), "not measured: never drawn as 0"),
    (Span("duty", "dim"), "part of the time in which the GPU works"),
    (Span("period", "dim"), "from one tooth to the next: a step"),
    (Span("trough", "dim"), "how low it falls between two teeth"),
    (Span("lag", "dim"), "how far the GPU runs behind the host"),
    (Span("felt", "dim"), "of a wait on the host: the GPU stood idle; else it is hidden"),
    (Span("PSS", "dim"), "memory, what processes share counted once"),
    (Span("RSS", "dim"), "memory with pages of files; the charts of memory leave those out"),
    (Span("no core", "dim"), "ready to run, and no core was free"),
    (Span("too early", "dim"), "seen for too short a time to tell growth"),
)

Block = list[Row]


def help_rows(panel: str, width: int) -> list[Row]:
    """All of the help for a width, in columns where there is room; `panel`: the focused kind."""
    columns = max(1, min(MOST_COLUMNS, (width + GAP) // (COLUMN + GAP)))
    each = (width - GAP * (columns - 1)) // columns
    mine, others = _key_blocks(panel, each)
    blocks = [*mine, _block("How to read it", READING, each), *others]
    parts = [_stacked(part) for part in _split(blocks, columns)]
    rows: list[Row] = []
    for line in zip_longest(*parts, fillvalue=EMPTY):
        cells = [fit(row, each) for row in line]
        rows.append(tuple(span for cell in cells for span in (*cell, Span(" " * GAP)))[:-1])
    return rows


def title_of(panel: str) -> str:
    """Over the keys of one kind of panel."""
    return {"": "Everywhere", "page": "In this window"}.get(panel, f"In the {panel}")


def _key_blocks(panel: str, width: int) -> tuple[list[Block], list[Block]]:
    """Those of the focused panel and of everywhere, then those of the other panels."""
    kinds = list(dict.fromkeys(action.panel for action in ACTIONS))
    first = [kind for kind in dict.fromkeys((panel, "")) if kind in kinds]
    rest = [kind for kind in kinds if kind not in first]
    mine, others = (
        [_block(title_of(kind), map(_entry, actions_of(kind)), width) for kind in part]
        for part in (first, rest)
    )
    return mine, others


def _entry(action: Action) -> tuple[Span, str]:
    return Span(action.shown, "key"), action.description


def _block(title: str, entries: Iterable[tuple[Span, str]], width: int) -> Block:
    rows: Block = [(Span(f" {title}", "title"),)]
    for sign, text in entries:
        blank = " " * max(1, SIGN - cell_len(sign.text))
        lines = wrap(text, width - SIGN - 2, MOST_LINES)
        rows.append((Span("  "), sign, Span(blank + lines[0])))
        rows += [(Span(" " * (SIGN + 2) + line),) for line in lines[1:]]
    return rows


def _stacked(blocks: Sequence[Block]) -> Block:
    """Blocks below each other, a blank row before each but the first."""
    rows = [row for block in blocks for row in (EMPTY, *block)]
    return rows[1:]


def _split(blocks: Sequence[Block], columns: int) -> list[Sequence[Block]]:
    """The blocks in their order over so many columns, so that the longest is as short as can be."""
    cuts = combinations(range(1, len(blocks)), min(columns, len(blocks)) - 1)
    parts = [_parts(blocks, (0, *cut, len(blocks))) for cut in cuts]
    return min(parts, key=lambda columns: max(len(_stacked(column)) for column in columns))


def _parts(blocks: Sequence[Block], cuts: Sequence[int]) -> list[Sequence[Block]]:
    return [blocks[start:end] for start, end in pairwise(cuts)]
