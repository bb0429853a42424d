"""Generated runs, one process each: watched and recorded, then its switches measured."""

import json
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
from evaluation.launching import FailedError, Launched, one_at_a_time, running
from evaluation.recording import GPUWATCH, record, signals_in, watched_again
from evaluation.verdict_track import UNSETTLED
from generated.draw import draw
from generated.spec import Device, Spec
from generated.switches import Switch, switches
from generated.turns import Turn, gains_of, next_turns
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
IN_KERNEL: Final = 0.04
"""Of the time of a run as it is, its threads' in the kernel together. Of less not even all of it
would give 1.05x."""
PROCESS_S: Final = 4.0
"""Of a turn that is a process, which takes about as long until it trains."""
PROCESSES_S: Final = 90.0
"""Of such turns, from which none but those that must be are begun."""


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


@dataclass(frozen=True, kw_only=True)
class ProcessTurn(SeedRun):
    """A process that is one turn: of the run as it is, or with what its environment changes."""

    switch: Switch | None
    speed: Mapping[str, Any]
    """As the run has measured the machine: causes are made from it."""

    @property
    def name(self) -> str:
        """Of its log."""
        return f"{super().name}.{'kept' if self.switch else 'as-it-is'}"

    @property
    def probe(self) -> bool:
        """Nothing watches it."""
        return False

    @property
    def environment(self) -> Mapping[str, str]:
        """With the change."""
        return {**super().environment, **(self.switch.environment if self.switch else {})}

    def command(self) -> list[str]:
        """The command line."""
        seed = [str(self.spec.seed), "--device", self.plan.device]
        timing = ["--seconds", f"{PROCESS_S:g}", "--speed", json.dumps(self.speed)]
        return [sys.executable, str(PLAY), *seed, *timing]


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
    report = with_processes(run, launched.report())
    return Recorded(run, report, time.monotonic() - began, before_s, first)


def with_processes(run: SeedRun, report: Mapping[str, Any]) -> dict[str, Any]:
    """The report, and the turns of each change that only a process's environment makes."""
    taken: dict[str, list[Turn]] = {}
    failed = dict(report["failed"])
    for switch in switches(run.spec):
        if not switch.environment or report["in_kernel"] < IN_KERNEL:
            continue
        try:
            taken[switch.name] = _processes(run, switch, report["speed"])
        except FailedError as error:
            failed[switch.name] = str(error)
    return {**report, "processes": taken, "failed": failed}


def _processes(run: SeedRun, switch: Switch, speed: Mapping[str, Any]) -> list[Turn]:
    # One more than of those in one process: no other change's turns say how far they lie apart.
    each, over = run.plan.turns + 1, time.monotonic() + PROCESSES_S
    taken: list[Turn] = [("", _samples_per_s(run, None, speed))]
    while next_turns(taken, [switch.name], each, late=time.monotonic() > over):
        taken.append((switch.name, _samples_per_s(run, switch, speed)))
        taken.append(("", _samples_per_s(run, None, speed)))
    return taken


def _samples_per_s(run: SeedRun, switch: Switch | None, speed: Mapping[str, Any]) -> float:
    turn = ProcessTurn(run.spec, run.plan, run.slot, PROCESS_S, switch=switch, speed=speed)
    with running(turn) as launched:
        return launched.report()["samples_per_s"]


def _is_settled(reported: Reported) -> bool:
    return bool(reported.looks) and reported.looks[-1].kind not in UNSETTLED


def examined(recorded: Recorded) -> Examined:
    """Its verdict, held against what was measured."""
    run, file = recorded.run, recorded.file
    found = {switch.name: switch for switch in switches(run.spec)}
    kinds = {name: switch.kinds for name, switch in found.items()}
    # Turns of one process are held against each other, and those that are processes as well.
    measured = [recorded.report["turns"], *recorded.report["processes"].values()]
    turns = [[(name, rate) for name, rate in each] for each in measured]
    gains = [gain for each in turns for gain in gains_of(each, kinds)]
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
