"""Numbers and their units, the same in verdicts and on every face: few digits, always a unit.

"116 ms" below one second, "1.2 s" from there on, "12 min", "2 h 10 min", "92%", "1,240", "4.1 GiB".
"""

_MIB = 1024 * 1024
_GIB = 1024 * _MIB


def ms(ns: float) -> str:
    """96_400_000 -> "96 ms", 4_200_000 -> "4.2 ms", 42_000 -> "42 us", 1_240_000_000 -> "1.2 s",
    300 -> "<1 us"."""
    if ns >= 0.9995e9:
        return seconds(ns / 1e9)
    if 0 < ns < 95_000:
        return "<1 us" if ns <= 500 else f"{ns / 1e3:.0f} us"
    value = ns / 1e6
    return f"{value:.0f} ms" if value >= 9.95 else f"{value:.1f} ms"


def seconds(value: float) -> str:
    """1.24 -> "1.2 s", 12.4 -> "12 s", from 100 s on "2 min"."""
    return f"{value:.1f} s" if value < 9.95 else duration(value)


def duration(value: float) -> str:
    """Whole seconds, minutes or hours: 4.2 -> "4 s", 372 -> "6 min", 7_800 -> "2 h 10 min",
    112_000 -> "31 h", 260_000 -> "3 days"."""
    if value < 99.5:
        return f"{max(0.0, value):.0f} s"
    minutes = round(value / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 600:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    return rough_duration(value / 3600)


def rough_duration(hours: float) -> str:
    """One number, for a forecast: 0.2 -> "12 min", 31.2 -> "31 h", 100.0 -> "4 days"."""
    if hours < 1:
        return f"{max(1, round(60 * hours))} min"
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"


def percent(share: float) -> str:
    """0.574 -> "57%"; what is there but rounds to nothing is "<1%"."""
    text = f"{100 * share:.0f}%"
    return "<1%" if share > 0 and text == "0%" else text


def size(value: float) -> str:
    """Bytes: 4_400_000_000 -> "4.1 GiB", 40_000_000 -> "38 MiB", 1_600_000 -> "1.5 MiB"."""
    if abs(value) >= 9.95 * _GIB:
        return f"{value / _GIB:,.0f} GiB"
    if abs(value) >= 0.9995 * _GIB:
        return f"{value / _GIB:.1f} GiB"
    if 0 < abs(value) < 1024:
        return f"{value:.0f} B"
    if 0 < abs(value) < 0.0995 * _MIB:
        return f"{value / 1024:.0f} KiB"
    places = 1 if 0 < abs(value) < 9.95 * _MIB else 0
    return f"{value / _MIB:.{places}f} MiB"


MOST_TIMES = 10.0
"""Beyond, a forecast says only that: what is left of a step is then what nobody measured."""


def times(speedup: float) -> str:
    """1.234 -> "1.2x", 1.04 -> "1.04x", 16.3 -> ">10x"."""
    if speedup > MOST_TIMES:
        return ">10x"
    return f"{speedup:.1f}x" if speedup >= 1.095 else f"{speedup:.2f}x"


def cores(count: float) -> str:
    """2.0 -> "2 cores", 1.0 -> "1 core", 1.5 -> "1.5 cores"."""
    return f"{count:g} core" if count == 1 else f"{count:g} cores"
