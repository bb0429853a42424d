"""What a soak has to show, each with what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from tests.measuring.spread import spread
from tests.soak.costs import cost, interval
from tests.soak.figures import MIB, Column, cost_columns, held_columns, memory_columns
from tests.soak.record import SoakRecord
from tests.soak.sprint import LEAST_CPU
from tests.soak.trend import WARM_PARTS, Trend, trend

LEAK_MIB_H = 5.0
REMEMBERED_S = 3600.0
"""Monitors hold the last hour, and fill it first: what they hold is flat after it."""
MONITOR_MIB = 120e6 / MIB
MONITOR_CORE = 5.0
"""Per cent. Judged where the machine was the soak's own, as is what came late: a thread that others
disturb finds its caches cold and is late through no fault of its own."""
LATE_LINES = 0.01
"""Part of the lines that may come later than a second after the one before."""
HOOKS_US = 15.0
"""What they may cost a step."""
FEW = 2.0
"""Threads or descriptors: their medians differ by one as batches come and go."""
TOO_SHORT = "too short to tell"
COUNTED = (
    "watched threads",
    "watched descriptors",
    "screen threads",
    "screen descriptors",
    "JSON threads",
    "JSON descriptors",
    "socket files",
)


@dataclass(frozen=True)
class Bar:
    """One of them."""

    what: str
    measured: str
    bar: str
    held: bool | None
    """None: not known, as before the end, or where the bar lies within the interval."""


def bars(record: SoakRecord) -> list[Bar]:
    """All, the most important first."""
    columns = [*cost_columns(record), *memory_columns(record), *held_columns(record)]
    by_name = {column.name: column for column in columns}
    return [
        _losses(record),
        _steps(record),
        _lost(record),
        _lines(record),
        _leak("the watched run's memory beyond its twin's", by_name["watched − twin"], record),
        _filling("the screen's memory", by_name["screen RSS"], record),
        _filling("the JSON monitor's memory", by_name["JSON RSS"], record),
        _largest("the screen's memory", by_name["screen RSS"]),
        _largest("the JSON monitor's memory", by_name["JSON RSS"]),
        _mean("the screen's CPU", by_name["screen"], record),
        _mean("the JSON monitor's CPU", by_name["JSON"], record),
        *(_no_more(by_name[name], record) for name in COUNTED),
        _drift(record, by_name["hooks, least CPU"]),
        _leaving(record),
    ]


def _losses(record: SoakRecord) -> Bar:
    ours = {row["steps"]: row["losses"] for row in record.rounds}
    theirs = {row["steps"]: row["losses"] for row in record.bare_rounds}
    common = sorted(ours.keys() & theirs.keys())
    same = [steps for steps in common if ours[steps] == theirs[steps]]
    measured = f"{len(same)} of {len(common)} hashes, the last after {max(common, default=0)} steps"
    held = bool(common) and same == common
    return Bar("losses, watched and bare", measured, "the same bit for bit", held)


def _steps(record: SoakRecord) -> Bar:
    made = record.hooked_steps
    held = None if made is None else record.attached.steps == made
    measured = f"{record.attached.steps} of {made or 'so many, which its end shows'}"
    return Bar("steps reported by the JSON monitor", measured, "all", held)


def _lost(record: SoakRecord) -> Bar:
    marks = max(row["lost_marks"] for row in record.samples)
    lost = record.attached.lost_messages
    word = record.closing["screen_says_none_lost"] if record.closing is not None else None
    screen = {None: "not known", True: "none", False: "some"}[word]
    measured = f"JSON monitor {lost}, screen {screen}; marks that the probe dropped {marks}"
    return Bar("messages lost", measured, "none", False if lost or marks else word)


def _lines(record: SoakRecord) -> Bar:
    attached = record.attached
    wrong = "; ".join(attached.wrong) or "nothing wrong"
    measured = (
        f"{attached.lines}, {wrong}; {attached.late} later than 1 s, the longest gap "
        f"{attached.longest_gap_s:.1f} s; states {', '.join(attached.states)}; {_whose(record)}"
    )
    held: bool | None = not attached.wrong and attached.finals == int(record.closing is not None)
    if held and attached.late > LATE_LINES * attached.lines:
        held = None if not record.to_itself else False
    return Bar("lines of the JSON monitor", measured, "by its contract, 99 % in time", held)


def _leak(what: str, column: Column, record: SoakRecord, warm_s: float = 0.0) -> Bar:
    found = trend(column.figures, record.length_s, warm_s)
    held = None if found is None else _under(LEAK_MIB_H, found.low, found.high)
    bar = f"under {LEAK_MIB_H:.0f} MiB an hour"
    return Bar(f"growth of {what}", words(found, "MiB"), bar, held)


def _filling(what: str, column: Column, record: SoakRecord) -> Bar:
    """Judged by what comes after the hour that a monitor remembers."""
    judged = _leak(what, column, record, REMEMBERED_S)
    if trend(column.figures, record.length_s, REMEMBERED_S) is not None:
        return judged
    growth = words(trend(column.figures, record.length_s), "MiB")
    return replace(judged, measured=f"{growth}, while it fills the hour that it remembers")


def _largest(what: str, column: Column) -> Bar:
    known = _known(column.figures)
    largest = f"{max(known):.1f} {column.unit}"
    bar = f"at most {MONITOR_MIB:.0f} {column.unit}"
    return Bar(f"{what} at its largest", largest, bar, max(known) <= MONITOR_MIB)


def _mean(what: str, column: Column, record: SoakRecord) -> Bar:
    """Of the whole run, its start too."""
    known = _known(column.figures)
    bar = f"at most {MONITOR_CORE:.0f} {column.unit}"
    if not known:
        return Bar(what, TOO_SHORT, bar, None)
    low, high = spread(known, fmean)
    measured = f"{fmean(known):.1f} {column.unit} ({low:.1f} to {high:.1f}); {_whose(record)}"
    return Bar(what, measured, bar, _under(MONITOR_CORE, low, high) if record.to_itself else None)


def _under(bar: float, low: float, high: float) -> bool | None:
    """None where the bar lies within the interval."""
    return None if low <= bar < high else high <= bar


def _whose(record: SoakRecord) -> str:
    if record.load is None:
        return "the machine's load was not looked at"
    return f"load {record.load:.1f} on {record.cores} cores"


def _no_more(column: Column, record: SoakRecord) -> Bar:
    found = trend(column.figures, record.length_s)
    if found is None:
        return Bar(column.name, TOO_SHORT, "no growth", None)
    hours = record.length_s / 3600
    held = found.low <= 0 or _under(FEW, hours * found.low, hours * found.high)
    first, last = _known(column.figures)[WARM_PARTS], _known(column.figures)[-1]
    measured = f"{first:.0f} after the warm-up, {last:.0f} at the end"
    return Bar(column.name, measured, "no growth", held)


def _drift(record: SoakRecord, column: Column) -> Bar:
    """Where the machine is so busy that a cost as large as the bar of the whole would not be seen,
    nobody knows."""
    what, bar = "drift of the hooks' cost", "within its noise"
    found = trend(column.figures, record.length_s)
    triples = [triple for part in record.triples for triple in part]
    whole = cost(triples, LEAST_CPU)
    if found is None or whole is None:
        return Bar(what, TOO_SHORT, bar, None)
    low, high = interval(triples, LEAST_CPU)
    measured = (
        f"{words(found, 'us a step')}, of {whole.us:.1f} us ({low:.1f} to {high:.1f}); "
        f"A/A {whole.noise_us:+.1f} us"
    )
    hours = record.length_s / 3600
    unsure = hours * (found.high - found.low) / 2 > HOOKS_US
    drifted = hours * found.low > (high - low) / 2
    return Bar(what, measured, bar, None if unsure else not drifted)


def _leaving(record: SoakRecord) -> Bar:
    what, bar = "how they end", "in order, no socket left"
    if record.closing is None:
        return Bar(what, "not yet", bar, None)
    names = ("watched", "bare", "screen", "json")
    statuses = [record.closing[f"{name}_status"] for name in names]
    left = record.closing["sockets"]
    measured = f"exit statuses {', '.join(map(str, statuses))}; {left} socket files left"
    return Bar(what, measured, bar, not any(statuses) and not left)


def words(found: Trend | None, unit: str = "") -> str:
    """ "+1.2 MiB an hour (-0.3 to +2.7)"; without a unit the figures alone."""
    if found is None:
        return TOO_SHORT
    attached = f"{found.hourly:+.1f} {unit} an hour" if unit else f"{found.hourly:+.1f}"
    return f"{attached} ({found.low:+.1f} to {found.high:+.1f})"


def _known(figures: Sequence[float | None]) -> list[float]:
    return [figure for figure in figures if figure is not None]
