"""The scale of a strip: what a full one means, and how its values are written."""

from dataclasses import dataclass
from math import log10
from typing import Final

from tui.observations import GpuUse
from tui.over_time.series import Series
from tui.wording.numbers import count

HOTTEST_C: Final = 100.0
_GIB: Final = 1024.0**3
_FRACTIONS: Final = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """From 0 to `top`."""

    top: float
    """In the series' unit."""
    per: float
    """Of the series' unit in one of `unit`."""
    unit: str
    places: int

    def figure(self, value: float) -> str:
        """The value without its unit."""
        scaled = value / self.per
        return f"{scaled:,.{self.places}f}" if self.places else count(round(scaled))

    def figure_of_scale(self, value: float, cells: int) -> str:
        """The value with its unit, and with what a full strip means where there is room."""
        figure, top = self.figure(value), count(round(self.top / self.per))
        if self.unit == "%":
            return f"{figure} %"
        full = (f"{figure}/{top} {self.unit}", f"{figure}/{top}{self.unit}")
        return next((one for one in full if len(one) <= cells), f"{figure} {self.unit}")

    @property
    def words(self) -> str:
        """What a full strip means: "700 W", "10 GB/s"."""
        return f"{count(round(self.top / self.per))} {self.unit}"


def scale_of(series: Series, gpu: GpuUse | None, peak: float) -> Scale:
    """Shares on 0 to 100; what has a limit against its limit; the others, whose highest is `peak`,
    on a round figure of their own."""
    if series.unit == "%":
        return Scale(100.0, 1.0, "%", 0)
    if series.unit == "MB/s":
        top = round_up(peak)
        return Scale(top, 1000.0, "GB/s", 1) if top >= 1000 else Scale(top, 1.0, "MB/s", 0)
    if series.unit == "bytes":
        top = float(gpu.memory_total_bytes) if gpu else round_up(peak / _GIB) * _GIB
        return Scale(top, _GIB, "GiB", 1)
    limits = {
        "power": gpu.power_limit_w if gpu else None,
        "sm_clock": gpu.max_sm_clock_mhz if gpu else None,
        "temperature": HOTTEST_C,
    }
    return Scale(float(limits.get(series.name) or round_up(peak)), 1.0, series.unit, 0)


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50…: 5,900 -> 10,000."""
    if value <= 1:
        return 1.0
    decade = 10.0 ** int(log10(value))
    return next(part * decade for part in _FRACTIONS if part * decade >= value)
