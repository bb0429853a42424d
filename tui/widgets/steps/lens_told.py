"""What the lens says of steps: one in words, many as a list."""

from collections.abc import Sequence

from probe.wire.messages import GpuStep
from tui.snapshot import Snapshot
from tui.widgets.spans import Row, Span, joined, length, row
from tui.widgets.steps.lanes import Pair
from tui.wording.numbers import count, like, milliseconds

SHORT = ("fetch", "fwd", "bwd", "opt")
"""The marks at which the lag is known."""
WORTH_SAYING = 0.02
"""Of a wait that is a smaller part of the step nobody asks whether the GPU felt it."""
KEEPS_UP = 0.05
"""A lag of a smaller part of a step is the time that a launch takes."""
NAMES = (
    *("step", "wall ms", "wait", "GPU wall", "GPU felt", "hidden"),
    *(f"lag {name}" for name in SHORT),
    "ready",
)
"""The list's columns; one of which nothing is known is left out."""
CELLS = 10
"""Of a column of the list."""


def told_rows(snapshot: Snapshot, pair: Pair, width: int, rows: int) -> list[Row]:
    """One step in one row or two: its length and its waits, then its lags."""
    number = Span(f" step {count(pair.step.number)}  ", "strong")
    first, second = _waits(snapshot, pair), _lags(pair)
    if rows == 1 or not second:
        said = joined([*first, *second], width - length((number,)) - 1)
        return [(number, Span(said))]
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
    said = [milliseconds(wall_ms), f"wait {like(wait_ms, wall_ms)} ms"]
    if on is not None and wait_ms >= WORTH_SAYING * wall_ms:
        said.append(f"felt by the GPU {like(_ms(on.exposed_ns, times), wall_ms)}")
        said.append(f"hidden {like(_ms(on.hidden_ns, times), wall_ms)}")
    if step.fetches > step.count:
        said.append(f"{step.fetches // times} fetches, summed")
    if step.ready is not None:
        most = _most_ready(snapshot)
        said.append(f"{step.ready}{f' of {most}' if most else ''} batches ready")
    return said


def _lags(pair: Pair) -> list[str]:
    on = pair.on_gpu
    if on is None:
        return []
    lags = _lags_ns(on)
    known = [ns for ns in lags if ns is not None]
    if not known:
        return ["the clocks are not aligned yet"]
    most_ms = max(known) / 1e6
    said = [
        f"{name} {like(max(0, ns) / 1e6, most_ms)}"
        for name, ns in zip(SHORT, lags, strict=True)
        if ns is not None
    ]
    return [f"lag {' '.join(said)} ms", _lag_means(max(known), pair)]


def _lag_means(lag_ns: int, pair: Pair) -> str:
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
    told = [name for name in NAMES if any(name in figures for figures in table)]
    names = told[: max(1, width // CELLS)]
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
    told: dict[str, float | None] = {"wall ms": wall_ms, "wait": wait_ms}
    if on is not None:
        told["GPU wall"], told["GPU felt"] = _ms(on.wall_ns, times), _ms(on.exposed_ns, times)
        told["hidden"] = _ms(on.hidden_ns, times)
        for name, ns in zip(SHORT, _lags_ns(on), strict=True):
            told[f"lag {name}"] = None if ns is None else max(0, ns) / 1e6
    figures = {name: like(ms, wall_ms) for name, ms in told.items() if ms is not None}
    ready = {} if step.ready is None else {"ready": str(step.ready)}
    return {"step": count(step.number), **figures, **ready}


def _lags_ns(on: GpuStep) -> tuple[int | None, ...]:
    return on.lag_data_ns, on.lag_forward_ns, on.lag_backward_ns, on.lag_optimizer_ns


def _ms(ns: int, times: int) -> float:
    return ns / 1e6 / times
