"""The last steps on both clocks: two lanes of time, one step in words, and many as a list."""

from collections.abc import Sequence

from ...model.snapshot import Snapshot
from ...steps import GpuStep
from ...wording.numbers import count, like, milliseconds
from ...wording.steps import drawn_phases, waiting_words
from ..footer import bindings
from ..panel import Panel, View
from ..text import EMPTY, Row, Span, joined, length, row, rule
from .lanes import Pair, pairs_of
from .two_clocks_drawing import (
    CALM_NS,
    GUTTER,
    SHORT_NS,
    DrawnSpan,
    candidates,
    legend_row,
    picture_rows,
    plan_for,
    window_of,
)

SHORT = ("fetch", "fwd", "bwd", "opt")
"""The marks at which the lag is known."""
WORTH_SHOWING = 0.02
"""Of a wait that is a smaller part of the step nobody asks whether the GPU was idle for it."""
KEEPS_UP = 0.05
"""A lag of a smaller part of a step is the time that a launch takes."""
NAMES = (
    *("step", "wall ms", "wait", "GPU wall", "GPU idle", "hidden"),
    *(f"lag {name}" for name in SHORT),
    "ready",
)
"""The list's columns; one of which nothing is known is left out."""
CELLS = 10
"""Of a column of the list."""


def step_rows(snapshot: Snapshot, pair: Pair, width: int, rows: int) -> list[Row]:
    """One step in one row or two: its length and its waits, then its lags."""
    number = Span(f" step {count(pair.step.number)}  ", "strong")
    first, second = _waits(snapshot, pair), _lags(pair)
    if rows == 1 or not second:
        words = joined([*first, *second], width - length((number,)) - 1)
        return [(number, Span(words))]
    lead = " " * length((number,))
    return [
        (number, Span(joined(first, width - len(lead) - 1))),
        (Span(lead), Span(joined(second, width - len(lead) - 1))),
    ]


def _waits(snapshot: Snapshot, pair: Pair) -> list[str]:
    step, on = pair
    times = max(1, step.count)
    wall_ms = _ms(step.end_ns - step.start_ns, times)
    wait_ms = _ms(step.data_ns + step.startup_ns, times)
    words = [milliseconds(wall_ms), f"wait {like(wait_ms, wall_ms)} ms"]
    if on is not None and wait_ms >= WORTH_SHOWING * wall_ms:
        words.append(f"GPU idle {like(_ms(on.exposed_ns, times), wall_ms)}")
        words.append(f"hidden {like(_ms(on.hidden_ns, times), wall_ms)}")
    if step.fetches > step.count:
        words.append(f"{step.fetches // times} fetches, summed")
    if step.ready is not None:
        most = _most_ready(snapshot)
        words.append(f"{step.ready}{f' of {most}' if most else ''} batches ready")
    return words


def _lags(pair: Pair) -> list[str]:
    on = pair.on_gpu
    if on is None:
        return []
    lags = _lags_ns(on)
    known = [ns for ns in lags if ns is not None]
    if not known:
        return ["the clocks are not aligned yet"]
    most_ms = max(known) / 1e6
    words = [
        f"{name} {like(max(0, ns) / 1e6, most_ms)}"
        for name, ns in zip(SHORT, lags, strict=True)
        if ns is not None
    ]
    return [f"lag {' '.join(words)} ms", _lag_words(max(known), pair)]


def _lag_words(lag_ns: int, pair: Pair) -> str:
    """What so much lag says."""
    steps = lag_ns * pair.step.count / max(1, pair.step.end_ns - pair.step.start_ns)
    if steps < KEEPS_UP:
        return "the GPU waits for the host"
    return f"the host is {steps:.1f} steps ahead"


def _most_ready(snapshot: Snapshot) -> int | None:
    """Batches that the training's loader can have ready at most; None where that is not known."""
    for loader in reversed(snapshot.loaders):
        if not loader.evaluation and loader.num_workers and loader.prefetch_factor:
            return loader.num_workers * loader.prefetch_factor
    return None


def what_is_missing(snapshot: Snapshot) -> str:
    """Why there is no second lane."""
    if not snapshot.gpus:
        return "no GPU lane: that needs training on CUDA"
    if snapshot.gpu_phases is None:
        return "GPU lane: after the first step measured there"
    return f"GPU lane: 1 step in {count(snapshot.gpu_phases.every)} is measured, none here"


def list_rows(pairs: Sequence[Pair], last: int, width: int, height: int) -> list[Row]:
    """A heading, and a line for each of the steps until the last one, which stands lowest."""
    shown = pairs[max(0, last + 2 - height) : last + 1]
    table = [_figures(pair) for pair in shown]
    measured = [name for name in NAMES if any(name in figures for figures in table)]
    names = measured[: max(1, width // CELLS)]
    out = [row("".join(f"{name:>{CELLS}}" for name in names), "dim")]
    for pair, figures in zip(shown, table, strict=True):
        text = "".join(f"{figures.get(name, ''):>{CELLS}}" for name in names)
        out.append(row(text, "strong" if pair is pairs[last] else "text"))
    return out


def _figures(pair: Pair) -> dict[str, str]:
    """What is known of a step, by the list's columns."""
    step, on = pair
    times = max(1, step.count)
    wall_ms = _ms(step.end_ns - step.start_ns, times)
    wait_ms = _ms(step.data_ns + step.startup_ns, times)
    measured: dict[str, float | None] = {"wall ms": wall_ms, "wait": wait_ms}
    if on is not None:
        measured["GPU wall"], measured["GPU idle"] = (
            _ms(on.wall_ns, times),
            _ms(on.exposed_ns, times),
        )
        measured["hidden"] = _ms(on.hidden_ns, times)
        for name, ns in zip(SHORT, _lags_ns(on), strict=True):
            measured[f"lag {name}"] = None if ns is None else max(0, ns) / 1e6
    figures = {name: like(ms, wall_ms) for name, ms in measured.items() if ms is not None}
    ready = {} if step.ready is None else {"ready": str(step.ready)}
    return {"step": count(step.number), **figures, **ready}


def _lags_ns(on: GpuStep) -> tuple[int | None, ...]:
    return on.lag_data_ns, on.lag_forward_ns, on.lag_backward_ns, on.lag_optimizer_ns


def _ms(ns: int, times: int) -> float:
    return ns / 1e6 / times


# The panel: the last steps on the host's clock and on the GPU's, on one axis of time.


class TwoClocksPanel(Panel):
    """Keeps the step that it ends with: for a second where the steps are short, and for as long as
    it is there where a person chose it."""

    KIND = "two clocks"
    BINDINGS = bindings("two clocks")

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._chosen_ns: int | None = None
        """Start of the step that a person chose; None: the newest."""
        self._newest: tuple[int, int] = (0, 0)
        """When a newest step was last taken, and its start."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, numbers of the steps, the lanes with the slants between them, what is known of
        the last one; with room, the other steps as a list."""
        snapshot = view.snapshot
        pairs = _until(view, pairs_of(snapshot.recent, snapshot.recent_gpu))
        if not pairs:
            words = row(f"   {waiting_words(view.snapshot)}", "dim")
            return [rule("Step", (), width, self.has_focus), words]
        columns = width - GUTTER - 1
        window = window_of(pairs, self._last(candidates(pairs), snapshot.t_ns), columns)
        plan = plan_for(height, window.last.on_gpu is not None)
        notes = _notes(snapshot, window, self._chosen_ns is not None)
        out = [rule(_title(pairs, window, columns), notes, width, self.has_focus)]
        out += picture_rows(pairs, window, plan, columns, drawn_phases(snapshot))
        if plan.legend:
            out.append(legend_row(snapshot, window, columns, width))
        out += step_rows(snapshot, window.last, width, plan.words)
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


def _title(pairs: Sequence[Pair], window: DrawnSpan, columns: int) -> str:
    """The steps in the host's lane: it is ahead of the GPU's, where the last one measured ends."""
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


def _notes(snapshot: Snapshot, window: DrawnSpan, chosen: bool) -> list[str]:
    notes = ["chosen"] if chosen else []
    row = window.last.on_gpu
    if row is None:
        return [*notes, "host [hook]"]
    event = "event" if row.uncertain_ns is None else f"event ±{row.uncertain_ns / 1e3:.0f} µs"
    every = snapshot.gpu_phases.every if snapshot.gpu_phases else 1
    sampled = f"1 step in {every} on the GPU" if every > 1 else ""
    return [*notes, f"host [hook] · GPU [{event}]", sampled]
