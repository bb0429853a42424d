"""Python between the phases: metrics, logging, anything without a phase."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import median
from typing import NamedTuple

from ..between_phases import not_the_users, part_of_update
from ..code_places import (
    clips,
    copies_to_gpu,
    in_collective,
    is_in_forward,
    main_places,
    share_held,
    share_seen,
    share_where,
    waits_for_gpu,
    works_on_host,
)
from ..cpu_wait import asleep
from ..exposed_wait import loader_ends
from ..findings import Evidence, Finding
from ..forecast.gain import gain_on_the_host, gain_without
from ..forecast.interval import interval_of
from ..format import ms, percent
from ..idle_ledger import (
    evaluated_within,
    idle_ledger,
    keeps_up,
    python_seen,
    python_within,
)
from ..loader import loader_floor
from ..on_device import counted_by, idle_of, on_device
from ..pauses import Pauses, host_parts, outliers, warm_recent
from ..place_names import by_user_function, place_evidence, place_name
from ..scoring import cause, held_by
from ..stack_samples import FrameShare
from ..statistics import Share, at_most, lesser, share_of
from ..step_time import between_of, host_phases, spent, wall_of
from ..thresholds.causes import HOST_ALIKE, TARGET_BUDGET
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow
from .beside_the_net import beside_the_net, users_lines
from .debugging import debugging
from .made_and_copied import made_and_copied
from .on_cpu import beside_gpu, on_cpu, traced_on_cpu
from .within_net import TURNS, forecast_on_cpu, looped, unlearned


class _SlowSteps(NamedTuple):
    """Outlier steps, and what they hold longer than others, the wait for a core among it."""

    found: Pauses
    others: float
    """Part of the time that may be theirs, and is another rule's."""
    most: float
    """What can be lost: with a GPU what it idles for."""
    between: bool
    """They hold it between the phases, where `_steady` sees it too. A wait for a core lies in
    whatever phase is at work."""

    def share(self, waits: float) -> Share:
        """Without what `waits` for a core: of what lies between the phases as much as of all else;
        of other slow steps that wait may be all, since it comes in bursts."""
        kept, lost = 1.0 - waits, self.others
        if not self.between:
            kept, lost = 1.0, lost + waits
        parts = (self.found.share.mean, self.found.share.low, self.found.share.high)
        return Share(*(min(self.most, kept * max(0.0, part - lost)) for part in parts))


@lru_cache(maxsize=4)
def _slow_steps(window: StepWindow) -> _SlowSteps | None:
    """What ends the loader's workers, and evaluations that samples show, is no slow step's. With a
    GPU only what leaves it idle counts: a step that reads the loss now and then waits for work that
    is done."""
    found = outliers(window)
    if found is None:
        return None
    places = main_places(window)
    others = loader_ends(window).mean + evaluated_within(window)
    between = _longer_between(window) >= HOST_ALIKE * found.share.mean
    if not window.gpu_present:
        return _SlowSteps(found, others, 1.0, between)
    if window.activity is None or window.activity.busy is None or not places:
        return None
    others += share_where(places, waits_for_gpu)
    return _SlowSteps(found, others, idle_of(window), between)


def _longer_between(window: StepWindow) -> float:
    """Part of the time by which Python between the phases is longer than in a usual step."""
    rows = warm_recent(window)
    parts = host_parts(rows)
    usual = median(part / max(1, row.count) for part, row in zip(parts, rows, strict=True))
    longer = (part - usual * row.count for part, row in zip(parts, rows, strict=True))
    return sum(max(0.0, one) for one in longer) / max(1, spent(rows).wall_ns)


def now_and_then(window: StepWindow) -> Finding | None:
    """The amortised excess of outlier steps; one alone is an event."""
    slow = _slow_steps(window)
    if slow is None:
        return None
    found, share = slow.found, slow.share(window.host.run_delay or 0.0)
    if share.mean < CONTRIBUTOR:
        return None
    evidence = [
        Evidence(
            f"{_how_often(found)} {ms(found.each_ns)} longer, up to "
            f"{ms(found.longest_ns)}; the others take {ms(found.step_ns)}",
            "hook",
            found.each_ns / 1e6,
            "ms",
        )
    ]
    mine = by_user_function(_mine(window))
    evidence += [place_evidence(place, "main-thread") for place in mine[:1]]
    if window.gpu_present and window.activity is not None:
        text = f"the GPU is idle {percent(slow.most)} of the time"
        evidence.append(Evidence(text, counted_by(window.activity), slow.most))
    advice = [
        f"done every {found.affordable_steps:,} steps it would cost {percent(TARGET_BUDGET)}; or "
        f"do it in one tensor expression, or on another thread{_at(mine)}"
    ]
    headline = f"single slow steps take {percent(share.mean)} of the time"
    return cause(
        "host", None, share, headline, tuple(evidence), tuple(advice), loader_floor(window)
    )


def _how_often(found: Pauses) -> str:
    if found.spacing_steps is not None:
        return f"one step in {found.spacing_steps:.0f} takes"
    return "one step so far took" if found.events == 1 else f"{found.events} steps so far took"


def asleep_within(window: StepWindow) -> Finding | None:
    """Sleep in lines that are neither PyTorch's nor a wait for the GPU, in whatever phase they lie:
    a request between the loss and its backward counts as forward. With a GPU only what leaves it
    idle is lost. Abstains without stacks, which alone show whose sleep it is."""
    slept, places = asleep(window), main_places(window)
    if slept is None or not places:
        return None
    mine = _mine(window)
    activity, most = window.activity, slept
    if window.gpu_present:
        if activity is None or activity.busy is None:
            return None
        most = min(slept, idle_of(window))
    share = at_most(share_seen(window, mine.__contains__), most)
    if share.low < CONTRIBUTOR:
        return None
    mean = share.mean
    where = by_user_function(mine)
    evidence = [
        Evidence(f"the training thread sleeps {percent(slept)} of the time", "proc", slept),
        *(place_evidence(place, "main-thread") for place in where[:1]),
    ]
    if window.gpu_present and activity is not None:
        idle = idle_of(window)
        text = f"the GPU is idle {percent(idle)} of the time"
        evidence.append(Evidence(text, counted_by(activity), idle))
    return cause(
        "host",
        None,
        share,
        f"the training thread sleeps in your code {percent(mean)} of the time",
        tuple(evidence),
        (f"do it less often, or what it waits for on another thread{_at(where)}",),
        loader_floor(window),
    )


def within_phases(window: StepWindow) -> Finding | None:
    """Python that the marks book as forward, since nothing marks its end: a logger in a loop
    without a loader. By samples, as far as a GPU idles then: what is gained is known no better than
    they know it, however narrow that leaves the share (half of 32 samples: 0.29 to 0.29)."""
    ledger = idle_ledger(window)
    if python_within(window) < CONTRIBUTOR or (window.gpu_present and ledger is None):
        return None
    seen = share = python_seen(window)
    if ledger is not None:
        share = at_most(seen, ledger.shares["host"] - ledger.computed)
    if share.low < CONTRIBUTOR:
        return None
    where = by_user_function(filter(works_on_host, main_places(window)))
    what = "launches nothing" if window.gpu_present else "computes no tensors"
    if (both := made_and_copied(window, where[0], seen, share)) is not None:
        return both
    found = cause(
        "host",
        None,
        share,
        f"{percent(share.mean)} of each step is Python that {what}",
        (place_evidence(where[0], "main-thread"),),
        (f"do it less often, or on another thread, or in one tensor expression{_at(where)}",),
        loader_floor(window),
        gain_without("host", window) or gain_on_the_host(window, share.mean),
    )
    if ledger is None or found.speedup is None or found.speedup_is == "bound":
        return found
    known = interval_of("host", found.speedup, seen.mean, seen.low, seen.high)
    return replace(found, forecast=known)


def _mine(window: StepWindow) -> list[FrameShare]:
    """What is the user's own and no other rule's: a batch that is made belongs to the loader, and
    at a copy to the GPU the driver sleeps. Without a GPU `item()` is Python like any other."""
    mine = [one for one in users_lines(main_places(window)) if not clips(one)]
    if not window.gpu_present:
        return mine
    return [one for one in mine if not (waits_for_gpu(one) or copies_to_gpu(one))]


def host(window: StepWindow) -> Finding | None:
    """What was left on for debugging, single steps that are held up, every step's own Python, what
    it computes beside its net, or sleep within a phase: of those that hold about as much as the
    largest the first, which is the most specific. What a GPU's step computes on the CPU is no view
    of the same time."""
    judges = (
        debugging,
        now_and_then,
        _steady,
        within_phases,
        beside_the_net,
        looped,
        unlearned,
        asleep_within,
    )
    found = [one for judge in judges if (one := _seen_by(judge, window))]
    most = max(map(held_by, found), default=0.0)
    first = next((one for one in found if _held(one, window) >= HOST_ALIKE * most), None)
    beside = (one for judge in (traced_on_cpu, beside_gpu) if (one := _seen_by(judge, window)))
    computed = _seen_by(on_cpu, window) or max(beside, key=held_by, default=None)
    if computed is not None and held_by(computed) > most:
        first = computed
    if first is None or window.gpu_present or first.forecast is not None:
        return first
    return replace(first, forecast=forecast_on_cpu(first))


def _seen_by(judge: Callable[[StepWindow], Finding | None], window: StepWindow) -> Finding | None:
    """What it finds, by its name: the headline is not to change between two of them each second."""
    found = judge(window)
    return None if found is None else replace(found, view=judge.__name__)


def _held(found: Finding, window: StepWindow) -> float:
    """The part of the time that is compared: with the wait for a core, which the other views of the
    same time hold too."""
    slow = _slow_steps(window) if found.view == now_and_then.__name__ else None
    if slow is None or not slow.between:
        return held_by(found)
    return slow.share(0.0).mean


def _steady(window: StepWindow) -> Finding | None:
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
    if window.gpu_present and not places and (device is None or not keeps_up(device)):
        return None  # only stacks separate Python from a wait for a GPU that is behind
    if device is not None:
        gaps = [between_of(row, named) for row in device.rows]
        share = share_of(gaps, [row.wall_ns for row in device.rows])
    elif window.gpu_present:
        # This is also where `loss.item()` waits for the GPU.
        waits = share_where(places, waits_for_gpu)
        share = Share(*(max(0.0, part - waits) for part in (share.mean, share.low, share.high)))
    cut = part_of_update(window)
    left = Share(
        share.mean * (1.0 - cut.mean), share.low * (1.0 - cut.high), share.high * (1.0 - cut.low)
    )
    share = _own(left, window)
    if share.mean < CONTRIBUTOR:
        return None
    total = spent(rows)
    steps = max(1, total.steps)
    step_ns = total.wall_ns / steps
    part_ns = share.mean * step_ns
    own = _mine(window)
    less = "do it less often, or on another thread, or in one tensor expression"
    where = "in Python between the phases"
    tensors = [
        one
        for one in own
        if (one.computes or one.phase == "forward") and not TURNS.search(one.line)
    ]
    if not window.gpu_present and share_held(tensors) > share_held(own) / 2:
        where, less = "computed between the phases", "do it less often, or on a part of it"
    evidence = [
        Evidence(f"{ms(part_ns)} of {ms(step_ns)} per step {where}", "hook", part_ns / 1e6, "ms")
    ]
    largest = max(named, key=named.__getitem__, default=None)
    if largest is not None and named[largest] >= sum(parts) / 2:
        where = f'in your phase "{largest}"'
        evidence = [
            Evidence(
                f"{ms(part_ns)} of {ms(step_ns)} per step {where}", "hook", part_ns / 1e6, "ms"
            )
        ]
    mine = by_user_function(own)
    evidence += [place_evidence(place, "main-thread") for place in mine[:1]]
    floor = loader_floor(window)
    if floor > 1 - share.mean:
        text = f"the loader is busy {percent(floor)} of the time: it would be the limit next"
        evidence.append(Evidence(text, "py-spy", floor))
    evidence += [place_evidence(place, "main-thread") for place in mine[1:2]]
    if not window.gpu_present:
        evidence += not_the_users(window).evidence()
    headline = f"{percent(share.mean)} of each step is {where}"
    gain = gain_without("host", window) or gain_on_the_host(window, share.mean)
    return cause("host", None, share, headline, tuple(evidence), (less + _at(mine),), floor, gain)


def _at(places: Sequence[FrameShare]) -> str:
    """ ": log (train.py:40)", where it is; nothing without samples."""
    return f": {place_name(places[0])}" if places else ""


def _own(share: Share, window: StepWindow) -> Share:
    """What is left of the time between the phases without the end of the loader's workers, which is
    the loader's, without evaluations that samples show, without calls that wait for other ranks,
    and without what PyTorch and the probe take there; with a GPU, from which that may be hidden,
    what its ledger has for the host: clipping and averages are work of the GPU's, and lines that
    wait for it belong to `sync`."""
    ledger = idle_ledger(window)
    if ledger is not None:
        return at_most(share, ledger.shares["host"] - ledger.computed)
    others = loader_ends(window).mean + share_seen(window, in_collective).mean
    if not window.gpu_present:
        others += not_the_users(window).share
    if window.sees_loading:
        # Else all from one update to the next backward is "forward", an evaluation too.
        others += evaluated_within(window)
    left = Share(*(max(0.0, part - others) for part in (share.mean, share.low, share.high)))
    return left if window.gpu_present else lesser(left, _outside_of_nets(window))


def _outside_of_nets(window: StepWindow) -> Share:
    """What samples show in no net: where two loaders feed a step, the first one's forward lies
    between two fetches, and no mark tells it from Python (DANN: 37 % of each step)."""
    places = main_places(window)
    if window.stacks is None or not places:
        return Share(1.0, 1.0, 1.0)
    inside = window.stacks.seen(
        [one for one in places if one.phase == "backward" or is_in_forward(one)]
    )
    return Share(1.0 - inside.mean, 1.0 - inside.high, 1.0 - inside.low)
