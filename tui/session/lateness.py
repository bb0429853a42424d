"""Since when ranks come late: by their collectives, or where these are not read by their marks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from ..model.observations import CollectivesSeen, RankUse
from ..verdict.job.exchange import StepExchange, hosts_of
from ..verdict.job.late import LateBy
from ..verdict.job.lateness import Late, Lateness, LateStep, lateness_of
from ..verdict.thresholds import ranks as limits

LATEST: Final = 2
"""Ranks of which it is worked out since when they are late: 1 to 7 ms each, of 4,096 steps."""


class LateHistory:
    """Who came late in which step, as far back as it is kept; and since when, as of the last
    reading."""

    def __init__(self) -> None:
        self._steps: list[LateStep] = []
        self._found: dict[Late, Lateness] = {}
        self.present_ns = 0
        """When the last change came that ranks' phases must not reach beyond; 0: none has."""

    def clear(self) -> None:
        """The ranks are others now."""
        self._steps.clear()
        self._found = {}
        self.present_ns = 0

    def add(
        self, seen: CollectivesSeen, steps: Sequence[StepExchange], paced_ns: float | None = None
    ) -> None:
        """Take the steps of one reading, which is of a moment soon after the last of them.
        `paced_ns`: as in `ExchangeFacts`."""
        walls_ns = [round(paced_ns) if paced_ns is not None else one.wall_ns for one in steps]
        hosts, left_ns = hosts_of(seen.hosts), sum(walls_ns)
        for one, wall_ns in zip(steps, walls_ns, strict=True):
            left_ns -= wall_ns
            by_node = zip(hosts, one.node_late_ns, strict=False)
            late_ns: list[tuple[Late, int]] = [*zip(seen.ranks, one.late_ns, strict=True), *by_node]
            least = limits.LATE_STEP * wall_ns
            late = {who: ns / wall_ns for who, ns in late_ns if ns >= least > 0}
            self._steps.append(LateStep(one.number, seen.t_ns - left_ns, late))
        if len(self._steps) > limits.MOST_HISTORY:
            half = len(self._steps) // 2
            self._steps[:half] = self._steps[:half:2]

    def judge(self, now: Sequence[StepExchange]) -> int:
        """See since when those are late that are latest in these newest steps: nobody else may be
        named. Returns the first step since the last change of any of them that is no news any
        more."""
        numbers = {one.number for one in now}
        lost: defaultdict[Late, float] = defaultdict(float)
        for one in self._steps:
            if one.number in numbers:
                for late, share in one.late.items():
                    lost[late] += share
        by_lost = sorted(lost, key=lambda late: -lost[late])
        ranks = [late for late in by_lost if isinstance(late, int)]
        hosts = [late for late in by_lost if isinstance(late, str)]
        latest: list[Late] = [*ranks[:LATEST], *hosts[:1]]
        judged = {late: lateness_of(self._steps, late) for late in latest}
        self._found = {
            late: one.dated_by(self._found.get(late))
            for late, one in judged.items()
            if one is not None
        }
        until_ns = self._steps[-1].ended_ns
        changed = [one for one in self._found.values() if one.present_from > one.first_step]
        known = [one for one in changed if one.present_ns <= until_ns - _news_ns(one)]
        always = [one for one in changed if one.of_steps >= limits.ALWAYS_LATE]
        self.present_ns = max((one.present_ns for one in (*known, *always)), default=0)
        return max((one.present_from for one in known), default=0)

    def at(self, now_ns: int) -> dict[Late, Lateness]:
        """With how long that has been."""
        return {
            late: replace(one, age_s=max(0, now_ns - one.since_ns) / 1e9) if one.since_ns else one
            for late, one in self._found.items()
        }


def _news_ns(change: Lateness) -> int:
    """For so long it is news, and steps of before are judged as well."""
    is_always = change.of_steps >= limits.ALWAYS_LATE
    return limits.ALWAYS_PRESENT_NS if is_always else limits.PRESENT_NS


def lateness_by_marks(
    readings: Mapping[int, Sequence[tuple[int, RankUse]]], rank: int, by: LateBy, now_ns: int
) -> Lateness | None:
    """By what the rank had longer than the others in each look at their pages, once a second: of
    each rank (t_ns, what was seen). A step is then the last one of a look."""
    at: defaultdict[int, dict[int, RankUse]] = defaultdict(dict)
    for number, looks in readings.items():
        for t_ns, use in looks:
            if use.counted and use.wall_ns:
                at[t_ns][number] = use
    history: list[LateStep] = []
    for t_ns, uses in sorted(at.items()):
        own = uses.pop(rank, None)
        if own is None or not uses:
            continue
        others_ns = median(_each_ns(use, by) for use in uses.values())
        share = (_each_ns(own, by) - others_ns) * own.counted / own.wall_ns
        late: dict[Late, float] = {rank: share} if share >= limits.LATE_STEP else {}
        history.append(LateStep(own.steps, t_ns, late))
    found = lateness_of(history, rank)
    if found is None or found.since_ns is None:
        return found
    return replace(found, age_s=max(0, now_ns - found.since_ns) / 1e9)


def _each_ns(use: RankUse, by: LateBy) -> float:
    """Of a step, what is spent in this."""
    work_ns = use.forward_ns + use.optimizer_ns
    spent = {
        "data": use.data_ns,
        "checkpoint": use.checkpoint_ns,
        "evaluation": use.evaluation_ns,
        "other": use.wall_ns
        - (use.data_ns + use.checkpoint_ns + use.evaluation_ns + use.backward_ns + work_ns),
    }
    return spent.get(by, work_ns) / use.counted
