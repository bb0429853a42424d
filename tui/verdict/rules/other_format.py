"""What channels_last or bf16 gives a net on a CPU, by what the probe has tried in the run itself
(`probe.settings.formats`)."""

from dataclasses import dataclass
from typing import Final

from ...settings import FormatTimes
from ..findings import Forecast
from ..format import times
from ..step_time import spent
from ..thresholds.hysteresis import ENTER_SHARE
from ..window import StepWindow
from .page_faults import page_faults

CHANNELS_LAST_LINE: Final = "net.to(memory_format=torch.channels_last), and its batches likewise"
BF16_LINE: Final = 'torch.autocast("cpu", torch.bfloat16) around the forward'
BESIDE_IN_BF16: Final = 0.25
"""Part of what is no product that goes in bf16, for it moves half the bytes, in more calls…"""
BESIDE_MOST: Final = 0.3
"""…and at the most so much of what products save: in 15 nets on two cores (torch 2.13) 0.0 to
0.5."""
ERROR: Final = (0.75, 1.35)
"""Gains measured over gains forecast of those 15 nets, in both formats: 0.77 to 1.33 in nine of
ten."""
TOO_LONG: Final = 1.4
"""Times what a backward and its forward take, that what was tried may: 1.0 at the most in 15 nets,
and 44 beside another training on the same two cores, where 9.5x was forecast of 0.7x."""
AS_GOOD: Final = 0.9
"""Part of what bf16 gives for which channels_last is preferred: numbers stay those of float32."""


@dataclass(frozen=True, slots=True)
class OtherFormat:
    """One that is faster."""

    line: str
    """What to write."""
    name: str
    """ "bf16", "channels_last", "bf16 and channels_last"."""
    in_bf16: bool
    forecast: Forecast


def other_format(window: StepWindow) -> OtherFormat | None:
    """The one that gives most; None where none gives a tenth, or none was tried."""
    tried = tried_formats(window)
    if tried is None:
        return None
    last = _gain(window, tried, tried.channels_last_us, 0.0)
    is_tried = tried.bf16_us != tried.channels_last_us
    bf16 = _gain(window, tried, tried.bf16_us, BESIDE_IN_BF16) if is_tried else 0.0
    has_pictures = tried.channels_last_us != tried.now_us  # bf16 was tried in that order
    gain = max(last, bf16)
    if not _pays(gain):
        return None
    if last >= AS_GOOD * bf16 and _pays(last):
        return OtherFormat(CHANNELS_LAST_LINE, "channels_last", False, _around(last))
    line = f"{BF16_LINE}, and {CHANNELS_LAST_LINE}" if has_pictures else BF16_LINE
    name = "bf16 and channels_last" if has_pictures else "bf16"
    return OtherFormat(line, name, True, _around(bf16))


def tried_formats(window: StepWindow) -> FormatTimes | None:
    """What the probe has tried; None on a GPU, under autocast, until all is tried, and where it
    took longer than forward and backward do: others had the cores then."""
    settings = window.settings
    if window.gpu_present or settings is None or settings.formats is None:
        return None
    if settings.autocast != "" or settings.parameter_dtype != "float32":
        return None
    tried = settings.formats
    return tried if 0 < _part_of_net(window, tried) <= TOO_LONG else None


def tried_words(tried: FormatTimes) -> str:
    """What it has shown: "its products, tried in this run: 1.3x as fast in channels_last, 2.1x in
    bf16"; "" where nothing could be tried."""
    parts = []
    if tried.channels_last_us != tried.now_us:
        parts.append(f"{times(tried.now_us / tried.channels_last_us)} as fast in channels_last")
    if tried.bf16_us != tried.channels_last_us:
        parts.append(f"{times(tried.now_us / tried.bf16_us)} as fast in bf16")
    return f"its products, tried in this run: {', '.join(parts)}" if parts else ""


def _part_of_net(window: StepWindow, tried: FormatTimes) -> float:
    """What its products took as they are, of what forward and backward take."""
    taken_ns = 1_000 * tried.now_us * window.passes * window.observed
    return taken_ns / max(1, _net_ns(window))


def _net_ns(window: StepWindow) -> int:
    return sum(row.forward_ns + row.backward_ns for row in window.steps)


def _pays(gain: float) -> bool:
    return 1 - 1 / max(gain, 1.0) >= ENTER_SHARE


def _gain(window: StepWindow, tried: FormatTimes, took_us: int, beside: float) -> float:
    """Steps a second after over before: the products' part of forward and backward takes as much
    less as it did when it was tried, and of the rest of these `beside` goes as well."""
    products = min(1.0, _part_of_net(window, tried))
    saved = products * (1 - took_us / tried.now_us)
    of_step = min(1.0, _net_ns(window) / max(1, spent(window.steps).wall_ns))
    rest = min(beside * (1 - products), BESIDE_MOST * max(0.0, saved))
    faults = page_faults(window) if beside else None
    if faults is not None and faults.share is not None:
        # Results of half the size are half of the new pages; those of products were tried.
        rest = max(rest, faults.share / 2 / of_step * (1 - products))
    return 1 / (1 - of_step * (saved + rest))


def _around(gain: float) -> Forecast:
    low, high = ERROR
    return Forecast(gain, max(1.0, low * gain), high * gain)
