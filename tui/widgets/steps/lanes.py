"""The arithmetic of the two clocks: a step as pieces of time on the host's clock and on the GPU's.

What is measured are sums by phase and the lag at four marks; the order of the phases within a step
is that of every step: fetch, forward, backward, optimizer, and the rest.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from ...steps import GpuStep, Step

_IN_ORDER = (
    ("data", "data_ns"),
    ("loader start-up", "startup_ns"),
    ("compile", "compile_ns"),
    ("forward", "forward_ns"),
    ("backward", "backward_ns"),
    ("optimizer", "optimizer_ns"),
    ("evaluation", "evaluation_ns"),
    ("checkpoint", "checkpoint_ns"),
)
MARKS = ("loader start-up", "forward", "backward", "optimizer")
"""The phases at whose ends the lag is known."""


class LanePiece(NamedTuple):
    """A phase of a step, somewhere in time."""

    phase: str
    start_ns: int
    end_ns: int


class Pair(NamedTuple):
    """A step, and the same on the GPU's clock where it was measured there."""

    step: Step
    on_gpu: GpuStep | None


def pairs_of(steps: Sequence[Step], on_gpu: Sequence[GpuStep]) -> list[Pair]:
    """Every step, oldest first, with its other half. Distinguished by their start: numbers begin
    again with the probe."""
    rows = {row.start_ns: row for row in on_gpu}
    return [Pair(step, rows.get(step.start_ns)) for step in steps]


def host_pieces(pair: Pair) -> list[LanePiece]:
    """The step on the host's clock. Python between the backward and the optimizer is separated from
    that after them by the lag at the optimizer's end; without one it all stands after them."""
    step, row = pair
    named_ns = sum(getattr(step, field) for _, field in _IN_ORDER) + sum(step.phases.values())
    rest_ns = max(0, step.end_ns - step.start_ns - named_ns)
    early_ns = 0
    if row is not None and row.lag_optimizer_ns is not None:
        ends_ns = _end_of("optimizer", gpu_pieces(row)) - row.lag_optimizer_ns
        upto_ns = sum(getattr(step, field) for _, field in _IN_ORDER[:6])
        early_ns = min(rest_ns, max(0, ends_ns - step.start_ns - upto_ns))
    return _laid_out(step, step.start_ns, early_ns, rest_ns - early_ns)


def gpu_pieces(row: GpuStep) -> list[LanePiece]:
    """The step on the GPU's clock."""
    return _laid_out(row, row.gpu_start_ns, 0, row.other_ns)


def marks_of(pieces: Sequence[LanePiece]) -> list[int]:
    """When the step begins, and the ends of fetch, forward, backward and optimizer, ns."""
    return [pieces[0].start_ns, *(_end_of(phase, pieces) for phase in MARKS)]


def _laid_out(row: Step | GpuStep, at_ns: int, early_ns: int, late_ns: int) -> list[LanePiece]:
    """Every phase, those without time too; `other` may lie before the optimizer and at the end."""
    parts = [(phase, getattr(row, field)) for phase, field in _IN_ORDER]
    parts.insert(5, ("other", early_ns))
    parts += [*row.phases.items(), ("other", late_ns)]
    pieces: list[LanePiece] = []
    for phase, ns in parts:
        pieces.append(LanePiece(phase, at_ns, at_ns + ns))
        at_ns += ns
    return pieces


def _end_of(phase: str, pieces: Sequence[LanePiece]) -> int:
    return next(piece.end_ns for piece in pieces if piece.phase == phase)


# What a lane draws: nothing finer than a column can show.

SHOWN_FROM: Final = 0.5
"""Columns that a phase takes on average from which it has one of its own in every step."""

LaneBlock = Sequence[LanePiece]
"""The phases of a step, or of several as one, in time order."""
_Key = tuple[str, int]
"""A phase, and the how manieth of its name: Python is before the optimizer and after it."""


def blocks_of(steps: Iterable[tuple[int, LaneBlock]], a_block: int) -> list[LaneBlock]:
    """Steps with their numbers, `a_block` of them as one: every phase once, as long as all of
    theirs. Blocks are cut at fixed numbers, so that they stay as they are while the run goes on,
    and where a step is not known."""
    runs: dict[tuple[int, int], list[LaneBlock]] = {}
    for at, (number, pieces) in enumerate(steps):
        runs.setdefault((number // a_block, number - at), []).append(pieces)
    return [_as_one(run) for run in runs.values()]


def cells_of(
    blocks: Sequence[LaneBlock], from_ns: int, column_ns: float, columns: int
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


def _as_one(steps: Sequence[LaneBlock]) -> LaneBlock:
    if len(steps) == 1:
        return steps[0]
    sums = _sums(steps)
    ends = list(accumulate(sums.values(), initial=steps[0][0].start_ns))
    return [LanePiece(phase, ends[at], ends[at + 1]) for at, (phase, _) in enumerate(sums)]


def _long_enough(blocks: Sequence[LaneBlock], column_ns: float) -> set[_Key]:
    """The phases that have a column in every block that has them."""
    least_ns = SHOWN_FROM * column_ns * len(blocks)
    return {key for key, ns in _sums(blocks).items() if ns >= least_ns}


def _sums(blocks: Iterable[LaneBlock]) -> dict[_Key, int]:
    sums: dict[_Key, int] = {}
    for pieces in blocks:
        for key, piece in _keyed(pieces):
            sums[key] = sums.get(key, 0) + _length(piece)
    return sums


def _keyed(pieces: LaneBlock) -> Iterator[tuple[_Key, LanePiece]]:
    seen: dict[str, int] = {}
    for piece in pieces:
        nth = seen[piece.phase] = seen.get(piece.phase, 0) + 1
        yield (piece.phase, nth), piece


def _shared_out(pieces: Sequence[LanePiece], columns: int) -> list[str]:
    """So many columns in proportion to the pieces, one at least to each that has any time; the
    shortest leave where there are fewer columns than pieces."""
    drawn_pieces = [piece for piece in pieces if _length(piece) > 0]
    while len(drawn_pieces) > max(0, columns):
        drawn_pieces.remove(min(drawn_pieces, key=_length))
    if not drawn_pieces:
        return []
    whole = sum(_length(piece) for piece in drawn_pieces)
    ends = [
        round(columns * ns / whole) for ns in accumulate(_length(piece) for piece in drawn_pieces)
    ]
    for at in range(len(ends)):
        after = len(ends) - 1 - at
        least = (ends[at - 1] if at else 0) + 1
        ends[at] = min(max(ends[at], least), columns - after)
    starts = [0, *ends[:-1]]
    return [
        piece.phase
        for piece, start, end in zip(drawn_pieces, starts, ends, strict=True)
        for _ in range(end - start)
    ]


def _length(piece: LanePiece) -> int:
    return piece.end_ns - piece.start_ns
