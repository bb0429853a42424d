"""Forecast against truth, for every recording: what removing the cause was to give, and gave.

    python -m demo.forecast_table [FOLDER]

The truth is truth.json beside the recordings: the same script run with its cause and without, apart
from the recording. Two errors are reported: of the speed-up, in which the recorded run may be
faster or slower than the one of the truth, and of the step that is left, in which it is not.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from gpuwatch.tui.recording.format import Looked
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict
from gpuwatch.tui.verdict.forecast.interval import forecast_of
from gpuwatch.tui.verdict.window import StepWindow, Window

RECORDINGS = Path(__file__).parent / "recordings"
WORTH = 1.1
"""A gain from here on is worth forecasting."""


@dataclass(frozen=True)
class ForecastRow:
    """One recording. Times ms."""

    name: str
    kind: str
    forecast: float | None
    forecast_is: str | None
    low: float | None
    high: float | None
    """What holds the truth nine times in ten; `high` is None too where nothing bounds it."""
    truth: float
    left_ms: float | None
    """The step without the cause, as forecast and as measured."""
    truth_ms: float

    @property
    def error(self) -> float | None:
        """Of the speed-up: 0.1 for a tenth too much; None of one that is the least."""
        if self.forecast is None or self.forecast_is == "at-least":
            return None
        return self.forecast / self.truth - 1

    @property
    def holds(self) -> bool:
        """The truth is in the interval, to the two digits that are shown."""
        above = self.high is None or self.truth <= 1.02 * self.high
        return self.low is not None and self.low <= 1.02 * self.truth and above

    @property
    def step_error(self) -> float | None:
        """Of the step that is left."""
        if self.left_ms is None or self.forecast_is == "at-least":
            return None
        return self.left_ms / self.truth_ms - 1


class _Witness(Engine):
    """Keeps the last window it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.window: Window | None = None

    def judge(self, window: Window) -> Verdict:
        self.window = window
        return super().judge(window)


@cache
def judged(path: Path) -> tuple[Verdict, Window | None]:
    """The last verdict of a recording, and the window that it rests on."""
    recording, witness = Recording(path), _Witness()
    header = recording.header
    session = Session(header.pid, header.script, header.started_ns, witness)
    for entry in recording.entries():
        if isinstance(entry, Looked):
            session.judge(entry.t_ns)
        else:
            session.ingest(entry)
    verdict = session.snapshot(recording.until_ns, 0.0).verdict
    recording.close()
    return verdict, witness.window


def rows(folder: Path) -> Iterator[ForecastRow]:
    """The recordings whose cause costs something, by name."""
    for name, truth in sorted(json.loads((folder / "truth.json").read_text()).items()):
        if truth["speedup"] < WORTH:
            continue
        verdict, window = judged(folder / f"{name}.gpuwatch")
        found = verdict.finding
        step_ms = None
        if isinstance(window, StepWindow) and window.steps:
            steps = sum(row.count for row in window.steps)
            step_ms = (window.steps[-1].end_ns - window.steps[0].start_ns) / steps / 1e6
        forecast = forecast_of(found)
        left = step_ms / forecast.speedup if step_ms is not None and forecast is not None else None
        name_of = f"{found.kind}/{found.sub}" if found.sub else found.kind
        yield ForecastRow(
            name=name,
            kind=name_of,
            forecast=None if forecast is None else forecast.speedup,
            forecast_is=None if forecast is None else forecast.kind,
            low=None if forecast is None else forecast.low,
            high=None if forecast is None else forecast.high,
            truth=truth["speedup"],
            left_ms=left,
            truth_ms=truth["step_ms_without"],
        )


def table(found: Sequence[ForecastRow]) -> Iterator[str]:
    """The rows as text, with the median and the 90th percentile of both errors."""
    yield (
        f"{'recording':24}{'verdict':20}{'forecast':>18}{'interval':>15}{'truth':>7}{'error':>7}"
        f"{'left ms':>10}{'truth':>8}{'error':>7}"
    )
    for row in found:
        forecast = "-" if row.forecast is None else f"{row.forecast_is} {row.forecast:.2f}"
        left = "-" if row.left_ms is None else f"{row.left_ms:.2f}"
        yield (
            f"{row.name:24}{row.kind:20}{forecast:>18}{_interval(row):>15}"
            f"{row.truth:7.2f}{_percent(row.error):>7}"
            + (f"{left:>10}{row.truth_ms:8.2f}{_percent(row.step_error):>7}")
        )
    known_rows = [row for row in found if row.forecast is not None]
    held = sum(row.holds for row in known_rows)
    if known_rows:
        yield f"truth within the forecast's interval: {held} of {len(known_rows)}"
    for what, errors in (
        ("speed-up", [row.error for row in found]),
        ("step that is left", [row.step_error for row in found]),
    ):
        known = sorted(abs(error) for error in errors if error is not None)
        if known:
            high = known[min(len(known) - 1, int(0.9 * len(known)))]
            yield f"{what}: median error {median(known):.1%}, 90th percentile {high:.1%}"


def _interval(row: ForecastRow) -> str:
    if row.low is None:
        return "-"
    return f"{row.low:.2f} to " + ("…" if row.high is None else f"{row.high:.2f}")


def _percent(error: float | None) -> str:
    return "-" if error is None else f"{error:+.1%}"


def main(argv: Sequence[str]) -> int:
    """Print it."""
    print("\n".join(table(list(rows(Path(argv[0]) if argv else RECORDINGS)))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
