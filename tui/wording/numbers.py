"""Numbers as people read them: few digits, always a unit, never a false precision."""

from ..verdict.format import percent as percent  # the screen and the verdict agree

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


def milliseconds(ms: float) -> str:
    """1240.3 -> "1,240 ms", 0.84 -> "0.84 ms"; from 10 s on in seconds."""
    return f"{digits(ms / 1000)} s" if ms >= 10_000 else f"{digits(ms)} ms"


def like(value: float, whole: float) -> str:
    """A part with the precision of its whole, so that numbers beside each other match."""
    places = 0 if whole >= 99.95 else 1 if whole >= 9.995 else 2
    return f"{value:,.{places}f}"


def duration(seconds: float) -> str:
    """4.2 -> "4s", 372 -> "6m12s", 3780 -> "1h03m", 180000 -> "2d02h"."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def clock(seconds: float) -> str:
    """A place in a recording: 34.2 -> "0:34", 3723 -> "1:02:03"."""
    whole = max(0, int(seconds))
    minutes = f"{whole // 3600}:{whole % 3600 // 60:02d}" if whole >= 3600 else f"{whole // 60}"
    return f"{minutes}:{whole % 60:02d}"


def grain(ns: int) -> str:
    """The time that a column takes: 106 ms, 6.38 s."""
    return f"{ns / 1e6:.0f} ms" if ns < 10**9 else f"{digits(ns / 1e9)} s"


def span(seconds: float) -> str:
    """The length of an axis: 9.6 -> "9.6 s", 30 -> "30 s", 120 -> "2 min", 3600 -> "1 h"."""
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 3_570:
        return f"{seconds / 60:.1f}".removesuffix(".0") + " min"
    return f"{seconds / 3600:.1f}".removesuffix(".0") + " h"


def size(value: float) -> str:
    """Bytes: 4_400_000_000 -> "4.1 GiB", 512 MiB below one GiB."""
    if abs(value) >= 99.95 * _GIB:
        return f"{value / _GIB:,.0f} GiB"
    if abs(value) >= _GIB:
        return f"{value / _GIB:.1f} GiB"
    return f"{value / _MIB:.0f} MiB"


def scale_size(value: float, span: float) -> str:
    """Bytes at the end of a scale: as many places as the scale's span needs."""
    places = 1 if span >= 0.3 * _GIB else 2 if span >= 0.03 * _GIB else 3
    if value >= _GIB:
        return f"{value / _GIB:.{places}f} GiB"
    return f"{value / _MIB:.{0 if span >= 10 * _MIB else 1}f} MiB"


def growth(bytes_per_100: float, unit: str = "steps") -> str:
    """A slope with its sign: "+38 MiB/100 steps"."""
    mib = bytes_per_100 / _MIB
    text = f"{mib:+,.0f}" if abs(mib) >= 10 else f"{mib:+.1f}"
    return f"{text} MiB/100 {unit}"
