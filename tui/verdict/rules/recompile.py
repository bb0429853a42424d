"""torch.compile compiles again and again."""

from dataclasses import replace

from ..findings import Evidence, Finding
from ..forecast.interval import at_least
from ..format import ms, percent
from ..pauses import warm_recent
from ..scoring import cause
from ..statistics import share_of
from ..step_time import wall_of
from ..thresholds.causes import RECOMPILE_STEPS, RECOMPILES
from ..window import StepWindow


def recompile(window: StepWindow) -> Finding | None:
    """At least 3 steps with a compilation in the last 200 after the warm-up."""
    recent = warm_recent(window)
    newest = recent[-1].number if recent else 0
    rows = [row for row in recent if row.number > newest - RECOMPILE_STEPS]
    compiled = [row for row in rows if row.compile_ns]
    share = share_of([row.compile_ns for row in rows], [wall_of(row) for row in rows])
    if len(compiled) < RECOMPILES:
        return None
    each_ns = sum(row.compile_ns for row in compiled) / len(compiled)
    steps = sum(row.count for row in rows)
    text = f"{len(compiled)} of the last {steps} steps compiled, {ms(each_ns)} each"
    evidence = (Evidence(text, "hook", each_ns / 1e6, "ms"),)
    advice = (
        "shapes that vary: torch.compile(dynamic=True), or pad to a few sizes",
        "TORCH_LOGS=recompiles,graph_breaks names the guards that failed, and where it falls back "
        "to eager",
    )
    headline = f"recompilation takes {percent(share.mean)} of the time"
    found = cause("recompile", None, share, headline, evidence, advice)
    # Beyond its limit dynamo runs the function uncompiled, which no step here shows.
    return replace(found, forecast=at_least(found.speedup or 1.0))
