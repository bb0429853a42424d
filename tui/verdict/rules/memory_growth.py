"""Memory that grows: on the device, in the training process, or in its workers."""

from math import isfinite

from tui.verdict.bound import plain
from tui.verdict.exhaustion import Exhaustion, exhaustion, time_left
from tui.verdict.figures import mib
from tui.verdict.findings import Evidence, Finding
from tui.verdict.growth import Growth
from tui.verdict.memory_cause import cause_of
from tui.verdict.memory_places import Place
from tui.verdict.memory_trend import Unit, unit_of
from tui.verdict.onset import onset
from tui.verdict.window import Window


def memory_growth(place: Place, grown: Growth, leak: bool, window: Window) -> Finding:
    """`growth` is provisional; `leak` is growth that went on, or that will fill the memory soon.
    Only then is said when."""
    left = exhaustion(place, grown, window)
    urgent = left is not None and left.urgent(grown)
    cause = cause_of(place, grown, window)
    evidence = [_rise(place, grown, window)]
    if (leak or urgent) and left is not None:
        evidence.append(_until_full(place, left, unit_of(window)))
    if cause.evidence is not None:
        evidence.append(cause.evidence)
    soon = (leak or urgent) and left is not None and left.within_a_day
    headline = f"{place.kind} memory grows {mib(100 * grown.slope.middle)} per 100 "
    headline += unit_of(window)
    if soon and left is not None and left.within_an_hour:
        headline += f", full in {time_left(left)}"
    return plain(
        "memory-growth",
        "leak" if leak or urgent else "growth",
        "critical" if soon else "warning",
        headline,
        tuple(evidence),
        cause.advice,
    )


def _rise(place: Place, grown: Growth, window: Window) -> Evidence:
    first, last = grown.blocks.lows[0], grown.blocks.lows[-1]
    text = f"{place.whose}: {mib(first.bytes)} to {mib(last.bytes)} "
    text += f"over {last.step - first.step:,} {unit_of(window)}"
    began = onset(place.points, grown, window.moments)
    if began is not None:
        text += f", since about step {began.step:,}"
        if began.beside is not None:
            happened = {"epoch": "a new epoch", "workers": "new workers"}
            what = happened.get(began.beside.kind, began.beside.kind)
            text += f" ({what} at step {began.beside.step:,})"
    return Evidence(text, place.source, grown.blocks.rise_bytes / 1024 / 1024, "MiB")


def _until_full(place: Place, left: Exhaustion, unit: Unit) -> Evidence:
    earliest, latest = left.earliest_steps, left.latest_steps
    steps = [f"{earliest:,.0f}"]
    if isfinite(latest):
        steps.append(f"{latest:,.0f}")
    text = f"memory is full in {_range(steps)} {unit} ({time_left(left)})"
    return Evidence(text, place.source, earliest, unit)


def _range(ends: list[str]) -> str:
    """ "200 to 240"; one figure where both ends read the same."""
    return " to ".join(dict.fromkeys(ends))
