"""What a source is: it opens, is polled at its own pace, and closes."""

from typing import Protocol

from tui.observations import AnyObservation


class Source(Protocol):
    """One place that observations come from. All calls come from the collector's one thread."""

    @property
    def name(self) -> str:
        """As `Missing.source` names it."""

    @property
    def interval_ns(self) -> int:
        """How often it wants to be polled."""

    def open(self) -> None:
        """Get ready. Expected trouble is not raised here but delivered as `Missing` by `poll`."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """What is new. Never waits for more than a few milliseconds."""

    def close(self) -> None:
        """Let go of everything."""
