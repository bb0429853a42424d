"""The step: where its time goes, as a stacked bar, and how steady it is."""

from collections.abc import Sequence

from ...model.snapshot import Scope, Snapshot, StepStats
from ...steps import Step
from ...wording.gpu import clock_words, exposed_share
from ...wording.numbers import count, digits, duration, steps_in_time
from ...wording.steps import drawn_phases, inside_words, usual_words
from ...wording.throughput import short_words
from ...wording.words import against
from ..ledger import ledger_row
from ..panel import Panel, View
from ..text import EMPTY, Row, Span, ends, row, rule
from .phase_table import rare_rows, step_change, table_rows
from .phases import DATA_WAIT, bar_row, in_colours, legend_row, sampled_rows, unsampled_rows
from .scope import LEAST_HEIGHT, phases_below, scope_rows
from .step_times import bars_of, longest_words, top_of, wall_ms

TABLE_FROM = 12
"""Rows from which the phases get a table and the recent steps a picture."""
MOST_PHASES = 8
RECENT_ROWS = 5
SCOPE_ROWS = 9
TEETH = 3
"""Samples a step from which the picture over time shows what happens within one."""


class StepPanel(Panel):
    """Heading, bar, legend; with room, a table of the phases, the inside of one step where the
    picture over time does not show it, and the recent steps."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The last window's steps in numbers."""
        stats, sampled = view.snapshot.steps, view.snapshot.sampled
        if stats is None and sampled is not None:
            if not sampled.samples:
                return unsampled_rows(width, self.has_focus)
            return sampled_rows(sampled, width, height, self.has_focus)
        if stats is None or not stats.in_window:
            total = f" {count(stats.total)}" if stats and stats.total else ""
            hooked = view.snapshot.status.mode == "hooks"
            text = "waiting for the first steps" if hooked or _connecting(view) else "no probe"
            waiting = row(f"   {text}", "dim")
            return [rule(f"Step{total}", (), width, self.has_focus), waiting]
        out = [rule(_title(view.snapshot, stats), _notes(view, stats), width, self.has_focus)]
        out.append(bar_row(drawn_phases(view.snapshot), width))
        if height < TABLE_FROM:
            return [
                *out,
                legend_row(drawn_phases(view.snapshot), width, exposed_share(view.snapshot)),
            ]
        out += [EMPTY, *table_rows(view, width, MOST_PHASES + 2), *rare_rows(stats.phases)]
        if view.snapshot.gpu_phases is not None:
            words = " · ".join(clock_words(view.snapshot.gpu_phases))
            out.append(row(f" on the GPU: {words}", "dim"))
        if view.snapshot.ledger is not None:
            out.append(ledger_row(view.snapshot.ledger, width))
        room = height - len(out) - 1
        if room >= LEAST_HEIGHT and (scope := _hidden_inside(view.snapshot)):
            phases = phases_below(view.snapshot)
            out += [EMPTY, *scope_rows(scope, phases, width, min(room, SCOPE_ROWS))]
        room = height - len(out) - 2
        if room >= 2:
            out += [EMPTY, *recent_rows(view.snapshot.recent, width, min(room, RECENT_ROWS))]
        return out


def _connecting(view: View) -> bool:
    return view.snapshot.status.state == "connecting"


def _hidden_inside(snapshot: Snapshot) -> Scope | None:
    """The scope of steps that are too short to have teeth."""
    scope, saw = snapshot.scope, snapshot.sawtooth
    if scope is None or saw is None or scope.step_ns >= TEETH * saw.series.interval_ns:
        return None
    return scope


def _title(snapshot: Snapshot, stats: StepStats) -> str:
    """Where there is a GPU it says that the bar is by the other clock."""
    kind = "Inference step" if stats.inference else "Step"
    clock = " · host clock" if snapshot.gpu_phases is not None else ""
    return f"{kind} {count(stats.total)}{clock}"


def _notes(view: View, stats: StepStats) -> list[str]:
    """Of a run that stands nothing is shown as if it went on."""
    snapshot = view.snapshot
    if snapshot.verdict.finding.kind == "stalled" and snapshot.open_step is not None:
        now = snapshot.open_step
        since_s = now.age_s if now.step_age_s is None else now.step_age_s
        first, *more = usual_words(stats)
        return [f"no step for {duration(since_s)}", f"before: {first}", *more]
    samples = "" if stats.samples_s is None else f"{digits(stats.samples_s)} samples/s"
    paces = [*usual_words(stats), steps_in_time(stats.steps_s), samples]
    paces += short_words(snapshot.throughput, snapshot.numerics)
    return [*_changed(view, stats), inside_words(snapshot), *paces]


def _changed(view: View, stats: StepStats) -> list[str]:
    """ "▲ +38% against step 1,204 (3m ago)"."""
    if view.baseline is None or view.baseline.steps is None:
        return []
    change = step_change(view.baseline.steps, stats)
    return [f"{change.text if change else 'as before,'} {against(view.baseline, view.snapshot)}"]


def recent_rows(steps: Sequence[Step], width: int, height: int) -> list[Row]:
    """The last steps as columns from 0: blocks for work, shade for data wait."""
    shown = steps[-(width - 4) :]
    if not shown:
        return []
    walls = [wall_ms(step) for step in shown]
    left = (
        Span(f" last {len(shown)} steps   ", "dim"),
        Span("░", "data"),
        Span(" data wait  ", "dim"),
        Span("█", "area"),
        Span(" the rest", "dim"),
    )
    top = top_of(walls)
    head = ends(left, (Span(f"{longest_words(walls, top)} ", "dim"),), width)
    body = bars_of(shown, height, top)
    return [head, *((Span("   "), *in_colours(text, DATA_WAIT)) for text in body)]
