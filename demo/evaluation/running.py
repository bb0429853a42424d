"""Run scenarios: each watched and recorded, then without the probe, with its cause and without."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from evaluation import timed_fetches, under_traceml
from evaluation.catalogue import SCENARIOS, Scenario
from evaluation.judging import judge
from evaluation.launching import FailedError, Job, Launched, one_at_a_time
from evaluation.recording import record
from evaluation.result import (
    FETCHES,
    MEASURED,
    RECORDING,
    TRACEML,
    Measured,
    keep,
    measured_before,
)
from evaluation.truth import order

OUTLIVES_S: Final = 4.0
"""A watched script trains so much longer than it is recorded: `gpuwatch record` takes a second or
two to start on a machine that is busy."""
CORES_FOR_TWO: Final = 8
"""From here on the next script's imports do not slow down the one that is measured."""


@dataclass(frozen=True)
class Run:
    """One scenario with one seed and one length of step."""

    scenario: Scenario
    seed: int
    scale: float
    """Times the scenario's usual length."""
    out: Path
    """Of the evaluation."""

    @property
    def name(self) -> str:
        """Its own among all of them."""
        scale = "" if self.scale == 1.0 else f".x{self.scale:g}"
        return f"{self.scenario.name}.{self.seed}{scale}"

    @property
    def folder(self) -> Path:
        """Of its own."""
        return self.out / self.name


@dataclass(frozen=True)
class RunPlan:
    """What a run consists of."""

    seconds: float
    """Recorded."""
    bare_seconds: float
    """Of each run without the probe, after the script's warm-up."""
    repeats: int
    """Of each of those."""
    gpu: str | None
    """Its name; None: there is none."""
    traceml: bool
    tiny: bool
    probe: bool = True
    """The recorded run has it."""
    truth: Path | None = None
    """An earlier evaluation: what it has measured bare is not run again."""
    scripts: Path = SCENARIOS

    def jobs(self, run: Run) -> Iterator[Job]:
        """The script's runs, in order."""
        under: tuple[str, ...] = ()
        if self.gpu is None and self.probe:
            under = ("-m", timed_fetches.__name__, str(run.folder / FETCHES))
        yield self._job(run, "recording", self.seconds + OUTLIVES_S, under=under)
        if self.measured_before(run) is None:
            yield from self._bare_jobs(run)
        if self.traceml:
            under = ("-m", under_traceml.__name__, str(run.folder / TRACEML))
            yield self._job(run, "traceml", self.seconds, under=under)

    def measured_before(self, run: Run) -> Measured | None:
        """What an earlier evaluation measured for the same."""
        return measured_before(self.truth / run.name, self.gpu) if self.truth is not None else None

    def _bare_jobs(self, run: Run) -> Iterator[Job]:
        turns = {"with": 0, "without": 0}
        compared = run.scenario.costs_time
        for purpose in order(self.repeats) if compared else ("with",) * self.repeats:
            turns[purpose] += 1
            yield self._job(run, purpose, self.bare_seconds, turns[purpose])
        for cause in run.scenario.causes[1:]:
            for turn in range(1, self.repeats + 1):
                yield self._job(run, "without", self.bare_seconds, turn, cause=cause)

    def _job(
        self,
        run: Run,
        purpose: str,
        seconds: float,
        turn: int = 0,
        *,
        cause: str = "",
        under: tuple[str, ...] = (),
    ) -> Job:
        return Job(
            scenario=run.scenario,
            purpose=purpose,
            folder=run.folder,
            scripts=self.scripts,
            seconds=seconds,
            seed=run.seed,
            scale=run.scale,
            turn=turn,
            tiny=self.tiny,
            cause=cause,
            probe=self.probe,
            under=under,
        )


class Progress:
    """One run's reports as they come in."""

    def __init__(self, run: Run, plan: RunPlan) -> None:
        self._run = run
        self._plan = plan
        self._left = len(list(plan.jobs(run)))
        self._reports: dict[tuple[str, str], list[dict[str, Any]]] = {}
        """By purpose and cause."""
        self._seconds = 0.0
        self.failed = False

    def add(self, launched: Launched[Job]) -> None:
        """Let this one train, to its end. Raises FailedError where it does not get there."""
        began = time.monotonic()
        job = launched.job
        try:
            launched.begin()
            if job.purpose == "recording":
                # A cause that is not there from the beginning is watched to the script's end.
                seconds = None if job.scenario.from_step else self._plan.seconds
                record(launched, self._run.folder / RECORDING, seconds)
            self._reports.setdefault((job.purpose, job.cause), []).append(launched.report())
        finally:
            self._seconds += time.monotonic() - began
        self._left -= 1

    def measured(self) -> Measured | None:
        """Once all are in: what was measured, and it is kept. None before."""
        if self._left:
            return None
        before = self._plan.measured_before(self._run)
        watched = self._reports["recording", ""][0]
        if before is not None:
            measured = replace(
                before,
                host_cores=os.cpu_count() or 1,
                seconds=self._seconds,
                watched=watched,
                probe=self._plan.probe,
                bare_before=True,
            )
        else:
            measured = Measured(
                scenario=self._run.scenario.name,
                seed=self._run.seed,
                scale=self._run.scale,
                host_cores=os.cpu_count() or 1,
                seconds=self._seconds,
                watched=watched,
                slow=self._reports["with", ""],
                fast=self._reports.get(("without", ""), []),
                others={cause: report for (_, cause), report in self._reports.items() if cause},
                probe=self._plan.probe,
            )
        keep(self._run.folder / MEASURED, measured)
        return measured


def run_all(runs: Sequence[Run], plan: RunPlan) -> list[Run]:
    """All of them, one script at a time; returns those that failed. Each has a line printed."""
    progress = {run.folder: Progress(run, plan) for run in runs}
    by_folder = {run.folder: run for run in runs}
    began = time.monotonic()
    for launched in one_at_a_time(
        _jobs(runs, plan, progress), ahead=(os.cpu_count() or 1) >= CORES_FOR_TWO
    ):
        run, own = by_folder[launched.job.folder], progress[launched.job.folder]
        if own.failed:
            continue
        try:
            own.add(launched)
        except FailedError as error:
            own.failed = True
            print(f"{run.name:32} FAILED {error}", flush=True)
            continue
        measured = own.measured()
        if measured is not None:
            line = judge(run.scenario, measured, run.folder)
            print(f"{line}  [{time.monotonic() - began:.0f} s]", flush=True)
    return [run for run in runs if progress[run.folder].failed]


def _jobs(runs: Sequence[Run], plan: RunPlan, progress: dict[Path, Progress]) -> Iterator[Job]:
    for run in runs:
        run.folder.mkdir(parents=True, exist_ok=True)
        for job in plan.jobs(run):
            if not progress[run.folder].failed:
                yield job
