"""Something holds single steps up, far longer than the others take: a logger, a file, a pause."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.device import counted_by, idle_of
from tui.verdict.feeding import loader_floor
from tui.verdict.figures import ms, percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.outliers import outliers
from tui.verdict.places import (
    by_user_function,
    is_users,
    main_places,
    share_where,
    spot,
    told,
    waits_for_gpu,
)
from tui.verdict.ratio import Share
from tui.verdict.window import Window


def now_and_then(window: Window) -> Finding | None:
    """The amortised excess of outlier steps, or one of half a minute.

    Less the time in which the thread had no core, which comes in bursts too. With a GPU only what
    leaves it idle counts: a step that reads the loss now and then waits for work that is done.
    """
    found = outliers(window)
    if found is None:
        return None
    places = main_places(window)
    lost, most = window.run_delay or 0.0, 1.0
    if window.gpu_present:
        if window.activity is None or window.activity.busy is None or not places:
            return None
        lost, most = lost + share_where(places, waits_for_gpu), idle_of(window)
    share = Share(
        *(
            min(most, max(0.0, part - lost))
            for part in (found.share.mean, found.share.low, found.share.high)
        )
    )
    long = found.longest_ns >= policy.LONG_PAUSE_NS
    if share.mean < (0.0 if long else policy.CONTRIBUTOR):
        return None
    evidence = [
        Evidence(
            f"one step in {found.every_steps:.0f} takes {ms(found.each_ns)} longer, up to "
            f"{ms(found.longest_ns)}; the others {ms(found.step_ns)}",
            "hook",
            found.each_ns / 1e6,
            "ms",
        )
    ]
    mine = by_user_function(p for p in places if is_users(p) and not waits_for_gpu(p))
    evidence += [told(place, "main-thread") for place in mine[:1]]
    if window.gpu_present and window.activity is not None:
        text = f"the GPU is idle {percent(most)} of the time"
        evidence.append(Evidence(text, counted_by(window.activity), most))
    advice = [
        f"every {found.affordable_steps:,} steps it would cost {percent(policy.TARGET_BUDGET)}; or "
        "do it on another thread"
    ]
    if mine:
        advice.insert(0, f"look at {spot(mine[0])}")
    headline = f"single steps that are held up take {percent(share.mean)} of the time"
    return bound(
        "host", None, share, headline, tuple(evidence), tuple(advice), loader_floor(window)
    )
