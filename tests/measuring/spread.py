"""How far a figure can be trusted: the bootstrap."""

import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

RESAMPLES: Final = 400

Seen = TypeVar("Seen")


def spread(seen: Sequence[Seen], figure: Callable[[Sequence[Seen]], float]) -> tuple[float, float]:
    """Between which 90 % of the figures lie of what was seen, drawn anew as often as there was
    something. The same each time."""
    order = random.Random(0)
    drawn = sorted(figure(order.choices(seen, k=len(seen))) for _ in range(RESAMPLES))
    return drawn[RESAMPLES // 20], drawn[-RESAMPLES // 20]
