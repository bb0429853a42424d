"""Python between the phases: metrics, logging, whatever nobody named."""

from collections.abc import Sequence

from probe.wire.messages import Step
from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.device import idle_of, on_device
from tui.verdict.feeding import loader_floor
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.forecast.gain import gain_on_the_host, gain_without
from tui.verdict.pauses import host_parts
from tui.verdict.places import (
    by_user_function,
    is_users,
    main_places,
    share_where,
    spot,
    told,
    waits_for_gpu,
)
from tui.verdict.ratio import Share, share_of
from tui.verdict.rules.host_asleep import asleep_within
from tui.verdict.rules.host_now_and_then import now_and_then
from tui.verdict.spent import is_python, spent, wall_of
from tui.verdict.window import Window


def host(window: Window) -> Finding | None:
    """Single steps that are held up, every step's own Python, or sleep within a phase: of those
    that hold about as much as the largest the first, which says most."""
    found = [one for look in (now_and_then, _steady, asleep_within) if (one := look(window))]
    most = max((one.share or 0.0 for one in found), default=0.0)
    return next((one for one in found if (one.share or 0.0) >= policy.HOST_ALIKE * most), None)


def _steady(window: Window) -> Finding | None:
    """`other` and the user's own phases that are neither data nor compute; on the GPU's clock where
    that is read: there a wait for the GPU itself, as in `loss.item()`, is no loss."""
    rows = window.steps
    named = host_phases(rows)
    parts = [
        other + sum(row.phases.get(name, 0) for name in named)
        for other, row in zip(host_parts(rows), rows, strict=True)
    ]
    share = share_of(parts, [wall_of(row) for row in rows])
    places = main_places(window)
    device = on_device(window)
    if window.gpu_present and not places:
        return None  # only stacks tell Python from a wait for the GPU
    if device is not None:
        gaps = [
            row.other_ns + sum(row.phases.get(name, 0) for name in named) for row in device.rows
        ]
        share = share_of(gaps, [row.wall_ns for row in device.rows])
        if window.activity is not None and window.activity.busy is not None:
            idle = idle_of(window)  # clipping and averages are the GPU's work, not Python
            share = Share(*(min(idle, part) for part in (share.mean, share.low, share.high)))
    elif window.gpu_present:
        # This is also where `loss.item()` waits for the GPU.
        waits = share_where(places, waits_for_gpu)
        share = Share(*(max(0.0, part - waits) for part in (share.mean, share.low, share.high)))
    if share.mean < policy.CONTRIBUTOR:
        return None
    total = spent(rows)
    steps = max(1, total.steps)
    step_ns = total.wall_ns / steps
    part_ns = share.mean * step_ns
    where = "in Python between the phases"
    evidence = [
        Evidence(f"{ms(part_ns)} of {ms(step_ns)} a step {where}", "hook", part_ns / 1e6, "ms")
    ]
    largest = max(named, key=named.__getitem__, default=None)
    if largest is not None and named[largest] >= sum(parts) / 2:
        where = f'in your phase "{largest}"'
        evidence = [
            Evidence(f"{ms(part_ns)} of {ms(step_ns)} a step {where}", "hook", part_ns / 1e6, "ms")
        ]
    mine = by_user_function(p for p in places if is_users(p) and not waits_for_gpu(p))
    evidence += [told(place, "main-thread") for place in mine[:1]]
    floor = loader_floor(window)
    if floor > 1 - share.mean:
        text = f"the loader is busy {percent(floor)} of the time: it would be the limit next"
        evidence.append(Evidence(text, "py-spy", floor))
    evidence += [told(place, "main-thread") for place in mine[1:2]]
    advice = ["do it less often, or on another thread, or in one tensor expression"]
    if mine:
        advice.insert(0, f"look at {spot(mine[0])}")
    headline = f"{percent(share.mean)} of every step is {where}"
    gain = gain_without("host", window) or gain_on_the_host(window, share.mean)
    return bound("host", None, share, headline, tuple(evidence), tuple(advice), floor, gain)


def host_phases(rows: Sequence[Step]) -> dict[str, int]:
    """The user's phases that are Python between the steps, by name, ns."""
    sums: dict[str, int] = {}
    for row in rows:
        for name, ns in row.phases.items():
            sums[name] = sums.get(name, 0) + ns
    return {name: ns for name, ns in sums.items() if is_python(name)}
