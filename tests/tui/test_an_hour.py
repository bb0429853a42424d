"""What the monitor holds of a long run stops growing once it holds the last hour."""

import asyncio

import pytest

from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.history import NO_HISTORY, Held, VerdictTimeline
from gpuwatch.tui.verdict.memory.trends import MemoryTrend
from gpuwatch.tui.verdict.window import Window
from tests.tui.an_hour import hold
from tests.unit.session.making import verdict

MOST_BYTES = 70_000_000


class OneVerdict:
    """An engine that says one thing and keeps nothing."""

    def judge(self, window: Window) -> Verdict:
        """The same."""
        return verdict("input")

    def timeline(self) -> VerdictTimeline:
        """Nothing."""
        return NO_HISTORY

    def summary(self) -> tuple[Held, ...]:
        """Nothing."""
        return ()

    def trends(self) -> tuple[MemoryTrend, ...]:
        """Nothing."""
        return ()


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_after_an_hour_neither_the_session_nor_its_past_nor_the_screen_grows() -> None:
    # Compared from the 80th minute on: what is past is let go of in blocks, some of a quarter hour.
    reported = asyncio.run(hold(OneVerdict(), minutes=100, every=20, look_s=3, frame_s=60))
    (_, early, _), _, _, (session, whole, resident), (later_session, later, later_resident) = (
        reported
    )
    assert later_session < 1.05 * session
    assert later < 1.05 * whole < 1.05 * MOST_BYTES
    assert later_resident < 1.10 * resident
    assert early < whole < 2.5 * early
