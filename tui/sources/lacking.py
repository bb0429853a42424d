"""That a job's collectives are not known, which is reported once it has been so for long."""

from collections.abc import Iterable, Sequence
from typing import Final

from ..verdict.job.matching import Bounds, Collective

NOT_WHOLE: Final = "no step's collectives are known on every rank that takes part in them"
LONG_NS: Final = 30_000_000_000
"""Collectives come every 3 to 30 s, the first of them not timed yet."""


def has_collectives(steps: Sequence[Bounds], issued: Iterable[Collective]) -> bool:
    """Whether a rank has issued any in these steps of its own, oldest first. Steps without
    collectives lack none."""
    return bool(steps) and any(
        steps[0].start_ns <= one.created_ns < steps[-1].end_ns for one in issued
    )


class Lacking:
    """Since when they are."""

    def __init__(self) -> None:
        self._since_ns: int | None = None

    def for_long(self, now_ns: int, lacks: bool) -> bool:
        """Takes whether they are now."""
        if not lacks:
            self._since_ns = None
            return False
        if self._since_ns is None:
            self._since_ns = now_ns
        return now_ns - self._since_ns >= LONG_NS
