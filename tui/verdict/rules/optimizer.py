"""The optimizer's own share of the step, amortised over accumulated micro-steps."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.device import on_device
from tui.verdict.feeding import loader_floor
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Evidence, Finding, Source
from tui.verdict.forecast.gain import gain_without
from tui.verdict.places import main_places, steps_one_by_one, told
from tui.verdict.ratio import share_of
from tui.verdict.rules.optimizer_advice import for_this_optimizer
from tui.verdict.spent import spent, wall_of
from tui.verdict.window import Window


def optimizer(window: Window) -> Finding | None:
    """Time in `optimizer.step()`. A step with 8 backwards has one of them, so the
    ratio of sums is the amortised share. On the GPU's clock where that is read."""
    rows = window.steps
    share = share_of([row.optimizer_ns for row in rows], [wall_of(row) for row in rows])
    device = on_device(window)
    if device is not None:
        measured = device.rows
        share = share_of([row.optimizer_ns for row in measured], [row.wall_ns for row in measured])
    if share.mean < policy.CONTRIBUTOR:
        return None
    total = spent(rows)
    calls = max(1, sum(row.optimizer_steps for row in rows))
    step_ns = total.wall_ns / max(1, total.steps)
    part_ns = share.mean * step_ns
    each_ns = part_ns * total.steps / calls
    source: Source = "hook" if device is None else "event"
    evidence = [
        Evidence(f"{ms(part_ns)} of {ms(step_ns)} a step", source, part_ns / 1e6, "ms"),
        Evidence(f"{ms(each_ns)} for each call of step()", source, each_ns / 1e6, "ms"),
    ]
    looped = [place for place in main_places(window) if steps_one_by_one(place)]
    evidence += [told(place, "main-thread") for place in looped[:1]]
    headline = f"the optimizer takes {percent(share.mean)} of every step"
    return bound(
        "optimizer",
        None,
        share,
        headline,
        tuple(evidence),
        for_this_optimizer(window),
        loader_floor(window),
        gain_without("optimizer", window, at_most=not looped),
    )
