"""The arithmetic of the step lens: a step as pieces of time on the host's clock and on the GPU's.

What is measured are sums by phase and the lag at four marks; the order of the phases within a step
is that of every step: fetch, forward, backward, optimizer, and the rest.
"""

from collections.abc import Sequence
from typing import NamedTuple

from probe.wire.messages import GpuStep, Step

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


class Piece(NamedTuple):
    """A phase of a step, somewhere in time."""

    phase: str
    start_ns: int
    end_ns: int


class Pair(NamedTuple):
    """A step, and the same on the GPU's clock where it was measured there."""

    step: Step
    on_gpu: GpuStep | None


def pairs_of(steps: Sequence[Step], on_gpu: Sequence[GpuStep]) -> list[Pair]:
    """Every step, oldest first, with its other half. Told apart by their start: numbers begin
    again with the probe."""
    rows = {row.start_ns: row for row in on_gpu}
    return [Pair(step, rows.get(step.start_ns)) for step in steps]


def host_pieces(pair: Pair) -> list[Piece]:
    """The step on the host's clock. Python between the backward and the optimizer is told from
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


def gpu_pieces(row: GpuStep) -> list[Piece]:
    """The step on the GPU's clock."""
    return _laid_out(row, row.gpu_start_ns, 0, row.other_ns)


def marks_of(pieces: Sequence[Piece]) -> list[int]:
    """When the step begins, and the ends of fetch, forward, backward and optimizer, ns."""
    return [pieces[0].start_ns, *(_end_of(phase, pieces) for phase in MARKS)]


def _laid_out(row: Step | GpuStep, at_ns: int, early_ns: int, late_ns: int) -> list[Piece]:
    """Every phase, those without time too; `other` may lie before the optimizer and at the end."""
    parts = [(phase, getattr(row, field)) for phase, field in _IN_ORDER]
    parts.insert(5, ("other", early_ns))
    parts += [*row.phases.items(), ("other", late_ns)]
    pieces: list[Piece] = []
    for phase, ns in parts:
        pieces.append(Piece(phase, at_ns, at_ns + ns))
        at_ns += ns
    return pieces


def _end_of(phase: str, pieces: Sequence[Piece]) -> int:
    return next(piece.end_ns for piece in pieces if piece.phase == phase)
