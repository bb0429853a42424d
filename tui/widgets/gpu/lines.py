"""The GPUs in one line each: what they do and how they are."""

from tui.observations import GpuUse
from tui.snapshot import Snapshot
from tui.widgets.spans import Row, Span, ends, joined, length, row
from tui.wording.gpu import does_words, state_words
from tui.wording.numbers import count


def gpu_rows(snapshot: Snapshot, width: int, most: int) -> list[Row]:
    """At most so many lines: two of an only GPU, one of each of several; the last one counts those
    that have none."""
    gpus = snapshot.gpus
    if len(gpus) == 1 and most >= 2 and (does := _does(snapshot, gpus[0])):
        return [_line(f" GPU {gpus[0].index}  ", does, (), width), _state(gpus[0], width)]
    shown = gpus if len(gpus) <= most else gpus[: max(0, most - 1)]
    out = [
        _line(
            f" GPU {gpu.index}  ",
            [*_does(snapshot, gpu), *state_words(gpu)],
            _held(gpu),
            width,
        )
        for gpu in shown
    ]
    if out and len(shown) < len(gpus):
        out.append(row(f"     and {len(gpus) - len(shown)} more GPUs", "dim"))
    return out


def _does(snapshot: Snapshot, gpu: GpuUse) -> list[str]:
    return next((does_words(one) for one in snapshot.activity if one.index == gpu.index), [])


def _state(gpu: GpuUse, width: int) -> Row:
    words = state_words(gpu)
    if gpu.memory_clock_mhz is not None:
        words.append(f"memory clock {count(gpu.memory_clock_mhz)} MHz")
    return _line(" " * len(f" GPU {gpu.index}  "), words, _held(gpu), width)


def _held(gpu: GpuUse) -> Row:
    """Why its clocks are held down."""
    held = ", ".join(gpu.throttle_reasons)
    return (Span("▲ ", "warning"), Span(f"{held} ", "strong")) if held else ()


def _line(name: str, words: list[str], right: Row, width: int) -> Row:
    """The right end stays to the last: it is what a person must not miss."""
    left = Span(name, "dim")
    return ends((left, Span(joined(words, width - length((left, *right)) - 2))), right, width)
