"""Generated runs, one process each: watched and recorded, then its switches measured."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.catalogue import ROOT
from evaluation.examined import Examined, Mode, Reported, Watcher, judged_as
from evaluation.launching import FailedError, Launched, one_at_a_time
from evaluation.recording import GPUWATCH, record, signals_in, watched_again
from evaluation.verdict_track import UNSETTLED
from generated.draw import draw
from generated.spec import Device, Spec
from generated.switches import switches
from generated.turns import gains_of
from gpuwatch.tui.formats import jsonlines

PLAY: Final = ROOT / "demo" / "generated" / "play.py"
FEW_CORES: Final = 8
"""With fewer in a slot the next run's imports would slow down the one that is measured."""
BESIDE: Final = 4
"""One core of so many is left to what goes on beside a run: who records it, the next one's imports
and the last one's verdict. Threads of a tensor operation on all cores wait for the one that another
process holds up. Beside one that imported, a step on 16 cores took 8.1 ms, and 2.7 without."""
LONGER: Final = 3
"""Whoever sees no verdict yet looks on: so many times as long."""


@dataclass(frozen=True)
class Plan:
    """How runs are examined."""

    device: Device
    mode: Mode
    seconds: float
    """Recorded."""
    turn_seconds: float
    turns: int
    """With each switch near the best, and more where those do not agree."""
    folder: Path
    """Of recordings."""


@dataclass(frozen=True)
class Slot:
    """Cores, and on a machine with GPUs one of them, for one run at a time."""

    cores: tuple[int, ...]
    gpu: int | None
    beside: tuple[int, ...] = ()
    """Cores on which the next run may import, and the last one be judged, while one is measured."""

    @property
    def ahead(self) -> bool:
        """There are some."""
        return bool(self.beside)


@dataclass(frozen=True)
class SeedRun:
    """One seed's process."""

    spec: Spec
    plan: Plan
    slot: Slot
    seconds: float | None = None
    """It trains until it is let go on."""

    @property
    def name(self) -> str:
        """Of its log and its recording."""
        return f"{self.spec.device}-{self.spec.seed}"

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return self.name

    @property
    def folder(self) -> Path:
        """Where its output goes."""
        return self.plan.folder

    @property
    def probe(self) -> bool:
        """It has one."""
        return self.plan.mode != "bare"

    @property
    def environment(self) -> Mapping[str, str]:
        """The GPU and the cores of its slot, which it does not have as it imports; where nothing
        watches from inside, nothing may. The processes that Inductor starts to compile in import
        for ten seconds on the cores of a run that is recorded by then."""
        own = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
        if self.slot.gpu is not None:
            own["CUDA_VISIBLE_DEVICES"] = str(self.slot.gpu)
        if self.slot.beside:
            own["OMP_NUM_THREADS"] = str(len(self.slot.cores))
        return {**own, **({} if self.probe else {"GPUWATCH": "0"})}

    @property
    def cores(self) -> tuple[int, ...]:
        """Those of its slot."""
        return self.slot.cores

    def command(self) -> list[str]:
        """The command line."""
        plan = self.plan
        start = [*GPUWATCH, "run"] if plan.mode == "run" else []
        python = [] if plan.mode == "run" else [sys.executable]
        more = ["--probe"] if plan.mode == "probe" else []
        timing = ["--turn-seconds", f"{plan.turn_seconds:g}", "--turns", str(plan.turns)]
        seed = [str(self.spec.seed), "--device", plan.device]
        return [*start, *python, str(PLAY), *seed, "--examine", *timing, *more]


def slots_of(jobs: int, gpus: int) -> list[Slot]:
    """The machine's cores, shared out among so many runs at a time; and its GPUs in turn."""
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // jobs)
    own = share - share // BESIDE if share >= FEW_CORES else share
    slots = []
    for at in range(jobs):
        its = tuple(cores[at * share : (at + 1) * share])
        slots.append(Slot(its[:own], at % gpus if gpus else None, its[own:]))
    return slots


def run_seeds(
    seeds: Sequence[int],
    plan: Plan,
    slots: Sequence[Slot],
    done: Callable[[Examined], None],
    ends: float | None = None,
) -> list[int]:
    """Examine them all; `done` gets each result as it comes. Returns the seeds that failed.

    From `ends` on, by the monotonic clock, no further one is begun.
    """
    queue = deque(seeds)
    failed: list[int] = []
    judged: list[Future[None]] = []

    def judge(recorded: Recorded) -> None:
        done(examined(recorded))

    def runs(slot: Slot) -> Iterator[SeedRun]:
        while queue and (ends is None or time.monotonic() < ends):
            yield SeedRun(draw(queue.popleft(), plan.device), plan, slot)

    def work(slot: Slot, judges: ThreadPoolExecutor) -> None:
        for launched in one_at_a_time(runs(slot), slot.ahead, slot.beside):
            if ends is not None and time.monotonic() > ends:
                return
            try:
                recorded = measured(launched)
            except FailedError as error:
                failed.append(launched.job.spec.seed)
                print(f"FAILED {error}", flush=True)
                continue
            judging = judges.submit(judge, recorded)
            if not slot.ahead:
                judging.result()
            judged.append(judging)

    if beside := {core for slot in slots for core in slot.beside}:
        # Who records and judges, with all that it starts.
        os.sched_setaffinity(0, beside)
    with ThreadPoolExecutor(1) as judges, ThreadPoolExecutor(len(slots)) as pool:
        list(pool.map(lambda slot: work(slot, judges), slots))
    for each in judged:
        each.result()
    return failed


@dataclass(frozen=True)
class Recorded:
    """A run that has ended: its recording lies in its folder."""

    run: SeedRun
    report: Mapping[str, Any]
    """The turns of each way to run, and what they were made from."""
    seconds: float
    """From its start to its end."""
    before_s: float
    """It had been looked at so long, without a verdict, before its recording began."""
    first: Reported
    """By the first look, whose verdict it is where there was one."""

    @property
    def file(self) -> Path:
        """The recording."""
        return self.run.folder / f"{self.run.name}.gpuwatch"


def measured(launched: Launched[SeedRun]) -> Recorded:
    """One seed, from its first step to its last turn. Raises FailedError."""
    run = launched.job
    began = time.monotonic()
    file, before_s = run.folder / f"{run.name}.gpuwatch", 0.0
    launched.begin(more=True)
    record(launched, file, run.plan.seconds)
    first = reported_on(file)
    if not _is_settled(first):
        before_s = run.plan.seconds
        record(launched, file, LONGER * before_s)
    launched.go_on()
    report: dict[str, Any] = launched.report()
    return Recorded(run, report, time.monotonic() - began, before_s, first)


def _is_settled(reported: Reported) -> bool:
    return bool(reported.looks) and reported.looks[-1].kind not in UNSETTLED


def examined(recorded: Recorded) -> Examined:
    """Its verdict, held against what was measured."""
    run, file = recorded.run, recorded.file
    found = {switch.name: switch for switch in switches(run.spec)}
    turns = [(name, rate) for name, rate in recorded.report["turns"]]
    gains = gains_of(turns, {name: switch.kinds for name, switch in found.items()})
    signals = signals_in(file)
    return judged_as(
        str(run.spec.seed),
        gains,
        reported_on(file) if recorded.before_s else recorded.first,
        {name: switch.advice for name, switch in found.items()},
        half=run.spec.half,
        device=run.spec.device,
        gpu=signals.gpu,
        others_cores=signals.others_cores,
        cut=bool(recorded.report["cut"]),
        before_s=recorded.before_s,
        begun_step=recorded.first.begun_step,
        mode=run.plan.mode,
        causes=tuple(cause.name for cause in run.spec.causes),
        failed=recorded.report["failed"],
        seconds=recorded.seconds,
        recording_bytes=file.stat().st_size,
        about={
            **recorded.report,
            "before_s": recorded.before_s,
            "begun_step": recorded.first.begun_step,
        },
    )


def reported_on(file: Path) -> Reported:
    """All that is reported on a recording as it is replayed."""
    watcher = Watcher()
    watched_again(file, watcher)
    final = {} if watcher.final is None else jsonlines.record(watcher.final, final=True)
    verdict = final.get("verdict") or {}
    parts = (final.get("ledger") or {}).get("parts", {})
    return Reported(
        looks=tuple(watcher.looks),
        begun_step=signals_in(file).begun_step,
        forecast=verdict.get("speedup"),
        interval=(verdict.get("speedup_low"), verdict.get("speedup_high")),
        ledger={name: part for name, part in parts.items() if part is not None},
    )
