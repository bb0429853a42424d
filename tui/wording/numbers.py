"""Numbers as people read them: few digits, always a unit, never a false precision.

Units that verdicts write too are in `verdict.format`, and are the same here.
"""

from ..verdict.format import duration as duration
from ..verdict.format import ms as ms
from ..verdict.format import percent as percent
from ..verdict.format import seconds as seconds
from ..verdict.format import size as size

_MIB = 1024 * 1024
_GIB = 1024 * _MIB


def count(value: int) -> str:
    """18204 -> "18,204"."""
    return f"{value:,}"


def digits(value: float) -> str:
    """Three digits that matter: 1240.3 -> "1,240", 56.21 -> "56.2", 0.814 -> "0.81"."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"


def steps_in_time(steps_s: float) -> str:
    """ "24.5 steps/s"; where steps are slow "1.20 steps/min" or "2.50 steps/h", for 0.02 a second
    says nothing."""
    for per_s, unit in ((1, "s"), (60, "min")):
        if steps_s * per_s >= 0.1 or not steps_s:
            return f"{digits(steps_s * per_s)} steps/{unit}"
    return f"{digits(steps_s * 3600)} steps/h"


def milliseconds(value: float) -> str:
    """For tables, three digits below one second: 0.84 -> "0.84 ms", 1240.3 -> "1.2 s", 0.004 ->
    "4 us"."""
    if 0 < value < 0.095:
        return ms(value * 1e6)
    return seconds(value / 1000) if value >= 999.5 else f"{digits(value)} ms"


def like(value: float, whole: float) -> str:
    """A part with the precision of its whole, so that numbers beside each other match."""
    places = 0 if whole >= 99.95 else 1 if whole >= 9.995 else 2
    return f"{value:,.{places}f}"


def clock(seconds: float) -> str:
    """A place in a recording: 34.2 -> "0:34", 3723 -> "1:02:03"."""
    whole = max(0, int(seconds))
    minutes = f"{whole // 3600}:{whole % 3600 // 60:02d}" if whole >= 3600 else f"{whole // 60}"
    return f"{minutes}:{whole % 60:02d}"


def span(value: float) -> str:
    """The length of an axis in seconds: 9.6 -> "9.6 s", 120 -> "2 min", 150 -> "2.5 min"."""
    if value < 9.95:
        return f"{value:.1f}".removesuffix(".0") + " s"
    if 99.5 <= value < 570:
        return f"{value / 60:.1f}".removesuffix(".0") + " min"
    return duration(value)


def scale_size(value: float, span: float) -> str:
    """Bytes at the end of a scale: as many places as the scale's span needs."""
    places = 1 if span >= 0.3 * _GIB else 2 if span >= 0.03 * _GIB else 3
    if value >= _GIB:
        return f"{value / _GIB:.{places}f} GiB"
    return f"{value / _MIB:.{0 if span >= 10 * _MIB else 1}f} MiB"


def growth(bytes_per_100: float, unit: str = "steps") -> str:
    """A slope with its sign: "+38 MiB per 100 steps"."""
    mib = bytes_per_100 / _MIB
    text = f"{mib:+,.0f}" if abs(mib) >= 10 else f"{mib:+.1f}"
    return f"{text} MiB per 100 {unit}"
