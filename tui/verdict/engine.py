"""The verdict on a run: rules over one window, and memory of what was said before."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...probe.wire.messages import Step
from . import thresholds
from .findings import Finding, Kind, Verdict
from .forecast.gain import either_of, with_the_other_way
from .gpu_clock import on_device
from .history import Held, VerdictHistory, VerdictTimeline
from .hysteresis import Hysteresis, renewed
from .memory.trends import MemoryTrend
from .memory.watch import MemoryWatch
from .no_probe.nothing import nothing, too_early
from .no_probe.nothing import stalled as still
from .no_probe.rules import SAMPLED_CAUSES
from .notes.reported import NoteReporter
from .rules import Rule
from .rules.allocator import allocator
from .rules.checkpoint import checkpoint
from .rules.compute import compute
from .rules.contention import contention
from .rules.evaluation import evaluation
from .rules.h2d import h2d
from .rules.healthy import healthy
from .rules.host import host
from .rules.incomplete import incomplete
from .rules.input import input_bound
from .rules.launch import launch
from .rules.optimizer import optimizer
from .rules.recompile import recompile
from .rules.stalled import ended_stalled, stalled
from .rules.straggler import straggler
from .rules.sync import sync
from .rules.throttled import throttled
from .rules.warming_up import warming_up
from .scoring import beats, missing_of, of_cause, of_nothing, plain, recoverable, worth
from .step_time import spent
from .window import Window

CAUSES: Final[dict[Kind, Rule]] = {
    "input": input_bound,
    "h2d": h2d,
    "sync": sync,
    "allocator": allocator,
    "launch": launch,
    "host": host,
    "optimizer": optimizer,
    "checkpoint": checkpoint,
    "evaluation": evaluation,
    "recompile": recompile,
    "contention": contention,
    "throttled": throttled,
    "straggler": straggler,
}
"""What can hold a share of the time. `communication` has no rule yet: DDP's own timings, which tell
it, are not read."""
NOTHING_BOUND: Final[tuple[Rule, ...]] = (incomplete, healthy, compute)
"""The first that speaks when no cause holds and memory does not grow."""


class Engine:
    """Judges windows one after the other, about once a second. No clock: time is the window's."""

    def __init__(self) -> None:
        self._causes = CAUSES
        """Those of the last window: a run without a probe has others."""
        self._swap_renewed = thresholds.SWAP_RENEWED
        self._standings: dict[Kind, Hysteresis] = {kind: Hysteresis() for kind in CAUSES}
        self._top: Kind | None = None
        self._rival: tuple[Kind, int, int] | None = None
        """A cause that would take the headline, how often in a row, and where the steps of the
        first such look ended."""
        self._memory = MemoryWatch()
        self._notes = NoteReporter()
        self._judged: tuple[int, int] | None = None
        """Start and number of rows of the last window that had something to judge."""
        self._newest = -1
        self._settled: Verdict | None = None
        """The last verdict on the steps, while warm-up and stalls pass."""
        self._said: Verdict | None = None
        self._past = VerdictHistory()

    def judge(self, window: Window) -> Verdict:
        """The verdict on one window."""
        if (causes := _causes_of(window)) is not self._causes:
            self._begin_anew(causes)
        said = self._say(window)
        if window.sampled is not None:
            sure = min(said.confidence, thresholds.SAMPLED_MOST_CONFIDENT)
            said = replace(said, confidence=sure)
        before = self._said
        if before is not None and _name(before) == _name(said):
            said = replace(said, since_step=before.since_step, since_ns=before.since_ns)
        else:
            step = None if window.sampled is not None else window.steps_seen or None
            said = replace(said, since_step=step, since_ns=_begins_ns(said, window))
        if window.sampled is None:  # settings are the probe's to tell
            notes = self._notes.on(window, said.finding, said.contributors)
            said = replace(said, notes=notes)
        self._said = said
        self._past.said(said, window.now_ns, window.steps_seen)
        return said

    def timeline(self) -> VerdictTimeline:
        """What was said before and is said now, oldest first."""
        return self._past.timeline()

    def summary(self) -> tuple[Held, ...]:
        """All that was said, by its share of the time: for the end of a run."""
        return self._past.summary()

    def trends(self) -> tuple[MemoryTrend, ...]:
        """Of the memories that grow."""
        return self._memory.trends

    def _begin_anew(self, causes: dict[Kind, Rule]) -> None:
        """A probe has come, or there is none: what samples told is no step's share, and back."""
        self._causes = causes
        sampled = causes is not CAUSES
        low = thresholds.SAMPLED_ENTER_LOW if sampled else thresholds.ENTER_LOW
        self._swap_renewed = thresholds.SAMPLED_SWAP_RENEWED if sampled else thresholds.SWAP_RENEWED
        self._standings = {kind: Hysteresis(low) for kind in causes}
        self._top = self._rival = self._judged = self._settled = None
        self._memory = MemoryWatch()

    def _say(self, window: Window) -> Verdict:
        grows = self._memory.look(window)
        sampled = window.sampled is not None
        if (stuck := still(window) if sampled else stalled(window)) is not None:
            return _begun(stuck, 1.0, grows, window)
        if self._said is not None and (hung := ended_stalled(self._said.finding, window)):
            return _begun(hung, 1.0, grows, window)
        early = too_early(window) if sampled else warming_up(window)
        if early is not None and self._settled is None:
            return _begun(early, 0.0, (), window)
        newest = window.steps[-1].end_ns if window.steps else -1
        if self._settled is not None and (early is not None or newest == self._newest):
            # Nothing new to weigh: looks must not count the same steps twice.
            return replace(self._settled, contributors=_with_memory(self._settled, grows))
        if _clock_is_due(window):
            if self._settled is not None:
                return replace(self._settled, contributors=_with_memory(self._settled, grows))
            waits = plain("warming-up", None, "info", "waiting for the GPU's own step times")
            return _begun(waits, 0.0, grows, window)
        self._newest = newest
        said = self._weigh(window, grows)
        if said.finding.kind != "warming-up":
            self._settled = said
        return said

    def _weigh(self, window: Window, grows: tuple[Finding, ...]) -> Verdict:
        fresh = self._is_fresh(window)
        seen: list[Finding] = []
        for kind, rule in self._causes.items():
            found = rule(window)
            self._standings[kind].look(found, window.steps, fresh)
            if found is not None:
                seen.append(found)
        self._top = self._choose_top(window.steps, fresh)
        if self._top is None and self._settled is None and _too_young(window, seen):
            self._judged = None  # the next look begins anew
            return _begun(_so_far(seen), 0.0, grows, window)
        top = self._standings[self._top].finding if self._top else None
        unknown = incomplete(window) if window.sampled is None else None
        gap = unknown if unknown is not None and unknown.sub == "unattributed" else None
        unexplained = 1.0 - spent(window.steps).attributed if gap is not None else 0.0
        if top is not None and (top.share or 0.0) >= unexplained:
            return self._verdict(top, of_cause(top, seen, window), seen, grows, window)
        if gap is None and grows:
            return self._verdict(grows[0], of_nothing(seen, window), seen, (), window)
        rest = gap or _nothing_bound(window)
        if rest.kind == "incomplete" and gap is None:
            self._judged = None  # once the signal is there, what it shows is not "nothing wrong"
        sure = 0.0 if rest.kind == "incomplete" else of_nothing(seen, window)
        return self._verdict(rest, sure, seen, grows, window)

    def _choose_top(self, steps: Sequence[Step], fresh: bool) -> Kind | None:
        """The cause that recovers most; a new one must win for sure, twice, on new steps."""
        holding = [s.finding for s in self._standings.values() if s.holds and s.finding]
        if not holding:
            self._rival = None
            return None
        best = max(holding, key=recoverable)
        now = next((finding for finding in holding if finding.kind == self._top), None)
        if now is None or fresh or best.kind == now.kind:
            self._rival = None
            return best.kind
        if (
            recoverable(best) - recoverable(now) < thresholds.SWAP_MARGIN
            or beats(best, now) < thresholds.SWAP_PROBABILITY
        ):
            self._rival = None
            return now.kind
        looks, since_ns = 1, steps[-1].end_ns
        if self._rival is not None and self._rival[0] == best.kind:
            looks, since_ns = self._rival[1] + 1, self._rival[2]
        self._rival = (best.kind, looks, since_ns)
        wins = looks >= thresholds.SWAP_TIMES and renewed(steps, since_ns) >= self._swap_renewed
        return best.kind if wins else now.kind

    def _is_fresh(self, window: Window) -> bool:
        """Nothing was known, or the window was cut at a change of pace."""
        start, rows = window.steps[0].start_ns, len(window.steps)
        before, self._judged = self._judged, (start, rows)
        if before is None:
            return True
        return start > before[0] and rows < thresholds.FRESH_SHRINK * before[1]

    def _verdict(
        self,
        finding: Finding,
        confidence: float,
        seen: list[Finding],
        grows: tuple[Finding, ...],
        window: Window,
    ) -> Verdict:
        others = sorted((f for f in seen if f.kind != finding.kind), key=recoverable, reverse=True)
        either = either_of(finding, others, window)
        return Verdict(
            finding=with_the_other_way(finding, others, either),
            confidence=min(thresholds.MOST_CONFIDENT, max(0.0, confidence)),
            since_step=window.steps_seen or None,
            since_ns=window.now_ns,
            contributors=_also(others, [f for f in grows if f.kind != finding.kind]),
            missing=missing_of(window),
            either=either,
        )


def _causes_of(window: Window) -> dict[Kind, Rule]:
    return CAUSES if window.sampled is None else SAMPLED_CAUSES


def _nothing_bound(window: Window) -> Finding:
    if window.sampled is not None:
        return nothing(window)
    return next(found for rule in NOTHING_BOUND if (found := rule(window)) is not None)


def _begun(
    finding: Finding, confidence: float, contributors: tuple[Finding, ...], window: Window
) -> Verdict:
    """A verdict that is not about the window's steps."""
    return Verdict(
        finding=finding,
        confidence=confidence,
        since_step=window.steps_seen or None,
        since_ns=window.now_ns,
        contributors=contributors,
        missing=missing_of(window),
    )


def _too_young(window: Window, seen: list[Finding]) -> bool:
    """ "Nothing wrong" would be a guess: a cause seems to hold 10 %, or one that comes now and then
    may not have come yet, and time is left to see it more often. A verdict is due within 20 steps
    or 10 s of training, whichever is later."""
    rows = window.steps
    steps, span_ns = sum(row.count for row in rows), rows[-1].end_ns - rows[0].start_ns
    if steps >= thresholds.DUE_STEPS and span_ns >= thresholds.DUE_NS:
        return False
    if any(worth(finding) > thresholds.ENTER_SHARE for finding in seen):
        return True
    if steps >= thresholds.QUIET_STEPS:
        return False
    works = compute(window) if window.sampled is None else None
    return works is None or (works.sub is None and works.share is None)


def _clock_is_due(window: Window) -> bool:
    """The GPU's clock will speak for these steps, and has not yet."""
    if not window.gpu_clocked or on_device(window) is not None or window.ended:
        return False
    return window.steps[-1].end_ns - window.steps[0].start_ns < thresholds.GPU_CLOCK_DUE_NS


def _so_far(seen: list[Finding]) -> Finding:
    """ "Warming up", with what it looks like."""
    if not seen:
        return plain("warming-up", None, "info", "not sure yet: nothing stands out so far")
    top = max(seen, key=recoverable)
    return plain("warming-up", None, "info", f"not sure yet: {top.headline} so far", top.evidence)


def _with_memory(verdict: Verdict, grows: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The contributors with memory growth as it is now."""
    if verdict.finding.kind == "memory-growth":
        return verdict.contributors
    return _also([f for f in verdict.contributors if f.kind != "memory-growth"], grows)


def _also(others: Sequence[Finding], grows: Sequence[Finding]) -> tuple[Finding, ...]:
    """Memory that is full before anybody looks again comes before what only takes time."""
    soon = [finding for finding in grows if finding.severity == "critical"]
    return (*soon, *others, *(finding for finding in grows if finding.severity != "critical"))


def _begins_ns(verdict: Verdict, window: Window) -> int:
    """With the look that says it first; a stall began with the last mark, as its headline says."""
    now, told = window.open_step, window.sampled
    age_s = 0.0
    if verdict.finding.kind == "stalled" and told is not None and told.still is not None:
        age_s = told.still.age_s
    elif verdict.finding.kind == "stalled" and now is not None:
        age_s = now.age_s
    return window.now_ns - round(age_s * 1e9)


def _name(verdict: Verdict) -> tuple[str, str | None]:
    return verdict.finding.kind, verdict.finding.sub
