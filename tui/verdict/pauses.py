"""What stops the training now and then: checkpoints, evaluations, single long steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from math import ceil
from statistics import fmean, median

from ..steps import Step
from .code_places import evaluates, main_places, share_where
from .findings import Evidence
from .format import ms
from .statistics import Share, share_of
from .step_time import is_python, pace_of, spent, wall_of
from .thresholds import causes as limits
from .thresholds.hysteresis import LEAST_STEPS
from .window import StepWindow
from .window_selection import warm_after


@dataclass(frozen=True, slots=True)
class Pauses:
    """All pauses of one kind."""

    share: Share
    events: int
    each_ns: float
    longest_ns: int
    every_steps: float
    """Steps for each of them: what they cost is shared out over so many."""
    step_ns: float
    """Time of a step without them."""
    spacing_steps: float | None = None
    """Steps from one to the next, on average; None while there are too few for a rhythm."""
    is_regular: bool = False
    """They come in a rhythm, one like the other."""

    @property
    def mean_ns(self) -> float:
        """Time of a step with its part of them."""
        return self.step_ns + self.each_ns / self.every_steps

    @property
    def affordable_steps(self) -> int:
        """Steps between two that would cost 2 % of the time, rounded up to two digits."""
        if self.step_ns <= 0:
            return ceil(self.every_steps)
        steps = self.each_ns * (1 - limits.TARGET_BUDGET) / limits.TARGET_BUDGET / self.step_ns
        unit = int(10 ** max(0, len(str(int(steps))) - 2))
        return ceil(steps / unit) * unit


@lru_cache(maxsize=4)
def warm_recent(window: StepWindow) -> tuple[Step, ...]:
    """All recent rows after the warm-up, whatever the pace was since. Worked out once a window."""
    warm = warm_after(window.all_recent)
    return tuple(row for row in window.all_recent if row.number - row.count >= warm)


def checkpoints(window: StepWindow) -> Pauses | None:
    """Checkpoints, with the extra Python of the steps that hold one: a copy, an fsync."""
    theirs = saving_part(window)
    return _pauses(
        window,
        lambda row: row.checkpoint_ns,
        lambda row, usual: round(theirs * _with_other(row, usual)),
    )


@lru_cache(maxsize=4)
def saving_part(window: StepWindow) -> float:
    """Of the extra Python in steps with a checkpoint its own part, 0 to 1: where samples show an
    evaluation that no mark has, which may come in the same step, as much as they show of each."""
    evaluating = _unmarked_evaluation(window)
    if not evaluating:
        return 1.0
    saving = share_where(main_places(window), lambda one: one.phase == "checkpoint")
    return saving / (saving + evaluating)


def _unmarked_evaluation(window: StepWindow) -> float:
    """Part of the samples in evaluations that no mark has, 0 to 1."""
    if any(row.evaluation_ns for row in window.all_recent):
        return 0.0
    return share_where(main_places(window), evaluates)


def evaluations(window: StepWindow) -> Pauses | None:
    """Evaluations, with their own loader's start and the extra Python around them."""
    restarts = training_restarts(window)
    return _pauses(
        window,
        lambda row: row.evaluation_ns - (row.shared_startup_ns if restarts else 0),
        _with_other,
    )


def evaluation_start_ns(window: StepWindow) -> float:
    """Of an evaluation the start and end of its own loader's workers, ns: the mean of those that
    are recent, of which one with the training's start in the same step has none. 0 where most start
    none: workers that persist are started once."""
    rows = [row for row in window.all_recent if row.evaluation_ns]
    if 2 * sum(row.evaluation_startup_ns > 0 for row in rows) < len(rows):
        return 0.0
    shared = training_restarts(window)
    starts = [row.evaluation_startup_ns - shared * row.shared_startup_ns for row in rows]
    return fmean(starts) if starts else 0.0


def evaluation_data_part(window: StepWindow) -> float:
    """Of evaluations, the part that waits for batches of their loaders, 0 to 1."""
    rows = [row for row in warm_recent(window) if row.evaluation_ns]
    whole_ns = sum(row.evaluation_ns for row in rows)
    waits_ns = sum(row.evaluation_data_ns for row in rows)
    return min(1.0, waits_ns / whole_ns) if whole_ns else 0.0


def shared_starts(window: StepWindow) -> list[int]:
    """Start-up of evaluations' own workers, ns in each row of the window, where it falls into the
    same step as the restart of the training's. `persistent_workers` removes both, so that it is
    charged to the loader and not to the evaluations."""
    if not training_restarts(window):
        return [0] * len(window.steps)
    return [row.shared_startup_ns for row in window.steps]


def pause_evidence(found: Pauses, noun: str) -> tuple[Evidence, ...]:
    """How often a "checkpoint" comes, how long it takes, what that is of each step, and a step
    without it."""
    often = f"{_how_often(found, noun)}, {ms(found.each_ns)}"
    if found.events > 1:
        often += " each"
    if found.spacing_steps is not None:
        often += f": {ms(found.each_ns / found.every_steps)} per step"
    without = f"a step without one takes {ms(found.step_ns)}"
    return (
        Evidence(often, "hook", found.each_ns / 1e6, "ms"),
        Evidence(without, "hook", found.step_ns / 1e6, "ms"),
    )


def _how_often(found: Pauses, noun: str) -> str:
    """ "checkpoint every 50 steps", "one checkpoint so far"."""
    if found.spacing_steps is not None:
        steps = round(found.spacing_steps)
        return f"{noun} every {steps} steps" if steps > 1 else f"{noun} in every step"
    return f"one {noun} so far" if found.events == 1 else f"{found.events} {noun}s so far"


def spacing_of(numbers: Sequence[int]) -> float | None:
    """Mean distance of the numbers of steps that have an event; None below three: the time before
    the first and after the last says nothing of a rhythm."""
    if len(numbers) < limits.RHYTHM_EVENTS:
        return None
    return (numbers[-1] - numbers[0]) / (len(numbers) - 1)


def _is_regular(numbers: Sequence[int]) -> bool:
    """As far from each other, within a tenth or a step."""
    period = spacing_of(numbers)
    gaps = [after - before for before, after in pairwise(numbers)]
    return period is not None and max(gaps) - min(gaps) <= max(1.0, limits.RHYTHM_ALIKE * period)


def host_parts(rows: Sequence[Step]) -> list[int]:
    """Python between the phases in each row, ns, without what clings to a pause."""
    if not any(map(_paused, rows)):
        return [row.other_ns for row in rows]
    usual = _usual_other(rows)
    return [
        min(row.other_ns, round(usual * row.count)) if _paused(row) else row.other_ns
        for row in rows
    ]


def clinging_parts(window: StepWindow) -> list[int]:
    """Python between the phases that clings to a pause, in each row of the window, ns."""
    usual = host_parts(window.steps)
    return [row.other_ns - part for row, part in zip(window.steps, usual, strict=True)]


def starts_of_workers(window: StepWindow) -> list[int]:
    """Loader start-up of the training in each row of the window, and of its evaluation where that
    is shared, ns."""
    shared = shared_starts(window)
    return [row.startup_ns + start for row, start in zip(window.steps, shared, strict=True)]


@lru_cache(maxsize=4)
def epoch_parts(window: StepWindow) -> tuple[int, ...] | None:
    """What the start of an epoch takes in each row of the window, ns: all that its first step takes
    longer than others, less the wait for its batch. None where there are workers for longer than an
    epoch, where a GPU works beside the host, or where no other step shows what is usual.

    Until its first batch is there is half of it. The workers of the epoch before end first; and a
    fork leaves each page of the training to be copied when it is next written to, so that the net
    and the update of that step took 1.4 to 3.2 times as long, in 16 generated runs on two cores.
    What samples show of evaluations at the end of an epoch lies in the first step of the next, and
    is not its start (a diffusion net that draws pictures then: 1.7x by workers that persist was
    said, 1.1x measured).
    """
    loader = window.loaders[0] if window.loaders else None
    if window.gpu_present or loader is None or not loader.restarts:
        return None
    starts = [row.startup_ns for row in window.steps]
    usual = [_without_wait(row) for row in window.steps if not row.startup_ns]
    if len(usual) < limits.RHYTHM_EVENTS:
        return None
    each, evaluated_ns = (
        median(usual),
        _unmarked_evaluation(window) * spent(window.steps).wall_ns,
    )
    theirs = evaluated_ns / max(1, sum(map(bool, starts)))
    return tuple(
        shared + max(start, round((_without_wait(row) - each) * row.count - theirs) + start)
        if start
        else 0
        for row, start, shared in zip(window.steps, starts, shared_starts(window), strict=True)
    )


def _without_wait(row: Step) -> float:
    """Training time of one step of a row, without the wait for its batch, ns."""
    return pace_of(row) - (row.data_ns / row.count if row.count > 1 else row.data_ns)


def _pauses(
    window: StepWindow,
    length: Callable[[Step], int],
    clinging: Callable[[Step, float], int],
) -> Pauses | None:
    rows: Sequence[Step] = window.steps
    if not any(map(length, rows)) and not any(map(length, window.all_recent)):
        return None
    if sum(length(row) > 0 for row in rows) < limits.EVENTS_IN_WINDOW:
        recent, whole = warm_recent(window), _whole_periods(window.all_recent, length)
        if whole or sum(map(wall_of, recent)) > sum(map(wall_of, rows)):
            rows = whole or recent
    paused = [row for row in rows if length(row) > 0]
    if not paused:
        return None
    usual = _usual_other(rows)
    parts = [length(row) + clinging(row, usual) if length(row) > 0 else 0 for row in rows]
    walls = [wall_of(row) for row in rows]
    total = spent(rows)
    return Pauses(
        share=share_of(parts, walls),
        events=len(paused),
        each_ns=sum(parts) / len(paused),
        longest_ns=max(parts),
        every_steps=total.steps / len(paused),
        step_ns=max(0, total.wall_ns - sum(parts)) / max(1, total.steps),
        spacing_steps=spacing_of([row.number for row in paused]),
    )


def _whole_periods(rows: Sequence[Step], length: Callable[[Step], int]) -> tuple[Step, ...]:
    """The newest steps that hold whole periods of what comes regularly: one event in the last 19
    steps, of which it comes in every tenth, is half of what it costs. The run's start counts as a
    moment of the rhythm, so that two events may show it. Nothing without a rhythm."""
    numbers = [row.number for row in rows if length(row) > 0]
    if rows and rows[0].number == rows[0].count:
        numbers.insert(0, 0)
    period = spacing_of(numbers)
    if not period or not _is_regular(numbers):
        return ()
    least = limits.RHYTHM_FROM
    available = sum(row.count for row in rows if row.number - row.count >= least)
    held = int(available / period) * period
    return tuple(row for row in rows if row.number > rows[-1].number - held)


def _paused(row: Step) -> bool:
    return bool(row.checkpoint_ns or row.evaluation_ns)


def _usual_other(rows: Sequence[Step]) -> float:
    """Python between the phases of an ordinary step, ns. Without one, all of it is ordinary."""
    ordinary = [row.other_ns / max(1, row.count) for row in rows if not _paused(row)]
    return median(ordinary) if ordinary else float(max((row.other_ns for row in rows), default=0))


def _with_other(row: Step, usual: float) -> int:
    return max(0, row.other_ns - round(usual * row.count))


@lru_cache(maxsize=4)
def training_restarts(window: StepWindow) -> bool:
    """The training loader starts its workers anew each epoch, so a start-up in a step that also
    holds an evaluation is taken for the training's."""
    if not window.loaders:
        return False
    loader = window.loaders[0]
    if not loader.restarts or loader.iterations < 2:
        return False
    # Evaluations that come more often than epochs start workers of their own.
    rows = [row for row in window.all_recent if row.evaluation_ns]
    fetches = sum(row.fetches for row in window.all_recent)
    return not (loader.batches and rows and fetches / len(rows) < limits.MID_EPOCH * loader.batches)


def outliers(window: StepWindow, beside_named: bool = False) -> Pauses | None:
    """What such steps have more than others, over all recent steps: a slow logger every 50 steps
    is there twice in a window of 100, too seldom for an interval.

    Waiting for data, evaluations, checkpoints and compilations have rules of their own. A longer
    batch takes longer in its backward as well, and several long steps in a row are a change of
    pace: neither is an outlier here. `beside_named`: in a step with a checkpoint, or an evaluation
    that is marked, what it takes beside these counts as well.
    """
    rows = warm_recent(window)
    if len(rows) < LEAST_STEPS or not window.steps:
        return None
    paces = [_unnamed_ns(row) for row in rows]
    limit_ns = _limit_ns(paces)
    if max(paces) <= limit_ns or median(map(_unnamed_ns, window.steps)) > limit_ns:
        return None
    frozen = _is_mostly_forward(rows)
    works = [_work_ns(row, frozen) for row in rows]
    usual = _Usual(median(paces), limit_ns, median(works), beside_named)
    parts = _apart([usual.excess_ns(*one) for one in zip(rows, paces, works, strict=True)])
    events = sum(part > 0 for part in parts)
    if not events:
        return None
    total, numbers = spent(rows), [r.number for r, part in zip(rows, parts, strict=True) if part]
    return Pauses(
        share=share_of(parts, [wall_of(row) for row in rows]),
        events=events,
        each_ns=sum(parts) / events,
        longest_ns=max(parts),
        every_steps=total.steps / events,
        step_ns=max(0, total.wall_ns - sum(parts)) / max(1, total.steps),
        spacing_steps=spacing_of(numbers),
        is_regular=_is_regular(numbers),
    )


@dataclass(frozen=True, slots=True)
class _Usual:
    """An ordinary step: medians over rows, ns a step."""

    pace_ns: float
    limit_ns: float
    work_ns: float
    beside_named: bool

    def excess_ns(self, row: Step, pace_ns: float, work_ns: float) -> int:
        """What a row took longer, if it is an outlier by something that is not its batch."""
        longer_ns = pace_ns - self.pace_ns
        named = bool(row.evaluation_ns or row.checkpoint_ns)
        if pace_ns <= self.limit_ns or (named and not self.beside_named):
            return 0
        if work_ns - self.work_ns > (1 - limits.OUTLIER_ALONE) * longer_ns:
            return 0
        return round(longer_ns * row.count)


def _limit_ns(paces: Sequence[float]) -> float:
    """From where on a step is out of the ordinary."""
    pace = median(paces)
    spread = median(abs(other - pace) for other in paces)
    return pace + max(limits.OUTLIER_MADS * spread, limits.OUTLIER_LEAST * pace)


def _apart(parts: Sequence[int]) -> list[int]:
    """Without runs of outliers that are too long for single events."""
    kept: list[int] = []
    for is_outlier, run in groupby(parts, key=bool):
        held = list(run)
        too_long = is_outlier and len(held) > limits.OUTLIER_RUN
        kept += [0] * len(held) if too_long else held
    return kept


def _unnamed_ns(row: Step) -> float:
    """Time of one step without what has a name of its own."""
    pace_ns = _without_wait(row)
    return pace_ns if pace_ns > 0.0 else 0.0


def _is_mostly_forward(rows: Sequence[Step]) -> bool:
    """Most of the net is frozen: then a longer batch shows in its forward alone. By the usual step:
    without a loader evaluations are booked as forward."""
    forward = median(row.forward_ns / max(1, row.count) for row in rows)
    return median(row.backward_ns / max(1, row.count) for row in rows) < forward / 2


def _work_ns(row: Step, frozen: bool) -> float:
    """The part of one step that grows with its batch. Without a backward it is the forward."""
    named = sum(ns for name, ns in row.phases.items() if not is_python(name))
    forward_ns = 0 if row.backwards and not frozen else row.forward_ns
    return (forward_ns + row.backward_ns + row.optimizer_ns + named) / max(1, row.count)
