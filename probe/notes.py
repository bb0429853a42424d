"""Numbers that a run has beside its times: a loss, a gradient's norm, tokens, FLOPs of a step.

The training thread adds them, the publisher hands the new ones on.
"""

import math
import sys
from collections import deque
from typing import Any, Final

from .loaders import is_dispatched, past_overrides

HELD: Final = 512
"""Two thousand a second reach the monitor; of more, the newest."""
TOTALS_NS: Final = 50_000_000
"""Between two notes of one total: a loop of 10,000 steps a second counts tokens in each."""
MOST_NAMES: Final = 64

Row = tuple[int, str, str, float, str]
"""perf_counter_ns; kind ("norm", "log", "skipped", "total", "flops", "refused"); name; figure, 0
where it is no finite number; "" or "nan", "inf", "-inf" (JSON has no such numbers) or a reason. The
fields of `steps.Noted`."""


class Notes:
    """The newest notes of one process."""

    __slots__ = (
        "_count",
        "_firsts",
        "_fresh",
        "_held",
        "_sent",
        "_totals",
        "numerics",
    )

    def __init__(self) -> None:
        self._held: deque[tuple[int, Row]] = deque(maxlen=HELD)
        self._count = 0
        self._sent = 0
        self._fresh: list[Row] = []
        self._firsts: dict[tuple[str, str], tuple[int, Row]] = {}
        """Of each number the first that was not finite, for a monitor that comes later."""
        self._totals: dict[str, tuple[float, int]] = {}
        """Of each unit: how many so far, and when that was last noted."""
        self.numerics: Any = None
        """What takes numbers off a device (`first_number.numerics_of`); None before the first."""

    def add(self, t_ns: int, kind: str, name: str, figure: float, why: str = "") -> None:
        """Note a number of that moment."""
        if not math.isfinite(figure):
            figure, why = 0.0, "nan" if math.isnan(figure) else "inf" if figure > 0 else "-inf"
        self._count += 1
        row = (t_ns, kind, name, figure, why)
        self._held.append((self._count, row))
        if why:
            self._keep_first((kind, name), row)

    def _keep_first(self, key: tuple[str, str], row: Row) -> None:
        """The earliest: a norm between two looks is read after the second of them."""
        known = self._firsts.get(key)
        if known is None and len(self._firsts) >= MOST_NAMES:
            return
        if known is None or row[0] < known[1][0]:
            self._firsts[key] = self._count, row

    def count(self, now_ns: int, name: str, more: float) -> None:
        """Add to a total, which is noted now and then."""
        total, noted_ns = self._totals.get(name, (0.0, 0))
        if name not in self._totals and len(self._totals) >= MOST_NAMES:
            return
        due = now_ns - noted_ns >= TOTALS_NS
        self._totals[name] = total + more, now_ns if due else noted_ns
        if due:
            self.add(now_ns, "total", name, total + more)

    def is_counted(self, name: str) -> bool:
        """The run has added to such a total."""
        return name in self._totals

    def clear(self) -> None:
        """In a forked child: they are the parent's."""
        self._held.clear()
        self._firsts.clear()
        self._totals.clear()
        self.numerics = None

    # -- for the publisher -------------------------------------------------------------------

    def turn(self) -> None:
        """A turn begins: what is new since the last?"""
        held = list(self._held)
        self._fresh = [
            *self._early(held, self._sent),
            *(row for number, row in held if number > self._sent),
        ]
        self._sent = held[-1][0] if held else self._sent

    def to_send(self, first: bool) -> list[Any]:
        """To a monitor, with its `first` message all that is held."""
        if not first:
            return self._fresh
        held = list(self._held)
        return [*self._early(held, 0), *(row for _, row in held)]

    def _early(self, held: list[tuple[int, Row]], sent: int) -> list[Row]:
        """The firsts that a fast loop has pushed out of those held before they were sent."""
        oldest = held[0][0] if held else 0
        return [row for number, row in list(self._firsts.values()) if sent < number < oldest]


def number_of(value: Any) -> float | None:
    """A number of Python's or NumPy's, or that of a tensor of one element on the host, without any
    code of a subclass's. None of anything else, and of a whole number that is too large."""
    torch: Any = sys.modules.get("torch")
    numpy: Any = sys.modules.get("numpy")
    kind = type(value)
    if torch is not None and kind is torch.Tensor:
        if value.device.type != "cpu" or value.numel() != 1 or is_dispatched(torch):
            return None
        value = past_overrides(torch, torch.Tensor.item, value)
    elif numpy is not None and issubclass(kind, numpy.generic):
        value = value.item()
    if issubclass(type(value), float):
        return float.__float__(value)
    if not issubclass(type(value), int):
        return None
    try:
        return int.__float__(value)
    except OverflowError:
        return None
