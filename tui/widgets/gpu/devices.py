"""Several GPUs in a line each, the chosen one marked."""

from ...model.observations import Activity, GpuUse
from ...model.snapshot import Rank, Snapshot
from ...timeseries.series import Series
from ...wording.gpu import does_words, held_by, state_words
from ...wording.numbers import count, size
from ..charts.columns import HeldColumns
from ..charts.small import column_for, small_strip, times_of
from ..panel import View, charts_end_ns
from ..text import Row, Span, ends, joined, length, row

# The next GPU or rank, or the one before.


def beside_device(snapshot: Snapshot, device: int | None, by: int) -> int:
    """NVML's index of the GPU after (+1) or before (-1) the chosen one, round and round; nobody
    having chosen means the first."""
    indices = [gpu.index for gpu in snapshot.gpus]
    at = indices.index(device) if device in indices else 0
    return indices[(at + by) % len(indices)]


def beside_rank(snapshot: Snapshot, by: int) -> Rank | None:
    """The rank after (+1) or before (-1) the target whose process is there, round and round; None
    where there is no other."""
    there = [rank for rank in snapshot.ranks if rank.is_target or rank.state != "ended"]
    at = next((at for at, rank in enumerate(there) if rank.is_target), None)
    if at is None or len(there) < 2:
        return None
    return there[(at + by) % len(there)]


STRIP, STRIP_S = 20, 20
"""Columns of the little picture of its activity, and what it shows at least, s."""
STRIP_FROM = 90
"""Width from which there is room for one."""


def chosen_gpu(view: View) -> GpuUse | None:
    """The one that a person chose, or the first."""
    gpus = view.snapshot.gpus
    return next((one for one in gpus if one.index == view.device), gpus[0] if gpus else None)


def title_of(view: View, gpu: GpuUse | None) -> str:
    """The heading: which GPU, or that there is none."""
    if gpu is None:
        saw = view.snapshot.sawtooth
        return f"No GPU · {saw.title}" if saw else "GPU"  # before a sample that is not known
    name = gpu.name.removeprefix("NVIDIA ")
    more = f" · {len(view.snapshot.gpus)} GPUs" if len(view.snapshot.gpus) > 1 else ""
    return f"GPU {gpu.index} · {name}{more}"


def device_rows(
    view: View, chosen: GpuUse | None, held: HeldColumns, width: int, most: int
) -> list[Row]:
    """At most so many lines, the chosen one always among them; the last counts what is left."""
    every = view.snapshot.gpus
    gpus = list(every)
    if len(gpus) > most:
        at = gpus.index(chosen) if chosen in gpus else 0
        first = min(max(0, at - (most - 2)), len(gpus) - (most - 1))
        gpus = gpus[first : first + most - 1]
    stats = view.snapshot.steps
    column_ns = column_for(STRIP_S, STRIP, int(stats.p50_ms * 1e6) if stats else 0)
    times = times_of(charts_end_ns(view), column_ns, STRIP if width >= STRIP_FROM else 0)
    out: list[Row] = []
    for gpu in gpus:
        strip = small_strip(held, _activity_of(view.snapshot, gpu.index), times)
        out.append(_device_row(view.snapshot, gpu, strip, gpu is chosen, width))
    if len(gpus) < len(every):
        out.append(row(f"     and {len(every) - len(gpus)} more", "dim"))
    return out


def _device_row(snapshot: Snapshot, gpu: GpuUse, strip: str, chosen: bool, width: int) -> Row:
    head = Span(f" {'▸' if chosen else ' '} {gpu.index:<3}", "strong" if chosen else "dim")
    why = f"  ▲ {', '.join(held_by(gpu))}" if held_by(gpu) else ""
    does = next((one for one in snapshot.activity if one.index == gpu.index), None)
    words = _cells(does, gpu, width - len(head.text) - len(strip) - len(why))
    return (
        head,
        Span(strip, "area"),
        Span(words, "text" if chosen else "dim"),
        Span(why, "warning"),
    )


def _cells(does: Activity | None, gpu: GpuUse, room: int) -> str:
    """Its figures, each in its place; the last ones left out where they do not fit."""
    activity = None if does is None else does.busy if does.sm is None else does.sm
    name = "busy" if does is not None and does.sm is None else "SM"
    cells = (
        (11, _percent(name, activity)),
        (13, _percent("tensor", does.tensor if does else None)),
        (11, _percent("DRAM", does.dram if does else None)),
        (8, "" if gpu.power_w is None else f"{gpu.power_w:.0f} W"),
        (11, "" if gpu.sm_clock_mhz is None else f"{count(gpu.sm_clock_mhz)} MHz"),
        (8, "" if gpu.temperature_c is None else f"{gpu.temperature_c} °C"),
        (11, size(gpu.memory_used_bytes)),
    )
    out = ""
    for width, text in cells:
        if len(out) + width > room:
            break
        out += f"{text:>{width}}"
    return out


def _percent(name: str, value: float | None) -> str:
    return "" if value is None else f"{name} {value:>3.0f}%"


def _activity_of(snapshot: Snapshot, index: int) -> Series | None:
    found = {one.name: one for one in snapshot.series if one.device == index}
    return found.get("sm") or found.get("busy")


# The GPUs in one line each: what they do and how they are.


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
