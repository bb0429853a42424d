"""What a probe adds to a step, from blocks that alternate: the arithmetic.

A round is one block of each arm, side by side in time and in random order. Some of what the probe
does falls on few steps: the publisher takes a turn four times a second, a device's events are put
behind one step of many. A median of steps would hide that, and so would a median over blocks that
are shorter than a turn is apart. So the rounds of a whole period are put together first: a group's
figure is the mean of its rounds' differences. The cost is the median over the groups, or where
there are too few of them the mean of all rounds.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.measuring.spread import spread

BARE, BARE_AGAIN, PROBED = "bare", "bare again", "probed"
ARMS: Final = (BARE, BARE_AGAIN, PROBED)
FEWEST_GROUPS: Final = 5
PAUSE_NS: Final = 5_000_000
"""More than the probe takes at once: its publisher offers the interpreter lock after 0.3 ms."""


class Block(NamedTuple):
    """Some steps in a row of one arm, us a step."""

    mean_us: float
    median_us: float
    queue_us: float
    """Wait for a core, which is in neither of them."""
    thread_us: float
    """CPU time of the training thread."""
    publisher_us: float
    """CPU time of the publisher's thread."""


Round = Mapping[str, Block]


def without_pauses(times_ns: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """A round's steps, of each arm. What is `PAUSE_NS` longer than a bare step was held up by the
    machine, whichever arm it is in, and counts as just so much longer."""
    longest = round(statistics.median(times_ns[BARE] + times_ns[BARE_AGAIN])) + PAUSE_NS
    return {arm: [min(ns, longest) for ns in times] for arm, times in times_ns.items()}


@dataclass(frozen=True)
class Cost:
    """Of one arm over the bare one, us a step."""

    groups: int
    rounds: int
    step_us: float
    """Bare mean."""
    cost_us: float
    """Of the mean step."""
    low_us: float
    """90 % of the costs of rounds drawn anew lie between these."""
    high_us: float
    median_cost_us: float
    """Of the blocks' median steps: what a step pays that nothing else falls on."""
    queue_us: float
    """Longer wait for a core: the publisher's thread and the monitor want cores too."""
    thread_us: float
    """More CPU time of the training thread."""
    publisher_us: float
    """CPU time of the publisher's thread, all of it: some of it beside the training thread's."""

    @property
    def share(self) -> float:
        """Of the bare step."""
        return self.cost_us / self.step_us


def cost(arm: str, rounds: Sequence[Round], a_group: int) -> Cost:
    """Of one arm; so many rounds make up a group."""
    more_us = _more(arm, rounds, "mean_us")
    return Cost(
        len(grouped(more_us, a_group)),
        len(rounds),
        statistics.median(one[BARE].mean_us for one in rounds),
        typical(more_us, a_group),
        *spread(more_us, lambda drawn: typical(drawn, a_group)),
        statistics.median(_more(arm, rounds, "median_us")),
        typical(_more(arm, rounds, "queue_us"), a_group),
        typical(_more(arm, rounds, "thread_us"), a_group),
        statistics.fmean(one[arm].publisher_us for one in rounds),
    )


def typical(more_us: Sequence[float], a_group: int) -> float:
    """The median over the groups of their means."""
    return statistics.median(statistics.fmean(group) for group in grouped(more_us, a_group))


def grouped(more_us: Sequence[float], a_group: int) -> list[Sequence[float]]:
    """Those left over belong to the last group; all are one where there would be too few groups."""
    whole = len(more_us) // a_group
    if whole < FEWEST_GROUPS:
        return [more_us]
    starts = [at * a_group for at in range(whole)]
    ends = [*starts[1:], len(more_us)]
    return [more_us[start:end] for start, end in zip(starts, ends, strict=True)]


def _more(arm: str, rounds: Sequence[Round], figure: str) -> list[float]:
    return [getattr(one[arm], figure) - getattr(one[BARE], figure) for one in rounds]
