"""What removing a cause alone would give, and what removing two of them together."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tui.verdict import policy
from tui.verdict.feeding import loader_floor, often_late
from tui.verdict.findings import Kind
from tui.verdict.forecast.causes import removal_of
from tui.verdict.forecast.course import Course, Removal
from tui.verdict.forecast.measured import course_of
from tui.verdict.forecast.replay import replay
from tui.verdict.pauses import Pauses
from tui.verdict.starved import starved
from tui.verdict.unmeasured import unmeasured
from tui.verdict.window import Window


@dataclass(frozen=True, slots=True)
class Gain:
    """Steps a second after over before."""

    speedup: float
    speedup_is: Literal["estimate", "bound"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A window that a replay understands: with nothing removed it gives what was measured."""

    window: Window
    course: Course
    now_ns: float
    """A step of that replay."""

    def left(self, kinds: Collection[Kind], at_best: bool = False) -> float | None:
        """Length of a step without these causes, as part of what it is, 0 to 1; None for causes
        that no replay takes away. The start of an epoch goes with the cause "input", whether it
        was measured or not; other steps that were not measured stay as they are."""
        within = self.within(kinds, at_best)
        if within is None:
            return None
        beside = unmeasured(self.window)
        starts = 0.0 if "input" in kinds else beside.starting
        return min(1.0, beside.left * within + beside.aside + starts)

    def within(self, kinds: Collection[Kind], at_best: bool = False) -> float | None:
        """The same of the measured steps alone.

        No cause outside the loader may beat the loader, S/W: plain replay gave 1.27x for removing
        a sync where the loader was the limit, and the truth was 1.00x (simulated).
        """
        gone = Removal()
        for kind in kinds:
            removal = removal_of(kind, self.window, self.course)
            if removal is None:
                return None
            gone = gone.joined(removal)
        least = policy.LEAST_LEFT if "input" in kinds else loader_floor(self.window)
        then = gone.of(self.course.at_best() if at_best else self.course)
        return min(1.0, max(policy.LEAST_LEFT, least, replay(then) / self.now_ns))


@lru_cache(maxsize=4)
def replayed(window: Window) -> Replayed | None:
    """None where the GPU's clock is not read, or where a replay with nothing removed misses the
    measured step: then shares of the time are all that is known."""
    course = course_of(window)
    if course is None:
        return None
    now_ns = replay(course)
    if abs(now_ns / course.step_ns - 1) > policy.REPLAY_WITHIN:
        return None
    return Replayed(window, course, now_ns)


def gain_without(kind: Kind, window: Window, at_most: bool = False) -> Gain | None:
    """By replay. `at_most`: a fix leaves something of the cause.

    Where batches are often late, what is gained outside the loader is a bound too: whether a batch
    that comes late would still be in time is not in the record.
    """
    known = replayed(window)
    at_most = at_most or (kind != "input" and often_late(window))
    left = None if known is None else known.left((kind,), at_most)
    return None if left is None else Gain(1.0 / left, "bound" if at_most else "estimate")


def gain_of_pauses(kind: Kind, window: Window, found: Pauses) -> Gain | None:
    """The same for pauses that are rarer than a window is long, by the mean step over enough of
    them; without a GPU by what they take."""
    known = replayed(window)
    left = None if known is None else known.within((kind,))
    if known is None or left is None or found.mean_ns <= 0:
        return gain_on_the_host(window, found.share.mean)
    return Gain(max(1.0, found.mean_ns / (left * known.course.step_ns)), "estimate")


def gain_on_the_host(window: Window, share: float, frees_cores: bool = False) -> Gain | None:
    """Without a GPU: the host's phases are the truth, and one after the other, so that what lies
    beside the cause is what is left. None with a GPU.

    `frees_cores`: the loader's work goes too, and with it the wait for cores that its processes
    have; else the loader may be the limit next.
    """
    if window.gpu_present:
        return None
    least, left = loader_floor(window), 1.0 - share
    if frees_cores:
        lack = starved(window)
        own = 0.0 if lack is None else lack.share - lack.by_quota - (lack.by_others or 0.0)
        least, left = 0.0, left * (1.0 - own)
    return Gain(1.0 / min(1.0, max(policy.LEAST_LEFT, least, left)), "estimate")
