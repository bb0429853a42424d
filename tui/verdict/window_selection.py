"""Which steps to judge: warm, after the last change of pace, and not too old."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, log, sqrt
from statistics import median
from typing import Final

from msgspec import structs

from ..steps import Step
from .format import ms
from .step_time import issued_of, pace_of
from .thresholds import hysteresis as limits


@dataclass(frozen=True, slots=True)
class PaceChange:
    """The pace changed before the row `index`."""

    index: int
    before_ns: float
    after_ns: float
    """Median time of a step on either side."""
    what: str = ""
    """What changed, in words; "" where that is unclear."""
    first: int = 0
    """The row from which on the pace was the one before."""

    @property
    def factor(self) -> float:
        """Step time after over before."""
        return self.after_ns / self.before_ns


def last_change(paces_ns: Sequence[float]) -> PaceChange | None:
    """The last clear change of level in the times of steps, oldest first.

    CUSUM on block medians of log time, split again to the right of each change that is found, then
    Greyhound's validation: at least 10 steps on both sides, at least 10 % of the median.
    """
    found: PaceChange | None = None
    first = 0
    while (change := _one_change(paces_ns[first:])) is not None:
        found = replace(change, index=first + change.index, first=first)
        first = found.index
    return found


def _one_change(paces_ns: Sequence[float]) -> PaceChange | None:
    block = limits.CHANGE_BLOCK
    count = len(paces_ns) // block
    if count * block < 2 * limits.CHANGE_LEAST_STEPS or min(paces_ns) <= 0:
        return None
    offset = len(paces_ns) - count * block  # whole blocks, counted from the newest step
    levels = [
        log(median(paces_ns[start : start + block]))
        for start in range(offset, len(paces_ns), block)
    ]
    split, height = _highest_cusum(levels)
    if height < limits.CHANGE_CUSUM:
        return None
    return _validated(paces_ns, offset + split * block)


def _highest_cusum(levels: Sequence[float]) -> tuple[int, float]:
    """The split that separates the levels best, and by how many standard deviations."""
    count = len(levels)
    mean = sum(levels) / count
    # Differences of neighbours: one change among them does not widen their median.
    steps = sorted(abs(after - before) for before, after in pairwise(levels))
    # A median of absolute differences is 0.954 sigma: 0.6745 times the square root of 2.
    sigma = max(limits.CHANGE_NOISE_FLOOR, median(steps) / 0.954)
    best, best_at, running = 0.0, 0, 0.0
    least = limits.CHANGE_LEAST_STEPS // limits.CHANGE_BLOCK
    for split in range(1, count):
        running += levels[split - 1] - mean
        if least <= split <= count - least:
            height = abs(running) * sqrt(count / (split * (count - split))) / sigma
            if height > best:
                best, best_at = height, split
    return best_at, best


def _validated(paces_ns: Sequence[float], near: int) -> PaceChange | None:
    """The exact row within a block of `near`, if the two sides differ enough."""
    least, count = limits.CHANGE_LEAST_STEPS, len(paces_ns)
    before, after = median(paces_ns[:near]), median(paces_ns[near:])
    if abs(after / before - 1) < limits.CHANGE_LEAST:
        return None
    middle = (log(before) + log(after)) / 2
    low, high = (
        max(least, near - limits.CHANGE_BLOCK),
        min(count - 1, near + limits.CHANGE_BLOCK),
    )
    sides = [1 if (log(pace) > middle) == (after > before) else -1 for pace in paces_ns]
    # Each candidate is scored by the rows near it that lie on the right side.
    best = max(range(low, high + 1), key=lambda at: sum(sides[at:high]) - sum(sides[low:at]))
    # A cut is for ever: rather wait for the tenth step than keep some of the old pace.
    if best > count - least or sum(sides[best:]) < limits.CHANGE_CLEAR * sqrt(count - best):
        return None
    return PaceChange(best, before, after)


def warm_after(rows: Sequence[Step]) -> int:
    """Number of the last step of the warm-up; it may lie ahead of the newest row.

    `rows` begin with the oldest that is known. Only the first steps decide, so the
    answer stays once it is passed, and is 0 when those are no longer there. A training that begins
    with an evaluation warms up once more behind it: there its backward and its optimizer are new.
    """
    first, horizon = rows[0] if rows else None, _latest(limits.COMPILE_HORIZON)
    if first is not None and first.number - first.count >= horizon:
        return 0
    began = next((at for at, row in enumerate(rows) if not row.inference), 0)
    if not began:
        return _warm_after(rows[:horizon], horizon)
    before = rows[began - 1].number
    training = [
        structs.replace(row, number=row.number - before) for row in rows[began : began + horizon]
    ]
    return before + _warm_after(training, horizon)


def _warm_after(rows: Sequence[Step], horizon: int) -> int:
    early = [row for row in rows if _is_early(row, horizon)]
    compiled = max((row.number for row in early if row.compile_ns), default=0)
    least = limits.WARMUP_STEPS
    if compiled:
        least = max(limits.WARMUP_STEPS_COMPILING, compiled + limits.COMPILE_SETTLES)
    latest = _latest(compiled)
    if not compiled:
        latest = min(latest, _long_enough(early, latest))
    least = max(least, first_use := _last_first_use(early))
    latest = max(latest, first_use)
    for index in range(len(early)):
        row = early[index]
        done = row.number - row.count
        if done >= latest:
            break
        if done >= least and _is_stable(early[index : index + limits.STABLE_STEPS]):
            return done
    return latest


def _long_enough(early: Sequence[Step], latest: int) -> int:
    """Number of the last step within `WARMUP_GIVE_UP_NS` of the first one's start."""
    for row in early:
        until_ns = early[0].start_ns + limits.WARMUP_GIVE_UP_NS
        if row.end_ns >= until_ns and row.number >= limits.WARMUP_LEAST:
            return row.number
    return latest


def _last_first_use(early: Sequence[Step]) -> int:
    """Number of the last of the first steps whose net took far longer than in the others; 0 without
    one. Of waits for data nothing follows: those of a loader that is too slow come again."""
    rows = [row for row in early if row.number <= limits.WARMUP_GIVE_UP]
    works = [issued_of(row) / row.count for row in rows]
    if not works:
        return 0
    least_ns = max(limits.FIRST_USE_NS, limits.FIRST_USE * median(works))
    return max(
        (row.number for row, work in zip(rows, works, strict=True) if work > least_ns), default=0
    )


def _latest(compiled: int) -> int:
    """The warm-up never lasts longer than this many steps."""
    if not compiled:
        return limits.WARMUP_GIVE_UP
    settled = max(limits.WARMUP_STEPS_COMPILING, compiled + limits.COMPILE_SETTLES)
    return settled + limits.STABLE_STEPS


def _is_early(row: Step, horizon: int) -> bool:
    return row.number - row.count < horizon and (
        not row.compile_ns or row.number <= limits.COMPILE_HORIZON
    )


def _is_stable(rows: Sequence[Step]) -> bool:
    """Consecutive steps that take about the same time."""
    if sum(row.count for row in rows) < limits.STABLE_STEPS:
        return False
    paces = [pace_of(row) for row in rows]
    middle = median(paces)
    return all(abs(pace - middle) <= limits.STABLE_WITHIN * middle for pace in paces)


# Where the work of a step became another: batches of another size, inference after training.

_PARTS: Final[dict[str, Callable[[Step], int]]] = {
    "data wait": lambda row: row.data_ns,
    "forward": lambda row: row.forward_ns,
    "backward": lambda row: row.backward_ns,
    "optimizer": lambda row: row.optimizer_ns,
    "Python between the phases": lambda row: row.other_ns,
}


def new_work(rows: Sequence[Step]) -> int | None:
    """Index of the first row of the present work; None where it was the same all along.

    Both kinds of work must have lasted 10 rows: the last batch of an epoch is smaller, and
    batches of ever new sizes are one kind of work.
    """
    present = _same_until(rows, len(rows))
    if len(rows) - present < limits.CHANGE_LEAST_STEPS or not present:
        return None
    before = _same_until(rows, present)
    return present if present - before >= limits.CHANGE_LEAST_STEPS else None


def what_changed(before: Sequence[Step], after: Sequence[Step], by_ns: float) -> str:
    """ "batches of 32 → 64 samples", "data wait 20 ms → 310 ms"; "" where no single part of the
    step explains half of it, in its direction. `by_ns`: the change of the step."""
    (size, inference), (new_size, new_inference) = _work(before[-1]), _work(after[-1])
    if inference != new_inference:
        return "training → inference" if new_inference else "inference → training"
    if size and new_size and abs(new_size / size - 1) >= limits.CHANGE_LEAST:
        return f"batches of {size:.0f} → {new_size:.0f} samples"
    means = {name: (_usual(before, part), _usual(after, part)) for name, part in _PARTS.items()}
    sign = 1 if by_ns > 0 else -1
    name, (was, now) = max(means.items(), key=lambda item: sign * (item[1][1] - item[1][0]))
    whole = max(abs(by_ns), sum(abs(now - was) for was, now in means.values()))
    return f"{name} {ms(was)} → {ms(now)}" if sign * (now - was) > whole / 2 else ""


def _same_until(rows: Sequence[Step], end: int) -> int:
    """Index of the first of the rows before `end` that do the same work as the last of them."""
    if not end:
        return 0
    first, newest = end, rows[end - 1]
    samples, fetches, inference = newest.samples, newest.fetches, newest.inference
    while first:
        row = rows[first - 1]
        # Nearly all have the very same numbers.
        same = row.samples == samples and row.fetches == fetches and row.inference == inference
        if not same and not _alike(_work(row), _work(newest)):
            break
        first -= 1
    return first


def _alike(one: tuple[float | None, bool], other: tuple[float | None, bool]) -> bool:
    """An unknown size is not another size."""
    return one[1] == other[1] and (one[0] is None or other[0] is None or one[0] == other[0])


def _work(row: Step) -> tuple[float | None, bool]:
    """Samples of a batch, and whether there is no training."""
    size = row.samples / row.fetches if row.samples is not None and row.fetches else None
    return size, row.inference


def _usual(rows: Sequence[Step], part: Callable[[Step], int]) -> float:
    return median(part(row) / max(1, row.count) for row in rows)


@dataclass(frozen=True, slots=True)
class Choice:
    """The window's steps."""

    steps: tuple[Step, ...]
    warmup_left: int
    """Steps still needed before there can be a verdict; 0 once there are enough."""
    cut_ns: int
    """Start of the present pace and work: give it back with the next call."""
    change: PaceChange | None
    """Set by the call that found it; its `index` counts in `steps` of before the cut: use
    `steps[0]` as the first step of the new pace."""


def choose_window(all_steps: Sequence[Step], cut_ns: int = 0) -> Choice:
    """The steps to judge from all that are held, oldest first.

    It grows from 10 steps, or a few long ones, to 100; where those are less than 5 s, it is the
    last 5 s. `cut_ns` is what the last call returned: a change of pace stays cut after its far side
    has been forgotten.
    """
    if not all_steps:
        return Choice((), limits.WARMUP_STEPS + limits.LEAST_STEPS, cut_ns, None)
    warm = warm_after(all_steps)
    recent = _present(all_steps[-limits.CHANGE_ROWS :], warm, cut_ns)
    change = _change(recent)
    if change is not None:
        cut_ns = recent[change.index].start_ns
    newest = all_steps[-1]
    rows = all_steps[-limits.WINDOW_ROWS :]
    if newest.end_ns - rows[0].start_ns < limits.FAST_WINDOW_NS:
        rows = _since(all_steps, newest.end_ns - limits.FAST_WINDOW_NS)
    kept = _present(rows, warm, cut_ns)
    have = sum(row.count for row in kept)
    left = 0 if long_enough(kept) else max(0, enough_of(kept) - have)
    if not left and all(row.inference for row in all_steps):
        left = _may_train(_present(all_steps, warm, 0))
    if left and not have:
        left += max(0, warm - newest.number)
    return Choice(tuple(kept), left, cut_ns, change)


def _may_train(rows: Sequence[Step]) -> int:
    """Steps still needed of a run without a backward so far: many a training begins with a look at
    its validation set (llama2.c, Lightning's sanity check), of which nothing is to be said. A
    change of its pace does not begin that anew."""
    lasted_ns = rows[-1].end_ns - rows[0].start_ns
    mean_ns = max(1.0, lasted_ns / sum(row.count for row in rows))
    return max(0, ceil((limits.LONG_WINDOW_NS - lasted_ns) / mean_ns))


def long_enough(rows: Sequence[Step]) -> bool:
    """A few steps that are long, together."""
    if sum(row.count for row in rows) < limits.LEAST_LONG_STEPS:
        return False
    return rows[-1].end_ns - rows[0].start_ns >= limits.LONG_WINDOW_NS


def enough_of(rows: Sequence[Step]) -> int:
    """How many steps of such a length a verdict needs."""
    have = sum(row.count for row in rows)
    if not have:
        return limits.LEAST_STEPS
    mean_ns = max(1.0, (rows[-1].end_ns - rows[0].start_ns) / have)
    few = max(limits.LEAST_LONG_STEPS, ceil(limits.LONG_WINDOW_NS / mean_ns))
    # Those that are here were not enough, however close.
    return max(min(limits.LEAST_STEPS, few), min(limits.LEAST_STEPS, have + 1))


def _change(rows: Sequence[Step]) -> PaceChange | None:
    """Where the pace or the work last became another, and what did."""
    paces_ns = [pace_of(row) for row in rows]
    found, work = last_change(paces_ns), new_work(rows)
    if work is not None and (found is None or found.index < work):
        found = PaceChange(work, median(paces_ns[:work]), median(paces_ns[work:]))
    if found is None:
        return None
    by_ns = found.after_ns - found.before_ns
    before, after = rows[found.first : found.index], rows[found.index :]
    return replace(found, what=what_changed(before, after, by_ns))


def _present(rows: Sequence[Step], warm: int, cut_ns: int) -> list[Step]:
    return [row for row in rows if row.start_ns >= cut_ns and row.number - row.count >= warm]


def _since(rows: Sequence[Step], start_ns: int) -> Sequence[Step]:
    """Rows that ended after `start_ns`."""
    first = len(rows)
    while first and rows[first - 1].end_ns > start_ns:
        first -= 1
    return rows[first:]
