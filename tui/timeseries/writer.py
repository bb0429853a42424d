"""The writer of a series: samples in, an hour of them out, in bounded memory."""

from typing import Final

from .series import Level, Rows, Series

HOUR_NS: Final = 3_600_000_000_000
ROLL_UPS_NS: Final = (1_000_000_000, 10_000_000_000)
AS_SAMPLED: Final = 6_000
"""Ten minutes at ten samples a second; with the roll-ups some 400 kB."""
SLACK: Final = 1.25
"""Arrays grow by this factor beyond what is kept before the oldest part is dropped."""
LATE: Final = 1.5
"""A sample up to so many intervals after the last one covers all the time since."""


class Growing:
    """One quantity over time. Not to be read and written at once without a lock; what `series`
    returned may be read at any time."""

    def __init__(
        self,
        name: str,
        title: str,
        unit: str,
        source: str,
        device: int | None,
        interval_ns: int,
        as_sampled: int = AS_SAMPLED,
    ) -> None:
        self._named = (name, title, unit, source, device)
        self.interval_ns = interval_ns
        """How far apart the samples are, and the finest column of a chart."""
        self._sampled = Rows(sampled=True)
        self._held = as_sampled
        self._roll_ups = [_RollUp(wide) for wide in ROLL_UPS_NS if wide >= 2 * interval_ns]
        self._series: Series | None = None

    def add(self, t_ns: int, value: float, length_ns: int | None = None) -> None:
        """A sample that ends at `t_ns` and covers the `length_ns` before it, or the time since
        the last one. A sample not newer than the last is dropped."""
        rows = self._sampled
        if length_ns is None:
            late_ns = round(LATE * self.interval_ns)
            since_ns = t_ns - rows.ends[-1] if rows.ends else self.interval_ns
            length_ns = since_ns if since_ns <= late_ns else self.interval_ns
        if rows.ends:
            length_ns = min(length_ns, t_ns - rows.ends[-1])
        if length_ns <= 0:
            return
        rows.append(t_ns, length_ns, value * length_ns, value, value)
        self._sampled = _trimmed(rows, self._held)
        for roll_up in self._roll_ups:
            roll_up.add(t_ns - length_ns // 2, length_ns, value)
        self._series = None

    def series(self) -> Series:
        """All that is kept now."""
        if self._series is None or self._series.interval_ns != self.interval_ns:
            levels = [_level(self._sampled, self.interval_ns, self._held)]
            levels += [one.level() for one in self._roll_ups]
            self._series = Series(*self._named, tuple(levels))
        return self._series


class _RollUp:
    """Samples by fixed intervals of time; the newest one becomes a row when it is complete."""

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = interval_ns
        self._held = HOUR_NS // interval_ns
        self._rows = Rows(sampled=False)
        self._slot = 0
        self._known_ns = 0
        self._area = self._low = self._high = 0.0

    def add(self, middle_ns: int, length_ns: int, value: float) -> None:
        """A sample belongs whole to the interval of its middle, so that one spike stays one."""
        slot = middle_ns // self._interval_ns
        if slot != self._slot or not self._known_ns:
            self._finish()
            self._slot = slot
            self._low = self._high = value
        self._known_ns += length_ns
        self._area += value * length_ns
        self._low = min(self._low, value)
        self._high = max(self._high, value)

    def _finish(self) -> None:
        if self._known_ns:
            end_ns = (self._slot + 1) * self._interval_ns
            self._rows.append(end_ns, self._known_ns, self._area, self._low, self._high)
            self._rows = _trimmed(self._rows, self._held)
        self._known_ns, self._area = 0, 0.0

    def level(self) -> Level:
        """The complete intervals."""
        return _level(self._rows, self._interval_ns, self._held)


def _trimmed(rows: Rows, held: int) -> Rows:
    """The same arrays, or new ones with the newest part: readers may still hold the old ones."""
    return rows.newest(held) if len(rows.ends) > held * SLACK else rows


def _level(rows: Rows, interval_ns: int, held: int) -> Level:
    return Level(rows, interval_ns, max(0, len(rows.ends) - held), len(rows.ends))
