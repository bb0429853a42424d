"""Training from one evaluation to the next: what an evaluation costs is known by whole cycles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from ..steps import EvaluationCycle
from .pauses import Pauses, evaluations, training_restarts
from .statistics import Share
from .step_time import pace_of, paused_of
from .thresholds import causes as limits
from .thresholds.hysteresis import ENTER_LOW, LEAST_STEPS
from .window import StepWindow


@dataclass(frozen=True, slots=True)
class Cycles:
    """Cycles in a row, each like the newest."""

    pauses: Pauses
    count: int
    epochs: bool
    """Each is one epoch of the training loader."""

    @property
    def alone(self) -> bool:
        """The run's first, in the middle of an epoch: nothing but the run's start makes it a
        rhythm."""
        return self.count == 1 and not self.epochs

    @property
    def goes_on(self) -> float:
        """How likely the next cycle ends in an evaluation too, 0 to 1: the rule of succession, as
        all so far did."""
        return (self.count + 1) / (self.count + 2)


def cycles(window: StepWindow) -> Cycles | None:
    """What evaluations cost by the cycles that were seen from their beginning to their end. Several
    alike are a rhythm, the run's start counting as a moment of it. One alone is likely to be: where
    it is an epoch of the loader, which has ended in an evaluation, and the next one is as long; and
    where it is the run's first, as loops count their steps from there. None else."""
    batches = window.loaders[0].batches if window.loaders else None
    held = _without_shared(window)
    alike = _alike([one for one in held if one.whole])
    if not alike and held and batches:
        alike = _epoch_of(held[-1], batches, window)
    if not alike or _is_over(alike[0], window):
        return None
    epochs = batches is not None and all(abs(one.fetches - batches) <= 1 for one in alike)
    from_the_start = alike[-1].first and alike[-1].steps >= LEAST_STEPS
    if len(alike) < 2 and not (epochs or from_the_start):
        return None  # nobody knows when the next comes
    trained_ns = sum(_training_ns(one, window) for one in alike)
    evaluated_ns = sum(one.evaluation_ns for one in alike)
    if trained_ns <= 0 or not evaluated_ns:
        return None
    count, steps = len(alike), sum(one.steps for one in alike)
    each_ns = evaluated_ns / count
    spread = max(abs(one.evaluation_ns - each_ns) for one in alike) / each_ns
    ratio = evaluated_ns / trained_ns
    share = Share(
        _of(ratio),
        _of(ratio * least_rate(count)),
        _of(ratio * (1 + max(limits.RHYTHM_ALIKE, spread))),
    )
    pauses = Pauses(
        share=share,
        events=count,
        each_ns=each_ns,
        longest_ns=max(one.evaluation_ns for one in alike),
        every_steps=steps / count,
        step_ns=trained_ns / steps,
        spacing_steps=steps / count,
        is_regular=True,
    )
    return Cycles(pauses, count, epochs)


@lru_cache(maxsize=4)
def best_known(window: StepWindow) -> Cycles | Pauses | None:
    """What evaluations cost, by whole cycles where they know more than the recent steps do: those
    hold no rhythm, or end within a cycle. Worked out once a window."""
    found, whole = evaluations(window), cycles(window)
    if whole is None or found is None:
        return whole or found
    seldom = found.spacing_steps is None
    is_better = seldom or found.share.low <= ENTER_LOW < whole.pauses.share.low
    return whole if is_better else found


def _without_shared(window: StepWindow) -> tuple[EvaluationCycle, ...]:
    """The cycles, less what starts with the workers of the training (`shared_starts`)."""
    if not training_restarts(window):
        return window.cycles
    return tuple(
        replace(one, evaluation_ns=one.evaluation_ns - one.shared_ns) if one.shared_ns else one
        for one in window.cycles
    )


def least_rate(count: int) -> float:
    """Where so many cycles of as many ended in an evaluation, the part of all that do at the least:
    the lower end of the 90 % interval of that rate, by Bayes with nothing known before. 0.22 after
    one, 0.37 after two."""
    return float(0.05 ** (1 / (count + 1)))


def _of(ratio: float) -> float:
    """The part of the whole that is `ratio` of the rest."""
    return ratio / (1 + ratio)


def _is_over(newest: EvaluationCycle, window: StepWindow) -> bool:
    """Training goes on for a whole cycle beyond the one that should have ended in an evaluation."""
    return window.steps_seen - newest.last_step > 2 * newest.steps


def _epoch_of(
    seen: EvaluationCycle, batches: int, window: StepWindow
) -> tuple[EvaluationCycle, ...]:
    """The epoch that ended in an evaluation, where its end alone was seen: the loader began anew at
    that step, and it is as long as the loader, at the pace of its end."""
    begun = [one.step for one in window.moments if one.kind == "epoch"]
    slack = max(2, limits.RHYTHM_ALIKE * seen.steps)
    near = any(abs(step - seen.last_step) <= slack for step in begun)
    if not near or not limits.RHYTHM_EVENTS <= seen.fetches <= batches:
        return ()
    times = batches / seen.fetches
    trained_ns = times * (seen.wall_ns - seen.evaluation_ns)
    wall_ns, steps = round(trained_ns) + seen.evaluation_ns, round(times * seen.steps)
    return (replace(seen, wall_ns=wall_ns, fetches=batches, steps=steps, first=False),)


def _alike(held: Sequence[EvaluationCycle]) -> tuple[EvaluationCycle, ...]:
    """The newest ones, as long as each other."""
    if not held:
        return ()
    newest = held[-1].fetches or held[-1].steps
    return tuple(
        takewhile(lambda one: _near(one.fetches or one.steps, newest), reversed(held)),
    )


def _near(one: int, other: int) -> bool:
    return abs(one - other) <= max(1, limits.RHYTHM_ALIKE * other)


def _training_ns(cycle: EvaluationCycle, window: StepWindow) -> float:
    """Training of a cycle, ns. What the run's first steps took longer comes once: the first cycle
    is as long as its steps are now, where that is less."""
    trained_ns = cycle.wall_ns - cycle.evaluation_ns
    rows = [row for row in window.steps if not paused_of(row)]
    if not cycle.first or not rows:
        return trained_ns
    count = sum(row.count for row in rows)
    usual_ns = sum((pace_of(row) + row.startup_ns / row.count) * row.count for row in rows) / count
    return min(trained_ns, usual_ns * cycle.steps)
