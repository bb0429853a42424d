"""What the hooks cost a step, from the blocks of the sprints: pure arithmetic."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.soak.sprint import BARE, BARE_AGAIN, HOOKED, Block

Triple = Mapping[str, Block]
"""A block of each arm."""

QUANTILES: Final = (0.1, 0.25, 0.5)
"""Of all blocks of an arm, for each figure of a block. What disturbs a block only ever adds to it,
so the quieter ones say more of a cost that every step pays; one that only some pay may be missing
in them."""
RESAMPLES: Final = 200


@dataclass(frozen=True)
class Cost:
    """us a step."""

    us: float
    """Hooks in place, beyond bare."""
    noise_us: float
    """Bare again, beyond bare (A/A)."""


def cost(triples: Sequence[Triple], column: int) -> Cost | None:
    """By one of a block's figures; None without a triple."""
    if not triples:
        return None
    hooked, bare, again = (
        _quantile([triple[arm][column] for triple in triples], QUANTILES[column])
        for arm in (HOOKED, BARE, BARE_AGAIN)
    )
    return Cost(hooked - (bare + again) / 2, again - bare)


def interval(triples: Sequence[Triple], column: int) -> tuple[float, float]:
    """In which 90 % of the bootstrapped costs lie, us. There must be a triple."""
    order = random.Random(0)
    found = [cost(order.choices(triples, k=len(triples)), column) for _ in range(RESAMPLES)]
    ends = sorted(one.us for one in found if one is not None)
    return ends[RESAMPLES // 20], ends[-RESAMPLES // 20]


def _quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[int(part * (len(values) - 1))]
