"""How the phases differ from step to step: worked out once a second, as it sorts every row."""

from collections.abc import Sequence
from math import sqrt
from operator import attrgetter
from statistics import fmean
from typing import Final, NamedTuple

from probe.wire.messages import Step
from tui.session.phases import START_UP
from tui.snapshot import Rare, Spread

MOST_ROWS: Final = 1000
"""The newest rows of a window: a loop of 500 steps a second has more than tell anything new."""
RARE: Final = 0.5
"""Of a phase that fewer steps have, means over all steps say neither how often nor how long."""
_FIELDS: Final = {
    "data": "data_ns",
    START_UP: "startup_ns",
    "forward": "forward_ns",
    "backward": "backward_ns",
    "optimizer": "optimizer_ns",
    "evaluation": "evaluation_ns",
    "checkpoint": "checkpoint_ns",
    "compile": "compile_ns",
}


class Spreads(NamedTuple):
    """Of a window's steps."""

    whole: Spread
    phases: dict[str, Spread]
    """By the names that phases have in a snapshot; those that took no time are left out."""
    merged: int
    """Most steps in one row."""


def spreads_of(steps: Sequence[Step]) -> Spreads | None:
    """The spreads of steps, oldest first; None without any."""
    rows = [row for row in steps[-MOST_ROWS:] if row.count]
    if not rows:
        return None
    counts = [row.count for row in rows]
    walls = [row.end_ns - row.start_ns for row in rows]
    parts = {name: list(map(attrgetter(field), rows)) for name, field in _FIELDS.items()}
    for name in {name for row in rows for name in row.phases}:
        own = [row.phases.get(name, 0) for row in rows]
        # A user's phase may bear one of our names.
        parts[name] = list(map(sum, zip(parts[name], own, strict=True))) if name in parts else own
    claimed = map(sum, zip(*parts.values(), strict=True))
    rest = [max(0, wall - named) for wall, named in zip(walls, claimed, strict=True)]
    phases = {
        name: _spread(values, counts)
        for name, values in {**parts, "other": rest}.items()
        if any(values)
    }
    return Spreads(_spread(walls, counts), phases, max(counts))


def _spread(sums_ns: Sequence[int], counts: Sequence[int]) -> Spread:
    means = [ns / count / 1e6 for ns, count in zip(sums_ns, counts, strict=True)]
    middle = fmean(means)
    ranked = sorted(zip(means, counts, strict=True))
    steps = sum(counts)
    return Spread(
        p50_ms=percentile(ranked, steps, 0.50),
        p95_ms=percentile(ranked, steps, 0.95),
        max_ms=ranked[-1][0],
        # `statistics.pstdev` adds up exact fractions, which takes ten times as long.
        error_ms=sqrt(fmean([(ms - middle) ** 2 for ms in means]) / len(means)),
        rare=_rare(means, counts),
    )


def _rare(means_ms: Sequence[float], counts: Sequence[int]) -> Rare | None:
    having = [(ms, times) for ms, times in zip(means_ms, counts, strict=True) if ms > 0]
    hidden = any(times > 1 for _, times in having)
    if hidden or not having or len(having) > RARE * sum(counts):
        return None
    return Rare(sum(counts) / len(having), fmean(ms for ms, _ in having))


def percentile(ranked: Sequence[tuple[float, int]], steps: int, part: float) -> float:
    """The smallest value that at least `part` of the steps do not exceed (nearest rank), from
    values in rising order, each with the steps that have it."""
    wanted = part * steps
    seen = 0
    for value, times in ranked:
        seen += times
        if seen >= wanted:
            return value
    return ranked[-1][0]
