"""torch.compile compiles again and again."""

import re
from dataclasses import dataclass, replace
from typing import Final

from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import ms, percent
from ..pauses import warm_recent
from ..scoring import cause
from ..statistics import share_of
from ..step_time import wall_of
from ..thresholds.causes import RECOMPILE_STEPS, RECOMPILES
from ..thresholds.hysteresis import COMPILE_HORIZON
from ..window import StepWindow

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


_PART: Final = re.compile(r"^\d+/\d+: ")
_PLACE: Final = re.compile(r"([\w.-]+:\d+ in [\w<>.]+)")
REMEDIES: Final[tuple[tuple[str, str], ...]] = (
    (
        r"size mismatch|stride mismatch|\.size\(\)|\.shape\b|rank mismatch",
        "shapes that vary: torch.compile(dynamic=True), torch._dynamo.mark_dynamic(x, dim) on the "
        "dimension that does, or pad to a few sizes",
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


def recompile(window: StepWindow) -> Finding | None:
    """At least 3 steps with a compilation among the last 200, the first of the run apart, and one
    of them after the warm-up: shapes that change from the start on keep the warm-up long."""
    newest = window.all_recent[-1].number if window.all_recent else 0
    rows = [row for row in window.all_recent if row.number > newest - RECOMPILE_STEPS]
    begun = next((row.number for row in window.all_recent if row.compile_ns), 0)
    if begun <= COMPILE_HORIZON:
        rows = [row for row in rows if row.number > begun]
    compiled = [row for row in rows if row.compile_ns]
    if len(compiled) < RECOMPILES or not any(row.compile_ns for row in warm_recent(window)):
        return None
    # Beside other causes it is held against the same steps, where those have enough of it.
    held = [row for row in window.steps if row.number > begun]
    if sum(row.compile_ns > 0 for row in held) < RECOMPILES:
        held = rows
    share = share_of([row.compile_ns for row in held], [wall_of(row) for row in held])
    each_ns = sum(row.compile_ns for row in compiled) / len(compiled)
    steps = sum(row.count for row in rows)
    text = f"{len(compiled)} of the last {steps} steps compiled, {ms(each_ns)} each"
    evidence = [Evidence(text, "hook", each_ns / 1e6, "ms")]
    guard = guard_of(window.settings.failed_guard) if window.settings is not None else None
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
    return replace(found, forecast=at_least(found.speedup or 1.0))
