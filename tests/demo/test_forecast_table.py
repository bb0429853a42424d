"""The table of forecasts beside the truth of the recordings."""

import pytest
from forecast_table import RECORDINGS, ForecastRow, judged, main, table

from gpuwatch.tui.verdict.forecast.gain import replayed


def row(forecast: float | None, left_ms: float | None) -> ForecastRow:
    return ForecastRow(
        name="a_run",
        kind="input/serial",
        forecast=forecast,
        forecast_is="estimate",
        low=1.8,
        high=2.5,
        truth=2.0,
        left_ms=left_ms,
        truth_ms=10.0,
    )


def test_both_errors_are_reported_for_each_recording() -> None:
    head, line, *summary = table([row(2.2, 9.5)])
    assert "forecast" in head
    assert "+10.0%" in line
    assert "-5.0%" in line
    assert "1.80 to 2.50" in line
    assert summary == [
        "truth within the forecast's interval: 1 of 1",
        "speed-up: median error 10.0%, 90th percentile 10.0%",
        "step that is left: median error 5.0%, 90th percentile 5.0%",
    ]


def test_a_run_without_a_forecast_is_no_error_of_zero() -> None:
    _, line, *summary = table([row(None, None)])
    assert "0.0%" not in line
    assert summary == []


def test_the_replays_forecasts_leave_the_step_that_was_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The bar of the issue, 5 % in the middle, on the step that is left: there the recorded run and
    the run of the truth need not have been equally fast. The 90th percentile is of twelve."""
    assert main([]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    middle, high = (float(part.rsplit(" ", 1)[1].rstrip("%")) for part in last.split(", "))
    assert last.startswith("step that is left")
    assert middle <= 5.0
    assert high <= 15.0


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDINGS.glob("*.gpuwatch")))
def test_a_recording_replayed_with_nothing_removed_is_what_was_measured(name: str) -> None:
    _, window = judged(RECORDINGS / f"{name}.gpuwatch")
    assert window is not None
    known = replayed(window)
    assert known is not None
    assert known.now_ns == pytest.approx(known.record.step_ns, rel=0.01)
