"""How much time the sawtooth shows: chosen by a person, or so that its teeth can be seen."""

from tui.snapshot import Snapshot

WINDOWS_S = (1, 3, 10, 30, 120, 600, 3_600)
DEFAULT_S = 10
"""Where the teeth cannot be shown: no step yet, or samples too coarse for them."""
ENOUGH_STEPS = 8
STILL_ENOUGH_STEPS = 4
"""A window that was chosen stays while it holds this many: it must not go back and forth."""
BEAT_FROM, BEAT_TO = 1 / 3, 3.0
"""Columns between these many steps beat with the step: with a step of 1.9 s, the
means of 1 s columns draw a slow wave that does not exist."""
FULL = 0.75
"""A window that samples fill to less than this is the next one, drawn under a wrong name."""


def usable(columns: int, interval_s: float) -> tuple[int, ...]:
    """The windows that differ on a chart of this many columns, one sample each at the finest."""
    least = FULL * columns * interval_s
    return tuple(w for w in WINDOWS_S if w >= least) or WINDOWS_S[-1:]


def automatic(snapshot: Snapshot, columns: int, before: int | None) -> int:
    """The shortest window with enough whole teeth, else the longest in which they still show."""
    choices = usable(columns, _interval_s(snapshot))
    step_s = snapshot.steps.p50_ms / 1000 if snapshot.steps else 0.0
    seen = [w for w in choices if step_s and w / columns <= BEAT_FROM * step_s]
    if before in seen and before >= STILL_ENOUGH_STEPS * step_s:
        return before
    for window_s in seen:
        if window_s >= ENOUGH_STEPS * step_s:
            return window_s
    return seen[-1] if seen else max(DEFAULT_S, choices[0])


def beside(snapshot: Snapshot, columns: int, window_s: int, by: int) -> int:
    """The next longer or shorter window, or the same at the end."""
    choices = usable(columns, _interval_s(snapshot))
    if by > 0:
        return min((w for w in choices if w > window_s), default=choices[-1])
    return max((w for w in choices if w < window_s), default=choices[0])


def _interval_s(snapshot: Snapshot) -> float:
    saw = snapshot.sawtooth
    return saw.series.interval_ns / 1e9 if saw else 0.0
