"""The phases in numbers: how they spread over the steps, both clocks, and what has changed."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...model.snapshot import PhaseStats, Snapshot, Spread, StepStats
from ...wording.gpu import clock_words
from ...wording.numbers import count, digits, like, milliseconds, percent, steps_in_time
from ...wording.steps import about, drawn_phases, rare_words
from ...wording.words import NumberChange, against, change_of, noise_of
from ..charts.small import LEAST_HEIGHT, histogram_rows
from ..panel import Panel, View
from ..text import EMPTY, Row, Span, cell_len, clip, row, rule
from .phases import BASE, PhaseStyle, bar_row, looks_of, sampled_rows
from .step_times import wall_ms

NAME_CELLS: Final = 16
MOST_PICTURE: Final = 12
LEAST_BAR: Final = 12
ENOUGH: Final = 7
"""Rows from which those of what comes now and then do not push out most of the table."""
LEAST_OF_STEP: Final = 0.002
"""A change by less than this part of the step is of no interest, however many times it is."""
IMPORTANT: Final = ("mean", "share", "change", "p50", "p95", "on GPU", "max")
"""Columns that stay longest where it gets narrow, first the most important."""


class PhaseTable(Panel):
    """Heading, with room the stacked bar, then a line a phase and one of the whole step."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The window's steps in numbers."""
        stats, sampled = view.snapshot.steps, view.snapshot.sampled
        if stats is None and sampled is not None and sampled.samples:
            return sampled_rows(sampled, width, height, self.has_focus)
        if stats is None or not stats.in_window:
            waiting = row("   waiting for the first steps", "dim")
            return [rule("Phases", (), width, self.has_focus), waiting]
        out = [rule(_title(stats), _notes(view, stats), width, self.has_focus)]
        rare = rare_rows(stats.phases) if height >= ENOUGH else []
        table = table_rows(view, width, height - 1 - len(rare))
        spare = height - 1 - len(table) - len(rare)
        if spare >= 1:
            out.append(bar_row(drawn_phases(view.snapshot), width))
        if spare >= 3:
            out.append(EMPTY)
        out += table
        out += rare
        if view.snapshot.gpu_phases is not None and height > len(out):
            out.append(
                row(f" on the GPU: {' · '.join(clock_words(view.snapshot.gpu_phases))}", "dim")
            )
        room = min(height - len(out) - 2, MOST_PICTURE)
        if room >= LEAST_HEIGHT:
            walls = [wall_ms(step) for step in view.snapshot.recent]
            heading = row(f" how long the last {count(len(walls))} steps took", "dim")
            out += [EMPTY, heading, *histogram_rows(walls, width, room)]
        return out


def table_rows(view: View, width: int, height: int) -> list[Row]:
    """The table in at most so many rows: where it does not fit, the shortest phases go first, and
    never the wait for data: that there is none is an answer as well."""
    stats = view.snapshot.steps
    assert stats is not None
    looks = looks_of(drawn_phases(view.snapshot))
    by_length = sorted(looks, key=_last_to_go)[: max(1, height - 2)]
    shown = [one for one in looks if one in by_length]
    columns = _columns(view, stats, [phase for phase, _ in shown], width)
    heads = "".join(f"{column.name:>{column.cells}}" for column in columns)
    bar = width - NAME_CELLS - cell_len(heads) - 2
    out: list[Row] = [row(f"{f' {BASE}':<{NAME_CELLS}}{heads}", "dim")]
    for at, (phase, look) in enumerate(shown):
        filled = round(phase.share * bar) if bar >= LEAST_BAR else 0
        drawn = (Span("  "), Span(look.fill * filled, look.role))
        out.append((*_name(look), *(column.figures[at] for column in columns), *drawn))
    hidden = len(looks) - len(shown)
    name = f" step (+{hidden} more)" if hidden else " step"
    whole = Span(f"{name:<{NAME_CELLS}}", "dim")
    out.append((whole, *(column.figures[-1] for column in columns)))
    return out


def rare_rows(phases: Sequence[PhaseStats]) -> list[Row]:
    """ " ╳ checkpoint   every 10 steps, 903 ms each": of those that few steps have."""
    return [
        (*_name(look), Span(f"  {words}", "dim"))
        for phase, look in looks_of(phases)
        if (words := rare_words(phase))
    ]


def _last_to_go(one: tuple[PhaseStats, PhaseStyle]) -> tuple[bool, float]:
    phase, _ = one
    return phase.name != "data", -phase.mean_ms


class _Column(NamedTuple):
    name: str
    cells: int
    figures: Sequence[Span]
    """Of each phase, and of the step."""


def _columns(
    view: View, stats: StepStats, shown: Sequence[PhaseStats], width: int
) -> list[_Column]:
    step_ms = sum(phase.mean_ms for phase in stats.phases)
    places_ms = min(step_ms, stats.p50_ms)
    means = [f"{about(phase)}{like(phase.mean_ms, places_ms)}" for phase in shown]
    made = [
        *(_spread(name, shown, _whole(stats), places_ms) for name in ("p50", "p95", "max")),
        _figures("mean", [*means, like(step_ms, places_ms)]),
    ]
    if (on_gpu := _on_gpu(view.snapshot, shown, places_ms)) is not None:
        made.append(on_gpu)
    made.append(_figures("share", [*(f"{about(one)}{percent(one.share)}" for one in shown), ""], 7))
    if view.baseline is not None and view.baseline.steps is not None:
        made.append(_changes(view.baseline.steps, stats, shown))
    kept = list(IMPORTANT)
    while kept and NAME_CELLS + sum(c.cells for c in made if c.name in kept) > width:
        kept.pop()
    return [column for column in made if column.name in kept]


def _name(look: PhaseStyle) -> Row:
    name = f"{clip(look.long, NAME_CELLS - 3):<{NAME_CELLS - 3}}"
    return (Span(" "), Span(look.fill, look.role), Span(f" {name}"))


def _figures(name: str, texts: Sequence[str], cells: int = 8) -> _Column:
    roles = ["text"] * (len(texts) - 1) + ["strong"]
    spans = [Span(f"{text:>{cells}}", role) for text, role in zip(texts, roles, strict=True)]
    return _Column(name, cells, spans)


def _whole(stats: StepStats) -> Spread:
    """Of the steps that the phases' spreads are of, once these are known."""
    return stats.whole or Spread(stats.p50_ms, stats.p95_ms, stats.max_ms, error_ms=0.0)


def _spread(name: str, shown: Sequence[PhaseStats], whole: Spread, places_ms: float) -> _Column:
    spreads = [*(phase.spread for phase in shown), whole]
    known = [None if one is None else getattr(one, f"{name}_ms") for one in spreads]
    return _figures(name, ["" if ms is None else like(ms, places_ms) for ms in known])


def _on_gpu(snapshot: Snapshot, shown: Sequence[PhaseStats], places_ms: float) -> _Column | None:
    """The same phases on the GPU's clock: there a phase that is not named took no time."""
    if snapshot.gpu_phases is None:
        return None
    means = {phase.name: phase.mean_ms for phase in snapshot.gpu_phases.phases}
    figures = [*(means.get(phase.name, 0.0) for phase in shown), sum(means.values())]
    return _figures("on GPU", [like(ms, places_ms) for ms in figures])


def _changes(before: StepStats, now: StepStats, shown: Sequence[PhaseStats]) -> _Column:
    changes = [
        *(phase_change(before, now, phase.name) for phase in shown),
        step_change(before, now),
    ]
    cells = 11
    blank = Span(" " * cells)
    return _Column(
        "change",
        cells,
        [Span(f"{one.text:>{cells}}", one.role) if one else blank for one in changes],
    )


def phase_change(before: StepStats, now: StepStats, name: str) -> NumberChange | None:
    """How much longer a phase takes on average; None where that may be chance."""
    was, does = _named(before, name), _named(now, name)
    noise = noise_of(_error(was), _error(does))
    if noise is None:
        return None
    least = LEAST_OF_STEP * sum(phase.mean_ms for phase in now.phases)
    return change_of(was.mean_ms if was else 0.0, does.mean_ms if does else 0.0, max(noise, least))


def step_change(before: StepStats, now: StepStats) -> NumberChange | None:
    """How much longer a step takes on average; None where that may be chance."""
    noise = noise_of(before.error_ms, now.error_ms)
    if noise is None:
        return None
    was, does = (sum(phase.mean_ms for phase in one.phases) for one in (before, now))
    return change_of(was, does, noise)


def _named(stats: StepStats, name: str) -> PhaseStats | None:
    return next((phase for phase in stats.phases if phase.name == name), None)


def _error(phase: PhaseStats | None) -> float | None:
    """A phase that is not there is known to take nothing."""
    if phase is None or not phase.mean_ms:
        return 0.0
    return None if phase.spread is None else phase.spread.error_ms


def _title(stats: StepStats) -> str:
    return f"Phases of {'an inference step' if stats.inference else 'a step'}"


def _notes(view: View, stats: StepStats) -> list[str]:
    notes = [against(view.baseline, view.snapshot)] if view.baseline is not None else []
    notes.append(f"last {count(stats.in_window)} steps")
    notes.append(steps_in_time(stats.steps_s))
    if stats.samples_s is not None:
        notes.append(f"{digits(stats.samples_s)} samples/s")
    if stats.merged > 1:
        notes.append(f"p50 to max are of means of {stats.merged} steps")
    return [*notes, f"longest {milliseconds(_whole(stats).max_ms)}"]
