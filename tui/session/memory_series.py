"""A memory series of a whole run in bounded room: what is old lies further apart."""

from collections import deque

from tui.verdict.window import MemoryPoint


class MemorySeries:
    """Points at least `spacing_ns` apart, oldest first: half of the room holds the newest as they
    came, half the lowest of each of the equal stretches before them."""

    def __init__(self, most: int, spacing_ns: int) -> None:
        self._half = most // 2
        self._spacing_ns = spacing_ns
        self._newest: deque[MemoryPoint] = deque()
        self._older: list[MemoryPoint] = []
        self._stretch_ns = 2 * spacing_ns
        self._stretch_began_ns: int | None = None

    def add(self, point: MemoryPoint) -> None:
        """Take a point; one too soon after the last is not kept."""
        newest = self._newest
        if newest and point.t_ns - newest[-1].t_ns < self._spacing_ns:
            return
        newest.append(point)
        if len(newest) > self._half:
            self._age(newest.popleft())

    def all(self) -> tuple[MemoryPoint, ...]:
        """What is held."""
        return (*self._older, *self._newest)

    def _age(self, point: MemoryPoint) -> None:
        began_ns = self._stretch_began_ns
        if began_ns is not None and point.t_ns - began_ns < self._stretch_ns:
            self._older[-1] = _lower(self._older[-1], point)
            return
        self._stretch_began_ns = point.t_ns
        self._older.append(point)
        if len(self._older) > self._half:
            # The last one has only begun: it stays by itself.
            pairs = zip(self._older[:-1:2], self._older[1:-1:2], strict=False)
            self._older = [*(_lower(one, other) for one, other in pairs), self._older[-1]]
            self._stretch_ns *= 2


def _lower(one: MemoryPoint, other: MemoryPoint) -> MemoryPoint:
    return min(one, other, key=lambda point: point.bytes)
