"""Ordinary scripts under `gpuwatch run`: recorded as they are, then measured with each change."""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.catalogue import ROOT
from evaluation.examined import Examined, judged_as
from evaluation.launching import FailedError, running
from evaluation.recording import GPUWATCH, record, signals_in
from evaluation.seeds import Slot, reported_on
from generated.spec import Device
from generated.turns import gains_of

ORDINARY: Final = ROOT / "demo" / "ordinary"
OUTLIVES_S: Final = 6.0
"""A recorded script trains so much longer than it is recorded."""


@dataclass(frozen=True)
class Change:
    """What a person could change in a script, and the flags that do it."""

    name: str
    flags: tuple[str, ...]
    kinds: tuple[str, ...]
    """Of verdict, that are right where this change is worth most."""
    advice: str
    """Regular expression of a first action that says to make this change."""
    devices: tuple[Device, ...]
    """Where it can be made."""
    change: str
    """In words."""


@dataclass(frozen=True)
class Script:
    """One row of the catalogue."""

    name: str
    title: str
    switches: tuple[Change, ...]

    def changes(self, device: Device) -> list[Change]:
        """Those that can be made on such a device."""
        return [change for change in self.switches if device in change.devices]


@dataclass(frozen=True)
class ScriptPlan:
    """How scripts are examined."""

    device: Device
    seconds: float
    """Recorded."""
    turn_seconds: float
    """Of each run that is measured, after the script's own warm-up."""
    turns: int
    """With each change."""
    folder: Path


@dataclass(frozen=True)
class ScriptRun:
    """One process of a script."""

    script: Script
    plan: ScriptPlan
    slot: Slot
    change: Change | None = None
    watched: bool = False

    @property
    def name(self) -> str:
        """Of its log."""
        change = self.change.name if self.change else "recorded" if self.watched else "as-it-is"
        return f"{self.plan.device}-{self.script.name}.{change}"

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return self.name

    @property
    def folder(self) -> Path:
        """Where its output goes."""
        return self.plan.folder

    @property
    def seconds(self) -> float:
        """To train."""
        more = self.plan.seconds + OUTLIVES_S
        return more if self.watched else self.plan.turn_seconds

    @property
    def probe(self) -> bool:
        """Only a watched one has it."""
        return self.watched

    @property
    def environment(self) -> Mapping[str, str]:
        """On two cores one computes, as in the other scenarios, and no GPU is seen."""
        if self.plan.device == "cpu":
            return {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        return {} if self.slot.gpu is None else {"CUDA_VISIBLE_DEVICES": str(self.slot.gpu)}

    @property
    def cores(self) -> tuple[int, ...]:
        """Those of its slot."""
        return self.slot.cores

    def command(self) -> list[str]:
        """The command line."""
        start = [*GPUWATCH, "run"] if self.watched else [sys.executable]
        flags = self.change.flags if self.change else ()
        path = str(ORDINARY / f"{self.script.name}.py")
        return [*start, path, "--seconds", f"{self.seconds:g}", *flags]


def scripts(only: str = "") -> list[Script]:
    """The catalogue, or those of it that are named."""
    rows = json.loads((ORDINARY / "catalogue.json").read_text())
    every = [
        Script(
            row["name"],
            row["title"],
            tuple(_change(each) for each in row["switches"]),
        )
        for row in rows
    ]
    names = only.split(",") if only else [script.name for script in every]
    if unknown := set(names) - {script.name for script in every}:
        sys.exit(f"no such script: {', '.join(sorted(unknown))}")
    return [script for script in every if script.name in names]


def _change(row: dict[str, Any]) -> Change:
    fixed: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in row.items()
    }
    return Change(**fixed)


def run_scripts(
    chosen: Sequence[Script],
    plan: ScriptPlan,
    slots: Sequence[Slot],
    done: Callable[[Examined], None],
) -> list[str]:
    """Examine them all; returns the names of those that failed."""
    queue = list(chosen)
    failed: list[str] = []

    def work(slot: Slot) -> None:
        while queue:
            script = queue.pop(0)
            try:
                done(examine(script, plan, slot))
            except FailedError as error:
                failed.append(script.name)
                print(f"FAILED {error}", flush=True)

    with ThreadPoolExecutor(len(slots)) as pool:
        list(pool.map(work, slots))
    return failed


def examine(script: Script, plan: ScriptPlan, slot: Slot) -> Examined:
    """One script, from its recording to its result. Raises FailedError."""
    began = time.monotonic()
    file = plan.folder / f"{plan.device}-{script.name}.gpuwatch"
    with running(ScriptRun(script, plan, slot, watched=True)) as launched:
        record(launched, file, plan.seconds)
    turns = [("", _samples_per_s(ScriptRun(script, plan, slot)))]
    failed: dict[str, str] = {}
    changes = script.changes(plan.device)
    for turn in range(plan.turns):
        for change in changes if turn % 2 == 0 else reversed(changes):
            # A change that cannot be made here is no truth about it.
            try:
                turns.append((change.name, _samples_per_s(ScriptRun(script, plan, slot, change))))
            except FailedError as error:
                failed[change.name] = str(error)
                continue
            turns.append(("", _samples_per_s(ScriptRun(script, plan, slot))))
    signals = signals_in(file)
    return judged_as(
        script.name,
        gains_of(turns, {change.name: change.kinds for change in script.switches}),
        reported_on(file),
        {change.name: change.advice for change in script.switches},
        half="report",
        device=plan.device,
        gpu=signals.gpu,
        others_cores=signals.others_cores,
        mode="run",
        causes=(),
        failed=failed,
        seconds=time.monotonic() - began,
        recording_bytes=file.stat().st_size,
        about={"turns": turns},
    )


def _samples_per_s(run: ScriptRun) -> float:
    with running(run) as launched:
        return launched.report()["samples_per_s"]
