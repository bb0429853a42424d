"""Triangular systems whose matrices are diagonal, by a backward's graph: a normal distribution of
several numbers that do not depend on each other, made of a full covariance. Dividing does the same.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from ..loaders import is_dispatched
from .autocast import name_of
from .device_reads import Answers, DeviceReads, place_of
from .graph_rows import kept
from .users import Users

DIAGONALS: Final = "diagonal_solves"
"""As `settings.Settings` has it."""
SOLVES: Final = "LinalgSolveTriangularBackward0"
MOST_SOLVES: Final = 8
"""That are looked at…"""
MOST_NUMBERS: Final = 1 << 16
"""…each with about so many numbers at the most."""

Diagonals = tuple[float, int]
"""The fields of `settings.DiagonalSolves`."""


def diagonals_among(
    users: Users, reads: DeviceReads | None = None
) -> Diagonals | Callable[[Answers], Diagonals | None] | None:
    """None where there are none; with `reads` it is known later."""
    if is_dispatched(sys.modules["torch"]):
        return None
    solves = [one for one in users if name_of(one) == SOLVES][:MOST_SOLVES]
    found = [one for node in solves if (one := kept(node, "self", place_of(reads))) is not None]
    matrices = [_some(one.detach()) for one in found if one.size(-1) > 1]
    if not matrices:
        return None
    size = max(int(one.size(-1)) for one in matrices)
    if reads is None:
        return _counted(map(_is_diagonal, matrices), size)
    numbers = [asked for one in matrices if (asked := reads.rows_of(one)) is not None]

    def known(answers: Answers) -> Diagonals | None:
        return _counted((all(map(_is_diagonal, answers.parts_of(one))) for one in numbers), size)

    return known if numbers else None


def _some(matrices: Any) -> Any:
    """The first of a batch."""
    each = matrices[0].numel() if matrices.dim() > 2 else 0
    return matrices[: max(1, MOST_NUMBERS // each)] if each else matrices


def _is_diagonal(matrices: Any) -> bool:
    on_it = matrices.diagonal(dim1=-2, dim2=-1)
    return int(matrices.count_nonzero()) == int(on_it.count_nonzero())


def _counted(each: Iterable[bool], size: int) -> Diagonals | None:
    found = list(each)
    return (sum(found) / len(found), size) if any(found) else None
