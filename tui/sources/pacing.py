"""What is dear to read is read rarely: so that it takes at most its share of a core."""


class Pace:
    """When something may be read again, by the CPU time that it took."""

    def __init__(self, least_ns: int, share: float) -> None:
        """`least_ns` between two readings at least; `share` of one core at most."""
        self._least_ns = least_ns
        self._share = share
        self._due_ns: int | None = None

    def is_due(self, now_ns: int) -> bool:
        """Whether it may be read now."""
        return self._due_ns is None or now_ns >= self._due_ns

    def read(self, now_ns: int, took_ns: int) -> None:
        """It was read just now, which took so much CPU time."""
        self._due_ns = now_ns + max(self._least_ns, round(took_ns / self._share))
