"""The verdict on a run: every rule on one window, then which finding has held long enough."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from .code_places import main_places
from .findings import Finding, Verdict
from .forecast.gain import either_of, with_the_other_way
from .frameworks import in_terms_of
from .history import Held, VerdictHistory, VerdictTimeline
from .hysteresis import Certainty, Selection
from .long_run import in_the_long_run, left_by_pauses, of_the_run
from .memory.trends import MemoryTrend
from .memory_watch import MemoryWatch
from .notes import WITHOUT_NOTES, NoteReporter
from .on_device import on_device
from .rulebook import BY_SAMPLES, BY_STEPS, Rulebook
from .rules.memory_growth import as_note, will_matter
from .scoring import (
    confidence_in_cause,
    confidence_in_none,
    missing_of,
    none_above,
    state,
    unsure,
    within_the_wall,
    worth,
)
from .thresholds import hysteresis as limits
from .thresholds.causes import LEAST_MASKS
from .window import SampleWindow, StepWindow, Window, WindowT

_OF_THE_GPU: Final = ("compute", "memory-bandwidth", "padding")
"""Kinds of cause that are how the GPU does its work, not what keeps it from it."""


class Engine:
    """Judges windows one after the other, about once a second. No clock: time is the window's."""

    def __init__(self) -> None:
        self._history = VerdictHistory()
        self._notes = NoteReporter()
        self._verdict: Verdict | None = None
        self._begin_anew(BY_STEPS)

    def _begin_anew(self, book: Rulebook[Any]) -> None:
        """Shares of samples and of steps are not comparable: no memory is kept between them."""
        self._book = book
        self._selection = Selection(book.causes, book.enter_low, book.swap_renewed)
        self._certainty = Certainty(book.swap_renewed)
        self._memory = MemoryWatch()
        self._judged: tuple[int, int] | None = None
        """Start and number of spans of the last window that had something to judge."""
        self._known: frozenset[str] = frozenset()
        """Signals of that window."""
        self._sampled = 1
        """Stack samples when the headline was last chosen anew for their number."""
        self._newest_ns = -1
        self._settled: Verdict | None = None
        """The last verdict on the window itself, kept through warm-up and stalls."""

    def judge(self, window: Window) -> Verdict:
        """The verdict on one window."""
        if isinstance(window, SampleWindow):
            return self._judge(window, BY_SAMPLES)
        return self._judge(window, BY_STEPS)

    def timeline(self) -> VerdictTimeline:
        """Past verdicts and the present one, oldest first."""
        return self._history.timeline()

    def summary(self) -> tuple[Held, ...]:
        """All verdicts by their share of the time: for the end of a run."""
        return self._history.summary()

    def trends(self) -> tuple[MemoryTrend, ...]:
        """Of the memories that grow."""
        return self._memory.trends

    def _judge(self, window: WindowT, book: Rulebook[WindowT]) -> Verdict:
        if book is not self._book:
            self._begin_anew(book)
        grown: tuple[Finding, ...] = self._memory.update(window)
        growth = tuple(one for one in grown if one.severity != "info")
        minor = tuple(as_note(one) for one in grown if one.severity == "info")
        verdict: Verdict = _beside(self._present(window, book, growth), book.under_way(window))
        before, now = self._verdict, verdict.finding
        if before is not None and (before.finding.kind, before.finding.sub) == (now.kind, now.sub):
            since = before.since_step, before.since_ns
        else:
            # A stall began with the last mark, as its headline says.
            age_s = window.unmoved_s if now.kind == "stalled" else 0.0
            since = window.steps_seen or None, window.now_ns - round(age_s * 1e9)
        self._verdict = in_terms_of(
            window.stacks.framework if window.stacks is not None else None,
            replace(
                verdict,
                confidence=min(book.most_confident, verdict.confidence),
                since_step=since[0],
                since_ns=since[1],
                notes=self._notes.update(book.notes, window, (now, *verdict.contributors)) + minor,
            ),
        )
        self._history.add(self._verdict, window.now_ns, window.steps_seen)
        return self._verdict

    def _present(
        self, window: WindowT, book: Rulebook[WindowT], growth: tuple[Finding, ...]
    ) -> Verdict:
        """A stall, "too early", the settled verdict while nothing is new, or a judged window."""
        if (stuck := book.stalled(window)) is not None:
            return _state(stuck, 1.0, growth, window)
        if self._verdict is not None:
            hung = book.ended_stalled(self._verdict.finding, window)
            if hung is not None:
                return _state(hung, 1.0, growth, window)
        early, settled = book.too_early(window), self._settled
        if early is not None and settled is None:
            return _state(early, 0.0, (), window)
        newest_ns = window.spans[-1].end_ns if window.spans else -1
        if settled is not None and (early is not None or newest_ns == self._newest_ns):
            # Nothing new to weigh: the hysteresis must not count the same steps twice.
            return _with_growth(settled, growth)
        if (due := book.pending(window)) is not None:
            return _with_growth(settled, growth) if settled else _state(due, 0.0, growth, window)
        self._newest_ns = newest_ns
        verdict = self._weigh(window, book, growth)
        if verdict.finding.kind != "warming-up":
            self._settled = verdict
        return verdict

    def _weigh(
        self, window: WindowT, book: Rulebook[WindowT], growth: tuple[Finding, ...]
    ) -> Verdict:
        of_steps = {kind: rule(window) for kind, rule in book.causes.items()}
        left = left_by_pauses(of_steps, window)
        found = in_the_long_run(of_steps, left)
        seen = [finding for finding in found.values() if finding is not None]
        fresh = self._is_fresh(window)
        top = self._selection.update(found, window.spans, fresh)
        if top is None and self._settled is None and _too_young(window, book, seen):
            self._judged = None  # the next window is judged anew
            return _state(_so_far(seen), 0.0, growth, window)
        once = book.once(window) if self._settled is None else None
        least = limits.ENTER_SHARE if top is None else max(limits.ENTER_SHARE, worth(top))
        if once is not None and (once.share or 0.0) > least:
            self._judged = None
            return _state(once, 0.0, growth, window)
        if top is None and self._settled is None and (soon := book.read_soon(window)) is not None:
            self._judged = None
            return _state(soon, 0.0, growth, window)
        gap = book.unexplained(window)
        gap_share = left * (1.0 - window.attributed) if gap is not None else 0.0
        fills = gap is None and bool(growth) and will_matter(growth[0])
        if fills and (top is None or top.kind in _OF_THE_GPU):
            # A run that ends for want of memory is worse off than one whose GPU could be faster.
            apart = [one for one in seen if one.kind not in _OF_THE_GPU]
            sure = confidence_in_none(apart, window)
            if sure >= limits.LEAST_SURE:
                return _verdict(growth[0], sure, seen, (), window)
        if top is not None and (top.share or 0.0) >= gap_share:
            others = [one for one in seen if not self._selection.holds(one.kind)]
            sure = self._certainty.of(
                top.kind,
                confidence_in_cause(top, seen, window),
                confidence_in_cause(top, others, window),
                window.spans,
                fresh,
            )
            if self._certainty.doubts:
                return _verdict(unsure(seen, top), sure, seen, growth, window)
            return _verdict(top, sure, seen, growth, window)
        limit = next(one for rule in book.limits if (one := rule(window)) is not None)
        if limit.kind == "incomplete":
            if gap is None:
                self._judged = None  # once the signal is there, it may show more than "nothing"
            return _verdict(of_the_run(limit, gap_share, left), 0.0, seen, growth, window)
        none = confidence_in_none(seen, window)
        sure = self._certainty.of(limit.kind, none, none, window.spans, fresh)
        if self._certainty.doubts:
            return _verdict(unsure(seen, None), sure, seen, growth, window)
        return _verdict(limit, sure, none_above(seen), growth, window)

    def _is_fresh(self, window: Window) -> bool:
        """Nothing was known, the window was cut at a change of pace, there is a signal that rules
        rest on and that was not there before, or twice the samples: what was chosen without them is
        no precedent. Samples are those of a minute, so that this ends with it."""
        start_ns, spans = window.spans[0].start_ns, len(window.spans)
        before, self._judged = self._judged, (start_ns, spans)
        known, self._known = self._known, self._known | _signals(window)
        stacks = window.stacks
        samples = 0 if stacks is None else stacks.main_samples + stacks.starting
        doubled = samples >= limits.SAMPLES_ANEW * self._sampled
        if doubled or not samples:
            self._sampled = max(1, samples)
        if before is None or self._known > known or doubled:
            return True
        return start_ns > before[0] and spans < limits.FRESH_SHRINK * before[1]


def _signals(window: Window) -> frozenset[str]:
    """Those that come later than the first steps."""
    activity, settings = window.activity, window.settings
    found = {
        "gpu clock": on_device(window) is not None,
        "counters": activity is not None and activity.busy is not None,
        "stacks": bool(main_places(window)),
        "padding": len(window.padding) >= LEAST_MASKS,
        "evaluation": isinstance(window, StepWindow) and bool(window.cycles),
        "unused gradients": settings is not None and settings.unused_parameters is not None,
        "cleared gradients": settings is not None and settings.cleared_parameters is not None,
    }
    return frozenset(name for name, there in found.items() if there)


def _verdict(
    finding: Finding,
    confidence: float,
    seen: Sequence[Finding],
    growth: Sequence[Finding],
    window: Window,
) -> Verdict:
    """On the window's steps or samples."""
    others = within_the_wall(
        finding, sorted((one for one in seen if one.kind != finding.kind), key=worth, reverse=True)
    )
    either = either_of(finding, others, window)
    return replace(
        _state(
            with_the_other_way(finding, others, either),
            min(limits.MOST_CONFIDENT, max(0.0, confidence)),
            _merged(others, [one for one in growth if one.kind != finding.kind]),
            window,
        ),
        either=either,
    )


def _state(
    finding: Finding, confidence: float, contributors: tuple[Finding, ...], window: Window
) -> Verdict:
    return Verdict(
        finding=finding,
        confidence=confidence,
        since_step=None,
        since_ns=None,
        contributors=contributors,
        missing=missing_of(window),
    )


def _beside(verdict: Verdict, now: Finding | None) -> Verdict:
    """With what holds up the training now, where no cause of the same kind is there."""
    found = (verdict.finding, *verdict.contributors)
    if now is None or verdict.finding.kind in WITHOUT_NOTES:
        return verdict
    if any(one.kind == now.kind for one in found):
        return verdict
    return replace(verdict, contributors=(now, *verdict.contributors))


def _too_young(window: WindowT, book: Rulebook[WindowT], seen: Sequence[Finding]) -> bool:
    """ "Nothing wrong" would be a guess: a cause seems to hold 10 %, or a rare one may not have
    come yet, and time is left to see more. A verdict is due within 20 steps or 10 s of training,
    whichever is later; of long steps within 10 s."""
    span_ns = window.spans[-1].end_ns - window.spans[0].start_ns
    if span_ns >= limits.DUE_NS:
        return False
    if any(worth(finding) > limits.ENTER_SHARE for finding in seen):
        return True
    if window.observed >= limits.QUIET_STEPS:
        return False
    works = book.at_work(window)
    return works is None or (works.sub is None and works.share is None)


def _so_far(seen: Sequence[Finding]) -> Finding:
    """ "Warming up", with the likely cause."""
    if not seen:
        return state("warming-up", None, "info", "not sure yet: nothing stands out so far")
    top = max(seen, key=worth)
    return state("warming-up", None, "info", f"not sure yet: {top.headline} so far", top.evidence)


def _with_growth(settled: Verdict, growth: Sequence[Finding]) -> Verdict:
    """The settled verdict with memory growth as it is now."""
    if settled.finding.kind == "memory-growth":
        return settled
    others = [one for one in settled.contributors if one.kind != "memory-growth"]
    return replace(settled, contributors=_merged(others, growth))


def _merged(others: Sequence[Finding], growth: Sequence[Finding]) -> tuple[Finding, ...]:
    """Memory that fills up soon comes before what only takes time."""
    soon = [finding for finding in growth if finding.severity == "critical"]
    return (*soon, *others, *(finding for finding in growth if finding.severity != "critical"))
