"""How far a figure would lie from itself if it were measured again: the bootstrap."""

import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

RESAMPLES: Final = 400

Seen = TypeVar("Seen")


def spread(
    seen: Sequence[Seen], figure: Callable[[Sequence[Seen]], float], part: float = 0.9
) -> tuple[float, float]:
    """Between which that part of the figures lies of what was seen, drawn anew as often as there
    was something. The same each time."""
    order = random.Random(0)
    resamples = round(RESAMPLES * 0.1 / (1 - part))  # as many lie beyond it, whichever part
    drawn = sorted(figure(order.choices(seen, k=len(seen))) for _ in range(resamples))
    beyond = round(resamples * (1 - part) / 2)
    return drawn[beyond], drawn[-beyond]
