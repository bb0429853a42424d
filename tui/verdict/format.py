"""Figures inside a sentence: few digits, always a unit."""

_MIB = 1024 * 1024


def ms(ns: float) -> str:
    """96_400_000 -> "96 ms", 4_200_000 -> "4.2 ms", 12_000_000_000 -> "12 s"."""
    if ns >= 9.95e9:
        return f"{ns / 1e9:.0f} s"
    if ns >= 0.9995e9:
        return f"{ns / 1e9:.1f} s"
    value = ns / 1e6
    return f"{value:.0f} ms" if value >= 9.95 else f"{value:.1f} ms"


def percent(share: float) -> str:
    """0.574 -> "57%"; what is there but rounds to nothing is "<1%"."""
    return "<1%" if 0 < share < 0.005 else f"{100 * share:.0f}%"


def mib(count: float) -> str:
    """Bytes: "38 MiB", from 10 GiB on "12 GiB"."""
    if count >= 10 * 1024 * _MIB:
        return f"{count / 1024 / _MIB:.0f} GiB"
    return f"{count / _MIB:,.0f} MiB" if count >= 10 * _MIB else f"{count / _MIB:.1f} MiB"


def times(speedup: float) -> str:
    """1.234 -> "1.2x", 1.04 -> "1.04x"."""
    return f"{speedup:.1f}x" if speedup >= 1.095 else f"{speedup:.2f}x"


def cores(count: float) -> str:
    """2.0 -> "2 cores", 1.0 -> "1 core", 1.5 -> "1.5 cores"."""
    return f"{count:g} core" if count == 1 else f"{count:g} cores"


def duration(hours: float) -> str:
    """0.2 -> "12 min", 31.2 -> "31 h"."""
    if hours < 1:
        return f"{max(1, round(60 * hours))} min"
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"
