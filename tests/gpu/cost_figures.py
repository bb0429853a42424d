"""What a probe adds to a step, from blocks that alternate: the arithmetic.

Costs are medians over the rounds of the difference to the round's bare block. A stamped step costs
more than the others and only some are stamped, so the mean is what counts; a median of steps would
hide them.
"""

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

BARE, BARE_AGAIN, UNWATCHED, WATCHED = "bare", "bare again", "unwatched", "watched"
ARMS: Final = (BARE, BARE_AGAIN, UNWATCHED, WATCHED)

Block = tuple[float, float]
"""(mean, median) of a block's steps, us; the mean is without the slowest 2 %, which are the
machine's."""
SLOWEST: Final = 0.02
RESAMPLES: Final = 400


@dataclass(frozen=True)
class Cost:
    """Of one arm."""

    arm: str
    rounds: int
    step_us: float
    """Bare mean."""
    cost_us: float
    low_us: float
    """90 % of the bootstrapped medians lie between these."""
    high_us: float
    median_cost_us: float
    """Of the blocks' median steps: what an unstamped step pays."""

    @property
    def share(self) -> float:
        """Of the bare step."""
        return self.cost_us / self.step_us


def block(times_ns: Sequence[int]) -> Block:
    """Mean and median of a block."""
    kept = sorted(times_ns)[: len(times_ns) - int(SLOWEST * len(times_ns))]
    return statistics.fmean(kept) / 1e3, statistics.median(times_ns) / 1e3


def cost(arm: str, rounds: Sequence[Mapping[str, Block]]) -> Cost:
    """Of one arm over the bare one."""
    means = [one[arm][0] - one[BARE][0] for one in rounds]
    medians = [one[arm][1] - one[BARE][1] for one in rounds]
    order = random.Random(0)
    spread = sorted(statistics.median(order.choices(means, k=len(means))) for _ in range(RESAMPLES))
    return Cost(
        arm,
        len(rounds),
        statistics.median(one[BARE][0] for one in rounds),
        statistics.median(means),
        spread[RESAMPLES // 20],
        spread[-RESAMPLES // 20],
        statistics.median(medians),
    )


def allowed_us(step_us: float) -> float:
    """30 us a step, and 0.5 % of one of 20 ms or more (the issue)."""
    return max(30.0, 0.005 * step_us) if step_us >= 15_000 else 30.0
