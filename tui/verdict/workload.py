"""Where the work of a step became another: batches of another size, inference after training."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

from probe.wire.messages import Step
from tui.verdict import policy
from tui.verdict.figures import ms

_PARTS: Final[dict[str, Callable[[Step], int]]] = {
    "data wait": lambda row: row.data_ns,
    "forward": lambda row: row.forward_ns,
    "backward": lambda row: row.backward_ns,
    "optimizer": lambda row: row.optimizer_ns,
    "Python between the phases": lambda row: row.other_ns,
}


def new_work(rows: Sequence[Step]) -> int | None:
    """Index of the first row of the present work; None where it was the same all along.

    Both kinds of work must have gone on for 10 rows: the last batch of an epoch is smaller, and
    batches of ever new sizes are one kind of work.
    """
    present = _same_until(rows, len(rows))
    if len(rows) - present < policy.CHANGE_LEAST_STEPS or not present:
        return None
    before = _same_until(rows, present)
    return present if present - before >= policy.CHANGE_LEAST_STEPS else None


def what_changed(before: Sequence[Step], after: Sequence[Step]) -> str:
    """ "batches of 32 → 64 samples", "data wait 20 ms → 310 ms"; "" where no single part of the
    step tells half of it."""
    (size, inference), (new_size, new_inference) = _work(before[-1]), _work(after[-1])
    if inference != new_inference:
        return "training → inference" if new_inference else "inference → training"
    if size and new_size and abs(new_size / size - 1) >= policy.CHANGE_LEAST:
        return f"batches of {size:.0f} → {new_size:.0f} samples"
    means = {name: (_usual(before, part), _usual(after, part)) for name, part in _PARTS.items()}
    name, (was, now) = max(means.items(), key=lambda item: abs(item[1][1] - item[1][0]))
    whole = sum(abs(now - was) for was, now in means.values())
    return f"{name} {ms(was)} → {ms(now)}" if abs(now - was) > whole / 2 else ""


def _same_until(rows: Sequence[Step], end: int) -> int:
    """Index of the first of the rows before `end` that do the same work as the last of them."""
    first = end
    while first and _alike(_work(rows[first - 1]), _work(rows[end - 1])):
        first -= 1
    return first


def _alike(one: tuple[float | None, bool], other: tuple[float | None, bool]) -> bool:
    """A size that nobody looked at is not another size."""
    return one[1] == other[1] and (one[0] is None or other[0] is None or one[0] == other[0])


def _work(row: Step) -> tuple[float | None, bool]:
    """Samples of a batch, and whether there is no training."""
    size = row.samples / row.fetches if row.samples is not None and row.fetches else None
    return size, row.inference


def _usual(rows: Sequence[Step], part: Callable[[Step], int]) -> float:
    return median(part(row) / max(1, row.count) for row in rows)
