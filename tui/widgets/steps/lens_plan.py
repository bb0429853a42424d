"""What the step lens has room for."""

from dataclasses import dataclass, replace
from typing import Final

ORDER: Final = (
    *("numbers", "slants", "legend", "told", "slants", "numbers_below", "slants", "lanes"),
    *("slants", "slants", "lanes"),
)
"""What each further row is for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows of each kind."""

    numbers: int = 0
    lanes: int = 1
    slants: int = 0
    """0: there is no second lane."""
    numbers_below: int = 0
    legend: int = 0
    told: int = 1


def plan_for(height: int, two_lanes: bool) -> Plan:
    """The rows of a panel of this height, its heading included; what is left over is for a list."""
    plan = Plan(slants=1 if two_lanes else 0)
    left = height - (5 if two_lanes else 4)
    for kind in ORDER:
        if not two_lanes and kind in ("slants", "numbers_below"):
            continue
        cost = 2 if two_lanes and kind == "lanes" else 1
        if left < cost:
            break
        left -= cost
        plan = replace(plan, **{kind: getattr(plan, kind) + 1})
    return plan
