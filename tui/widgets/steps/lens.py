"""The step lens: the last steps on the host's clock and on the GPU's, on one axis of time."""

from collections.abc import Sequence

from tui.snapshot import Snapshot
from tui.widgets.bindings import bindings
from tui.widgets.panel import Panel
from tui.widgets.spans import EMPTY, Row, row, rule
from tui.widgets.steps.lanes import Pair, pairs_of
from tui.widgets.steps.lens_picture import GUTTER, legend_row, picture_rows
from tui.widgets.steps.lens_plan import plan_for
from tui.widgets.steps.lens_told import list_rows, told_rows, what_is_missing
from tui.widgets.steps.lens_window import CALM_NS, SHORT_NS, Window, candidates, window_of
from tui.widgets.view import View
from tui.wording.numbers import count
from tui.wording.sampled import waiting_words


class LensPanel(Panel):
    """Keeps the step that it ends with: for a second where the steps are short, and for as long as
    it is there where a person chose it."""

    KIND = "lens"
    BINDINGS = bindings("lens")

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._chosen_ns: int | None = None
        """Start of the step that a person chose; None: the newest."""
        self._newest: tuple[int, int] = (0, 0)
        """When a newest step was last taken, and its start."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, numbers of the steps, the lanes with the slants between them, what is told of
        the last one; with room, the other steps as a list."""
        snapshot = view.snapshot
        pairs = _until(view, pairs_of(snapshot.recent, snapshot.recent_gpu))
        if not pairs:
            said = row(f"   {waiting_words(view.snapshot)}", "dim")
            return [rule("Step lens", (), width, self.has_focus), said]
        columns = width - GUTTER - 1
        window = window_of(pairs, self._last(candidates(pairs), snapshot.t_ns), columns)
        plan = plan_for(height, window.last.on_gpu is not None)
        notes = _notes(snapshot, window, self._chosen_ns is not None)
        out = [rule(_title(pairs, window, columns), notes, width, self.has_focus)]
        out += picture_rows(pairs, window, plan, columns)
        if plan.legend:
            out.append(legend_row(snapshot, window, columns, width))
        out += told_rows(snapshot, window.last, width, plan.told)
        if window.last.on_gpu is None and (why := what_is_missing(snapshot)):
            out.append(row(f" {why}", "dim"))
        room = height - len(out)
        if room >= 4:
            shown = candidates(pairs)
            out += [EMPTY, *list_rows(shown, shown.index(window.last), width, room - 1)]
        return out

    def action_earlier(self) -> None:
        """End with the step before."""
        self._choose(-1)

    def action_later(self) -> None:
        """End with the step after; after the newest one, follow the run again."""
        self._choose(+1)

    def _choose(self, by: int) -> None:
        if self._view is None:
            return
        snapshot = self._view.snapshot
        pairs = candidates(_until(self._view, pairs_of(snapshot.recent, snapshot.recent_gpu)))
        if not pairs:
            return
        at = pairs.index(self._last(pairs, snapshot.t_ns)) + by
        self._chosen_ns = pairs[max(0, at)].step.start_ns if at < len(pairs) - 1 else None
        self._redraw()

    def _last(self, pairs: Sequence[Pair], now_ns: int) -> Pair:
        """The chosen step while it is held, else the newest; that one changes calmly."""
        for start_ns in (self._chosen_ns, self._calm_ns(pairs, now_ns)):
            for pair in reversed(pairs):
                if pair.step.start_ns == start_ns:
                    return pair
        return pairs[-1]

    def _calm_ns(self, pairs: Sequence[Pair], now_ns: int) -> int:
        newest = pairs[-1].step
        taken_ns, start_ns = self._newest
        short = newest.end_ns - newest.start_ns < SHORT_NS
        if not (short and taken_ns <= now_ns < taken_ns + CALM_NS):
            self._newest = (now_ns, newest.start_ns)
            return newest.start_ns
        return start_ns


def _until(view: View, pairs: list[Pair]) -> list[Pair]:
    """Those that had ended at the moment that a person went back to."""
    if view.at_ns is None:
        return pairs
    return [pair for pair in pairs if pair.step.end_ns <= view.at_ns]


def _title(pairs: Sequence[Pair], window: Window, columns: int) -> str:
    """The steps in the host's lane: it is ahead of the GPU's, on which the last one told ends."""
    clocks = "the host's clock" if window.last.on_gpu is None else "both clocks"
    until_ns = window.from_ns + columns * window.column_ns
    seen = [
        pair.step.number
        for pair in pairs
        if pair.step.end_ns > window.from_ns and pair.step.start_ns < until_ns
    ]
    first, last = seen[0], seen[-1]
    steps = f"Steps {count(first)} to {count(last)}" if first < last else f"Step {count(last)}"
    merged = window.a_block * window.last.step.count
    return f"{steps}, blocks of {merged}" if merged > 1 else f"{steps} on {clocks}"


def _notes(snapshot: Snapshot, window: Window, chosen: bool) -> list[str]:
    notes = ["chosen"] if chosen else []
    row = window.last.on_gpu
    if row is None:
        return [*notes, "host [hook]"]
    event = "event" if row.uncertain_ns is None else f"event ±{row.uncertain_ns / 1e3:.0f} µs"
    every = snapshot.gpu_phases.every if snapshot.gpu_phases else 1
    sampled = f"1 step in {every} on the GPU" if every > 1 else ""
    return [*notes, f"host [hook] · GPU [{event}]", sampled]
