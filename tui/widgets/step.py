"""The step: where its time goes, as a stacked bar, and how steady it is."""

from collections.abc import Sequence

from probe.wire.messages import Step
from tui.snapshot import Phase, Scope, Snapshot, StepStats
from tui.widgets.columns import Column, area_rows
from tui.widgets.panel import Panel
from tui.widgets.phases import bar_row, legend_row, looks_of
from tui.widgets.scope import LEAST_HEIGHT, scope_rows
from tui.widgets.spans import EMPTY, Row, Span, clip, ends, row, rule
from tui.widgets.view import View
from tui.wording.gpu import clock_words
from tui.wording.numbers import count, digits, like, milliseconds, percent

TABLE_FROM = 12
"""Rows from which the phases get a table and the recent steps a picture."""
RECENT_ROWS = 8
SCOPE_ROWS = 9
TEETH = 3
"""Samples a step from which the picture over time shows what happens within one."""


class StepPanel(Panel):
    """Heading, bar, legend; with room, a table of the phases, the inside of one step where the
    picture over time does not show it, and the recent steps."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The last window's steps in numbers."""
        stats = view.snapshot.steps
        if stats is None or not stats.in_window:
            total = f" {count(stats.total)}" if stats and stats.total else ""
            hooked = view.snapshot.status.mode == "hooks"
            text = "waiting for the first steps" if hooked or _connecting(view) else "no probe"
            waiting = row(f"   {text}", "dim")
            return [rule(f"Step{total}", (), width, self.has_focus), waiting]
        kind = "Inference step" if stats.inference else "Step"
        out = [rule(f"{kind} {count(stats.total)}", _notes(stats), width, self.has_focus)]
        out.append(bar_row(stats.phases, width))
        if height < TABLE_FROM:
            return [*out, legend_row(stats.phases, width)]
        out += [EMPTY, *_table(stats.phases, width)]
        if view.snapshot.gpu_phases is not None:
            words = " · ".join(clock_words(view.snapshot.gpu_phases))
            out.append(row(f" on the GPU: {words}", "dim"))
        room = height - len(out) - 1
        if room >= LEAST_HEIGHT and (scope := _hidden_inside(view.snapshot)):
            out += [EMPTY, *scope_rows(scope, stats.phases, width, min(room, SCOPE_ROWS))]
        room = height - len(out) - 2
        if room >= 2:
            out += [EMPTY, *recent_rows(view.snapshot.recent, width, min(room, RECENT_ROWS))]
        return out


def _connecting(view: View) -> bool:
    return view.snapshot.status.state == "connecting"


def _hidden_inside(snapshot: Snapshot) -> Scope | None:
    """The scope of steps that are too short to have teeth."""
    scope, saw = snapshot.scope, snapshot.sawtooth
    if scope is None or saw is None or scope.step_ns >= TEETH * saw.interval_ns:
        return None
    return scope


def _notes(stats: StepStats) -> list[str]:
    if stats.p95_ms < 10_000:
        times = f"p50 {digits(stats.p50_ms)} · p95 {digits(stats.p95_ms)} ms"
    else:
        times = f"p50 {milliseconds(stats.p50_ms)} · p95 {milliseconds(stats.p95_ms)}"
    samples = "" if stats.samples_s is None else f"{digits(stats.samples_s)} samples/s"
    return [times, f"{digits(stats.steps_s)} steps/s", samples]


def _table(phases: Sequence[Phase], width: int) -> list[Row]:
    """One line a phase: name, mean, share, and the share as a bar."""
    out: list[Row] = []
    bar = max(0, width - 36)
    step_ms = sum(p.mean_ms for p in phases)
    for phase, look in looks_of(phases):
        cells = round(phase.share * bar)
        out.append(
            (
                Span(f" {look.fill} ", look.role),
                Span(f"{clip(look.long, 14):<15}"),
                Span(f"{like(phase.mean_ms, step_ms):>8} ms", "strong"),
                Span(f"{percent(phase.share):>5} ", "strong"),
                Span(look.fill * cells, look.role),
            )
        )
    return out


def recent_rows(steps: Sequence[Step], width: int, height: int) -> list[Row]:
    """The last steps as columns from 0 to the longest: blocks for work, shade for data wait."""
    shown = steps[-(width - 4) :]
    if not shown:
        return []
    columns = [Column(_work_ms(step), _ms(step, step.end_ns - step.start_ns)) for step in shown]
    top = max(column.peak for column in columns)
    left = (
        Span(f" last {len(shown)} steps   ", "dim"),
        Span("░", "area"),
        Span(" data wait  ", "dim"),
        Span("█", "area"),
        Span(" the rest", "dim"),
    )
    head = ends(left, (Span(f"longest {milliseconds(top)} ", "dim"),), width)
    return [head, *((Span("   "), Span(t, "area")) for t in area_rows(columns, height, 0.0, top))]


def _work_ms(step: Step) -> float:
    return _ms(step, step.end_ns - step.start_ns - step.data_ns - step.startup_ns)


def _ms(step: Step, ns: int) -> float:
    """Of one step, where the message merged several."""
    return max(0, ns) / 1e6 / max(1, step.count)
