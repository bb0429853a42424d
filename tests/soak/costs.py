"""What the hooks cost a step, from the blocks of the sprints: pure arithmetic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.measuring.spread import spread
from tests.soak.sprint import BARE, BARE_AGAIN, HOOKED, Block

Triple = Mapping[str, Block]
"""A block of each arm."""

QUANTILES: Final = (0.1, 0.25, 0.5)
"""Of all blocks of an arm, for each figure of a block. What disturbs a block only ever adds to it,
so the quieter ones say more of a cost that every step pays; one that only some pay may be missing
in them."""


@dataclass(frozen=True)
class Cost:
    """us a step."""

    us: float
    """Hooks in place, beyond bare."""
    noise_us: float
    """Bare again, beyond bare (A/A)."""


def cost(triples: Sequence[Triple], column: int) -> Cost | None:
    """By one of a block's figures; None without a triple."""
    return _cost(triples, column) if triples else None


def interval(triples: Sequence[Triple], column: int) -> tuple[float, float]:
    """In which 90 % of the bootstrapped costs lie, us. There must be a triple."""
    return spread(triples, lambda drawn: _cost(drawn, column).us)


def _cost(triples: Sequence[Triple], column: int) -> Cost:
    hooked, bare, again = (
        _quantile([triple[arm][column] for triple in triples], QUANTILES[column])
        for arm in (HOOKED, BARE, BARE_AGAIN)
    )
    return Cost(hooked - (bare + again) / 2, again - bare)


def _quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[int(part * (len(values) - 1))]
