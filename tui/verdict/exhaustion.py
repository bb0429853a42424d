"""When memory that leaks will be full: steps, as a range."""

from dataclasses import dataclass
from math import inf, isfinite

from tui.verdict import policy
from tui.verdict.figures import duration
from tui.verdict.growth import Growth
from tui.verdict.memory_places import Place, readings
from tui.verdict.spent import spent
from tui.verdict.window import Window


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """The steps that are left, by the steepest and the flattest slope of the interval."""

    earliest_steps: float
    latest_steps: float
    """Infinite where the flattest does not rise."""
    step_hours: float
    """A step of the window."""

    def urgent(self, grown: Growth) -> bool:
        """Near enough to be said before the growth is confirmed, if it goes on evenly."""
        first, last = grown.blocks.lows[0].step, grown.blocks.lows[-1].step
        within = min(policy.URGENT_STEPS, policy.URGENT_SPANS * (last - first))
        return self.earliest_steps <= within and grown.even and not grown.gives_back

    @property
    def within_a_day(self) -> bool:
        """It may be over before anybody looks again."""
        return self.earliest_steps * self.step_hours <= policy.URGENT_HOURS

    @property
    def within_an_hour(self) -> bool:
        """Soon enough to be said with the growth itself."""
        return self.earliest_steps * self.step_hours <= policy.AT_ONCE_HOURS


def time_left(left: Exhaustion) -> str:
    """ "10 to 11 min", "50 min to 2 h", "3 h at the earliest": a line drawn on tells no seconds."""
    first = duration(left.earliest_steps * left.step_hours)
    if not isfinite(left.latest_steps):
        return f"{first} at the earliest"
    last = duration(left.latest_steps * left.step_hours)
    if first == last:
        return first
    number, unit = first.split()
    return f"{number} to {last}" if last.endswith(f" {unit}") else f"{first} to {last}"


def exhaustion(place: Place, grown: Growth, window: Window) -> Exhaustion | None:
    """None where the limit is not known, or nothing is sure to grow."""
    if place.limit_bytes is None or grown.slope.high <= 0:
        return None
    room = max(0, place.limit_bytes - _height(place, grown, window))
    latest = room / grown.slope.low if grown.slope.low > 0 else inf
    return Exhaustion(room / grown.slope.high, latest, _step_hours(window))


def _step_hours(window: Window) -> float:
    """Of what memory goes by: a step of the window, a second where nobody sees steps."""
    if window.sampled is not None:
        return 1 / 3600
    total = spent(window.steps)
    return total.wall_ns / max(1, total.steps) / 3.6e12


def _height(place: Place, grown: Growth, window: Window) -> int:
    """What a step needs at its height. The allocator's maximum is one since the start: it is recent
    only if it rose while the memory grew."""
    since = grown.blocks.lows[0].step
    if place.kind == "host":
        return max(point.bytes for point in place.points if point.step >= since)
    recent = [one for one in readings(window) if one.step >= since]
    if recent[-1].peak_allocated > recent[0].peak_allocated:
        return recent[-1].peak_allocated
    return max(max(one.allocated, one.at_backward or 0) for one in recent)
