"""What was said, and for how long."""

from tui.verdict.findings import Kind


class Past:
    """Time by kind of verdict. All times are the windows'."""

    def __init__(self) -> None:
        self._ns: dict[Kind, int] = {}
        self._kind: Kind | None = None
        self._since_ns = 0

    def said(self, kind: Kind, now_ns: int) -> None:
        """From now on it is `kind`; until now it was what was said before."""
        if self._kind is not None:
            past_ns = max(0, now_ns - self._since_ns)
            self._ns[self._kind] = self._ns.get(self._kind, 0) + past_ns
        self._kind, self._since_ns = kind, now_ns

    def summary(self) -> tuple[tuple[Kind, float], ...]:
        """Kinds with their share of the time, the largest first; a single look counts whole."""
        whole = sum(self._ns.values())
        if not whole:
            return ((self._kind, 1.0),) if self._kind else ()
        shares = [(kind, ns / whole) for kind, ns in self._ns.items() if ns]
        return tuple(sorted(shares, key=lambda pair: -pair[1]))
