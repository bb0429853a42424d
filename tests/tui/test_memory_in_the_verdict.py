"""Memory that is full within the hour is on the screen beside a verdict on something else."""

from dataclasses import replace

from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.verdict.memory.trends import Exhaustion
from gpuwatch.tui.widgets.panel import View
from gpuwatch.tui.widgets.text import Charset, Row
from gpuwatch.tui.widgets.verdict import verdict_rows
from tests.tui import fake_memory, memory_states
from tests.tui.fake_run import FakeRun


def growing(minutes: float) -> Snapshot:
    """A run that waits for data, whose tensors fill the device in so many minutes."""
    run = memory_states.growing(FakeRun().snapshot())
    left = Exhaustion(60 * minutes, 66 * minutes, 1 / 3600)
    leak = replace(run.verdict.contributors[0], headline="GPU memory grows, full soon")
    trend = fake_memory.trend("tensors", fake_memory.leaking_bytes, run.t_ns, 1.5, left, leak)
    return replace(run, verdict=replace(run.verdict, contributors=(leak,)), trends=(trend,))


def text(rows: list[Row]) -> str:
    return "\n".join("".join(span.text for span in row) for row in rows)


def test_it_takes_the_place_of_the_last_evidence() -> None:
    near, far = (
        text(verdict_rows(View(growing(minutes), 10, Charset.UNICODE, None), 100, 5))
        for minutes in (10, 600)
    )
    assert "full soon" in near
    assert "full soon" not in far
    assert "NEXT" in near
    assert "WHY" in near
    assert len(near.splitlines()) == len(far.splitlines()) == 5
