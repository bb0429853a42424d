"""A recording of a scenario: how it is written, the signals in it, and the verdicts on it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

from evaluation.catalogue import GROWTH, ROOT
from evaluation.launching import GRACE_S, FailedError, Launched, Work
from evaluation.verdict_track import Judgement
from gpuwatch.tui.cli.replay import play_to
from gpuwatch.tui.model.observations import Delivered, GpusSeen, ProcessesSeen
from gpuwatch.tui.model.snapshot import Snapshot
from gpuwatch.tui.recording.format import Looked
from gpuwatch.tui.recording.reader import Recording
from gpuwatch.tui.session.session import Session
from gpuwatch.tui.sources.feed import POLL_NS
from gpuwatch.tui.steps import Step
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Verdict

GPUWATCH: Final = (sys.executable, "-m", "gpuwatch.tui.cli.main")
MOST_S: Final = 300.0
"""For a script to come to its end."""


def record(launched: Launched[Work], file: Path, seconds: float | None) -> None:
    """Write a recording of the running script from its first step on; None: to its end."""
    launched.wait_for_steps(probe=launched.job.probe)
    command = [*GPUWATCH, "record", str(launched.process.pid), "-o", str(file)]
    limit_s = MOST_S
    if seconds is not None:
        command += ["--duration", f"{seconds:g}"]
        limit_s = seconds + GRACE_S
    try:
        done = subprocess.run(command, cwd=ROOT, timeout=limit_s, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        raise FailedError("gpuwatch record did not end") from None
    if done.returncode or not file.exists():
        reported = " ".join(done.stderr.split())[-300:]
        raise FailedError(f"gpuwatch record ended with {done.returncode}: {reported}")
    if seconds is not None and launched.process.poll() is not None:
        raise launched.failure("ended while it was recorded")


@dataclass(frozen=True)
class RecordedSignals:
    """The raw signals of one run."""

    began_ns: int
    """When the monitor attached."""
    begun_step: int
    """Steps completed by then."""
    steps: tuple[Step, ...]
    """Those of before included, as far as the probe still had them."""
    utilization: tuple[tuple[int, float], ...]
    """Readings of the first GPU: perf_counter_ns and percent."""
    gpu: str | None
    """Its name; None without one."""
    torch: str | None
    others_cores: float | None
    """Of the cores that it may use, those that other processes used: the mean."""


def signals_in(file: Path) -> RecordedSignals:
    """Read a recording from its beginning to its end."""
    recording = Recording(file)
    steps: dict[int, Step] = {}
    readings: list[tuple[int, float]] = []
    others: list[float] = []
    gpu: str | None = None
    try:
        for entry in recording.entries():
            match entry:
                case Delivered():
                    steps.update((step.number, step) for step in entry.batch.steps)
                case GpusSeen() if entry.gpus:
                    first = entry.gpus[0]
                    gpu = first.name
                    if first.utilization_percent is not None:
                        readings.append((entry.t_ns, first.utilization_percent))
                case ProcessesSeen() if entry.others_cpu_percent is not None:
                    others.append(entry.others_cpu_percent / 100)
    finally:
        recording.close()
    began_ns = recording.header.started_ns
    rows = tuple(steps[number] for number in sorted(steps))
    before = [step.number for step in rows if step.end_ns <= began_ns]
    return RecordedSignals(
        began_ns=began_ns,
        begun_step=max(before, default=0),
        steps=rows,
        utilization=tuple(readings),
        gpu=gpu,
        torch=recording.header.torch,
        others_cores=mean(others) if others else None,
    )


class VerdictTrack:
    """A face that writes down each verdict once."""

    def __init__(self) -> None:
        self.looks: list[Judgement] = []
        self._last: Verdict | None = None

    def show(self, snapshot: Snapshot) -> None:
        """A picture; its verdict is another object whenever the engine was asked."""
        if snapshot.verdict is not self._last:
            self._last = snapshot.verdict
            steps = snapshot.steps.total if snapshot.steps else 0
            self.looks.append(look_of(snapshot.verdict, snapshot.attached_s, steps))

    def last(self, snapshot: Snapshot) -> None:
        """The last picture."""
        self.show(snapshot)


def verdicts_on(file: Path) -> list[Judgement]:
    """All verdicts of a replay."""
    listener = VerdictTrack()
    play_to(Recording(file), listener, None)
    return listener.looks


def watched_again(file: Path, watcher: VerdictTrack) -> None:
    """Show it to `watcher` as a monitor of today would have been watching: from its first steps on,
    which the one that has recorded it may have had for a while before it looked. Then it looks when
    that did: of a hundred verdicts two differ at other moments of the same run."""
    recording = Recording(file)
    header = recording.header
    session = Session(header.pid, header.script, header.started_ns, Engine())

    def picture(t_ns: int) -> Snapshot:
        return session.snapshot(t_ns, header.started_unix + (t_ns - header.started_ns) / 1e9)

    turn_ns, had_steps, last_ns = header.begins_ns, False, header.begins_ns
    try:
        for entry in recording.entries():
            while not had_steps and turn_ns < entry.t_ns:
                if session.judge_if_due(turn_ns):
                    watcher.show(picture(turn_ns))
                turn_ns += POLL_NS
            last_ns = max(last_ns, entry.t_ns)
            if not isinstance(entry, Looked):
                session.ingest(entry)
            elif picture(entry.t_ns).steps is not None:
                had_steps = True
                session.judge(entry.t_ns)
                watcher.show(picture(entry.t_ns))
    finally:
        recording.close()
    watcher.last(picture(last_ns))


def look_of(verdict: Verdict, at_s: float, step: int) -> Judgement:
    """A verdict of ours, in the terms of the evaluation."""
    finding = verdict.finding
    return Judgement(
        at_s=at_s,
        step=step,
        kind=finding.kind,
        sub=finding.sub,
        asks=finding.severity != "info",
        confidence=verdict.confidence,
        share=finding.share,
        speedup=finding.speedup,
        speedup_is=finding.speedup_is,
        contributors=tuple(other.kind for other in verdict.contributors),
        leak=any(
            found.kind == GROWTH and found.sub == "leak"
            for found in (finding, *verdict.contributors)
        ),
        advice=finding.advice[0] if finding.advice else None,
    )
