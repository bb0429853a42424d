"""The training thread sleeps within a phase: it writes, asks a server, holds still for a lock."""

from tui.verdict import policy
from tui.verdict.asleep import asleep
from tui.verdict.bound import bound
from tui.verdict.device import counted_by, idle_of
from tui.verdict.feeding import loader_floor
from tui.verdict.figures import percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.places import (
    by_user_function,
    is_users,
    main_places,
    spot,
    told,
    waits_for_gpu,
)
from tui.verdict.ratio import without_rows
from tui.verdict.window import Window


def asleep_within(window: Window) -> Finding | None:
    """Sleep in lines that are neither PyTorch's nor a wait for the GPU, in whatever phase they lie:
    a request between the loss and its backward counts as forward. With a GPU only what leaves it
    idle is lost. Abstains without stacks, as they alone tell whose sleep it is."""
    slept, places = asleep(window), main_places(window)
    if slept is None or not places:
        return None
    mine = [place for place in places if is_users(place) and not waits_for_gpu(place)]
    mean = min(slept, sum(place.share for place in mine))
    told_by = window.activity
    if window.gpu_present:
        if told_by is None or told_by.busy is None:
            return None
        mean = min(mean, idle_of(window))
    if mean < policy.CONTRIBUTOR:
        return None
    where = by_user_function(mine)
    evidence = [
        Evidence(f"the training thread sleeps {percent(slept)} of the time", "proc", slept),
        *(told(place, "main-thread") for place in where[:1]),
    ]
    if window.gpu_present and told_by is not None:
        idle = idle_of(window)
        text = f"the GPU is idle {percent(idle)} of the time"
        evidence.append(Evidence(text, counted_by(told_by), idle))
    return bound(
        "host",
        None,
        without_rows(mean),
        f"the training thread sleeps in its own code {percent(mean)} of the time",
        tuple(evidence),
        (
            f"look at {spot(where[0])}: what it waits for can be done on another thread",
            "do it less often",
        ),
        loader_floor(window),
    )
