"""The scenarios, as their catalogue has them, and which verdict on each is right."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SCENARIOS: Final = ROOT / "demo" / "scenarios"
GROWTH: Final = "memory-growth"
NOTHING_TO_FIX: Final = frozenset({"healthy", "compute", "memory-bandwidth"})
"""Kinds that a run without a removable cause may get."""


@dataclass(frozen=True)
class Expected:
    """The verdicts that are right on one kind of machine."""

    kinds: tuple[str, ...]
    """The true one first."""
    sub: str | None
    """The sub of the first; None where it has none or any will do."""
    negative: bool
    """A verdict that asks for a change is a false alarm."""


@dataclass(frozen=True)
class Scenario:
    """One row of the catalogue."""

    name: str
    script: str
    title: str
    shape: str
    ids: list[str]
    """Its numbers, S01 to S50: a script may stand for several."""
    family: str
    """"steady", "bursty", "negative", "memory", "mixed" or "regime"."""
    half: str
    """"tune" where thresholds may be fitted to it, "report" where they may not."""
    kind: str
    sub: str | None
    also_accept: list[str]
    """Kinds that are as right as `kind`."""
    negative: bool
    """Whether a verdict that asks for a change would be a false alarm."""
    cpu: bool
    """It runs, and shows its cause, on two cores without a GPU."""
    kind_without_gpu: str | None
    """What is true there; None where it is the same."""
    sub_without_gpu: str | None
    also_accept_without_gpu: list[str]
    switch: str | None
    """What `--without-cause` does; None where there is no cause to remove."""
    first_action: str | None
    """Regular expression that the first advice matches when it says to do what the switch does."""
    causes: list[str]
    """Kinds of its causes where there are several, the main one first: names for the switch."""
    from_step: int
    """Where its cause begins."""
    scales: list[float]
    """Times its usual length that a step can take."""
    notes: str

    @property
    def costs_time(self) -> bool:
        """Whether running without its cause says what that costs: what grows is not slower."""
        return self.switch is not None and self.kind != GROWTH

    def expected(self, gpu: bool) -> Expected:
        """What is right with a GPU, or on a machine without one."""
        if gpu or self.kind_without_gpu is None:
            return Expected((self.kind, *self.also_accept), self.sub, self.negative)
        kinds = (self.kind_without_gpu, *self.also_accept_without_gpu)
        negative = self.negative or self.kind_without_gpu in NOTHING_TO_FIX
        return Expected(kinds, self.sub_without_gpu, negative)


def scenarios(only: str = "", folder: Path = SCENARIOS) -> list[Scenario]:
    """The catalogue, or the scenarios of it that are named, in the order of their names given."""
    rows = json.loads((folder / "catalogue.json").read_text())
    every = {row["name"]: Scenario(**row) for row in rows}
    names = only.split(",") if only else list(every)
    if unknown := [name for name in names if name not in every]:
        sys.exit(f"no such scenario: {', '.join(unknown)}")
    return [every[name] for name in names]
