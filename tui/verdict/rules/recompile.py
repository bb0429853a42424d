"""torch.compile compiles again and again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from ...steps import Step
from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import ms, percent
from ..scoring import cause, speedup_of
from ..statistics import Share, share_of
from ..thresholds.causes import RECOMPILE_LAPSE, RECOMPILE_NS, RECOMPILE_STEPS, RECOMPILES
from ..thresholds.hysteresis import COMPILE_HORIZON
from ..window import StepWindow
from ..window_selection import warm_after

# The guard that failed, in dynamo's words, and what helps against it.


@dataclass(frozen=True, slots=True)
class FailedGuard:
    """What a compiled function had assumed."""

    expression: str
    """ "alpha == 0.5", "tensor 'x' size mismatch at index 0. expected 3, actual 4"."""
    place: str
    """ "train.py:12 in forward"; "" where dynamo does not say."""

    @property
    def text(self) -> str:
        """ "`alpha == 0.5` no longer held (train.py:12 in forward)"."""
        where = f" ({self.place})" if self.place else ""
        return f"`{self.expression}` no longer held{where}"


OF_SIZES: Final = (
    "shapes that vary: torch.compile(dynamic=True), torch._dynamo.mark_dynamic(x, dim) on the "
    "dimension that does, or pad to a few sizes"
)
_PART: Final = re.compile(r"^\d+/\d+: ")
_PLACE: Final = re.compile(r"([\w.-]+:\d+ in [\w<>.]+)")
REMEDIES: Final[tuple[tuple[str, str], ...]] = (
    (
        r"size mismatch|stride mismatch|\.size\(\)|\.shape\b|rank mismatch",
        OF_SIZES,
    ),
    (
        r"len\(.*\) ?[=!]= ?\d+",
        "a list or dict whose length varies: pass a tensor, or keep its length",
    ),
    (
        r"== ?-?\d+(\.\d+)?(e[+-]?\d+)?\b",
        "a Python number that changes: make it a tensor (torch.tensor(x)), or keep it out of the "
        "compiled function",
    ),
    (
        r"grad_mode|GLOBAL_STATE|\.training\b",
        "gradient mode or train() and eval() change: compile one function for training and another "
        "for evaluation",
    ),
    (
        r"dtype mismatch|dispatch key|requires_grad mismatch|device mismatch",
        "tensors whose type or device changes: convert them before the compiled function",
    ),
    (
        r"check_(type|obj)_id|===? ?('|\"|True|False|None)| is (not )?(None|True|False)",
        "a Python value that changes: a compiled function for each of its few values, or take it "
        "out of the compiled function",
    ),
)
"""By the text of a guard, what is done about it: the first that is found."""
UNKNOWN: Final = "shapes that vary: torch.compile(dynamic=True), or pad to a few sizes"


def guard_of(text: str | None) -> FailedGuard | None:
    """Dynamo's own words: "0/1: s.k == 1  # return x + s.k  # train.py:5 in forward (HINT: …"."""
    if not text:
        return None
    expression, _, source = _PART.sub("", text).partition(" # ")
    place = _PLACE.search(source)
    return FailedGuard(expression.strip(), place[1] if place else "")


def remedy_of(guard: FailedGuard) -> str:
    """What helps against it."""
    matching = (what for text, what in REMEDIES if re.search(text, guard.expression))
    return next(matching, "keep what the guard names the same from call to call")


def of_sizes(window: StepWindow) -> bool:
    """What compiles anew does so for sizes that vary, as far as is known."""
    guard = _guard(window)
    return guard is None or remedy_of(guard) == OF_SIZES


def _guard(window: StepWindow) -> FailedGuard | None:
    return None if window.settings is None else guard_of(window.settings.failed_guard)


def recompile(window: StepWindow) -> Finding | None:
    """At least 3 steps with a compilation lately, the first of the run apart, one of them after the
    warm-up (shapes that change from the start on keep that long), and no end to them."""
    compiled = _lately(window)
    if len(compiled) < RECOMPILES or not _goes_on(window, compiled):
        return None
    # Beside other causes it is held against the same steps, where those have enough of it.
    first = window.steps[0].number if window.steps else 0
    held = [row for row in compiled if row.number >= first]
    held = held if len(held) >= RECOMPILES else compiled
    share = _between_ends(held)
    each_ns = sum(row.compile_ns for row in compiled) / len(compiled)
    steps = window.all_recent[-1].number - compiled[0].number + compiled[0].count
    text = f"{len(compiled)} of the last {steps:,} steps compiled, {ms(each_ns)} each"
    evidence = [Evidence(text, "hook", each_ns / 1e6, "ms")]
    guard = _guard(window)
    logs = (
        "TORCH_LOGS=recompiles,graph_breaks names the guards that failed, and where it falls back "
        "to eager"
    )
    remedy = UNKNOWN
    if guard is not None:
        evidence.append(Evidence(guard.text, "hook"))
        remedy = remedy_of(guard)
    headline = f"recompilation takes {percent(share.mean)} of the time"
    found = cause("recompile", None, share, headline, tuple(evidence), (remedy, logs))
    # Beyond its limit dynamo runs the function uncompiled, which no step here shows.
    # Of three compilations within the window the share is known to half of itself: of all it is
    # better known.
    least = max(share.low, _between_ends(compiled).low)
    return replace(found, forecast=at_least(speedup_of(least)))


def _between_ends(compiled: Sequence[Step]) -> Share:
    """Their part of the time, from the end of one to the end of the next: a window of three and a
    half periods holds three or four of them."""
    walls = [after.end_ns - before.end_ns for before, after in pairwise(compiled)]
    return share_of([row.compile_ns for row in compiled[1:]], walls)


def _begun(window: StepWindow) -> int:
    """The number of the step in which the run's first compilation came, where that is warm-up."""
    first = next((row.number for row in window.compiled), 0)
    return first if first <= COMPILE_HORIZON else 0


def _lately(window: StepWindow) -> list[Step]:
    """Steps with a compilation of the last 200 steps or 20 s, the longer."""
    if not window.all_recent:
        return []
    newest, begun = window.all_recent[-1], _begun(window)
    return [
        row
        for row in window.compiled
        if row.number > begun
        and (
            row.number > newest.number - RECOMPILE_STEPS
            or row.end_ns > newest.end_ns - RECOMPILE_NS
        )
    ]


def _goes_on(window: StepWindow, found: Sequence[Step]) -> bool:
    """One was after the warm-up, and the last no longer ago than chance allows."""
    recent, last = window.all_recent, found[-1]
    if last.number - last.count < warm_after(recent):
        return False
    spacing = (last.number - found[0].number) / (len(found) - 1)
    return recent[-1].number - last.number <= RECOMPILE_LAPSE * spacing
