"""What a lane of the lens draws: nothing finer than a column can tell.

A column that shows whatever lies in its middle picks phases shorter than itself in one step and
misses them in the next: a pattern that the run does not have. So steps begin with a column, a phase
is drawn in all of them or in none, and steps of a few columns are drawn several as one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from tui.widgets.steps.lanes import Piece

SHOWN_FROM: Final = 0.5
"""Columns that a phase takes on average from which it has one of its own in every step."""

Block = Sequence[Piece]
"""The phases of a step, or of several as one, in time order."""
_Key = tuple[str, int]
"""A phase, and the how manieth of its name: Python is before the optimizer and after it."""


def blocks_of(steps: Iterable[tuple[int, Block]], a_block: int) -> list[Block]:
    """Steps with their numbers, `a_block` of them as one: every phase once, as long as all of
    theirs. Blocks are cut at fixed numbers, so that they stay as they are while the run goes on,
    and where a step is not known."""
    runs: dict[tuple[int, int], list[Block]] = {}
    for at, (number, pieces) in enumerate(steps):
        runs.setdefault((number // a_block, number - at), []).append(pieces)
    return [_as_one(run) for run in runs.values()]


def cells_of(
    blocks: Sequence[Block], from_ns: int, column_ns: float, columns: int
) -> list[str | None]:
    """The phase in each column; None where nothing is known."""
    shown = _long_enough(blocks, column_ns)
    cells: list[str | None] = [None] * columns
    for pieces in blocks:
        ends = (pieces[0].start_ns, pieces[-1].end_ns)
        first, after = (round((t_ns - from_ns) / column_ns) for t_ns in ends)
        drawn = [
            piece for key, piece in _keyed(pieces) if key in shown or _length(piece) >= column_ns
        ]
        phases = _shared_out(drawn or [max(pieces, key=_length)], after - first)
        for x, phase in enumerate(phases, start=first):
            if 0 <= x < columns:
                cells[x] = phase
    return cells


def _as_one(steps: Sequence[Block]) -> Block:
    if len(steps) == 1:
        return steps[0]
    sums = _sums(steps)
    ends = list(accumulate(sums.values(), initial=steps[0][0].start_ns))
    return [Piece(phase, ends[at], ends[at + 1]) for at, (phase, _) in enumerate(sums)]


def _long_enough(blocks: Sequence[Block], column_ns: float) -> set[_Key]:
    """The phases that have a column in every block that has them."""
    least_ns = SHOWN_FROM * column_ns * len(blocks)
    return {key for key, ns in _sums(blocks).items() if ns >= least_ns}


def _sums(blocks: Iterable[Block]) -> dict[_Key, int]:
    sums: dict[_Key, int] = {}
    for pieces in blocks:
        for key, piece in _keyed(pieces):
            sums[key] = sums.get(key, 0) + _length(piece)
    return sums


def _keyed(pieces: Block) -> Iterator[tuple[_Key, Piece]]:
    seen: dict[str, int] = {}
    for piece in pieces:
        nth = seen[piece.phase] = seen.get(piece.phase, 0) + 1
        yield (piece.phase, nth), piece


def _shared_out(pieces: Sequence[Piece], columns: int) -> list[str]:
    """So many columns in proportion to the pieces, one at least to each that has any time; the
    shortest leave where there are fewer columns than pieces."""
    told = [piece for piece in pieces if _length(piece) > 0]
    while len(told) > max(0, columns):
        told.remove(min(told, key=_length))
    if not told:
        return []
    whole = sum(_length(piece) for piece in told)
    ends = [round(columns * ns / whole) for ns in accumulate(_length(piece) for piece in told)]
    for at in range(len(ends)):
        after = len(ends) - 1 - at
        least = (ends[at - 1] if at else 0) + 1
        ends[at] = min(max(ends[at], least), columns - after)
    starts = [0, *ends[:-1]]
    return [
        piece.phase
        for piece, start, end in zip(told, starts, ends, strict=True)
        for _ in range(end - start)
    ]


def _length(piece: Piece) -> int:
    return piece.end_ns - piece.start_ns
