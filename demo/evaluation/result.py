"""One run of the evaluation as it is kept: what was measured, and what was made of it."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from evaluation.data_wait import DataWait
from evaluation.score import Score
from evaluation.truth import Truth

RECORDING: Final = "recording.gpuwatch"
FETCHES: Final = "fetches.json"
TRACEML: Final = "traceml.json"
MEASURED: Final = "measured.json"
RESULT: Final = "result.json"
OURS: Final = "gpuwatch"


@dataclass(frozen=True)
class Measured:
    """What cannot be had again without running again."""

    scenario: str
    seed: int
    scale: float
    host_cores: int
    seconds: float
    """That the runs took, imports included."""
    watched: dict[str, float]
    """The closing line of the watched run."""
    slow: list[dict[str, float]]
    """Closing lines of the runs without the probe: with the cause, in their order."""
    fast: list[dict[str, float]]
    """Without it."""
    others: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """Without another of several causes, by its kind."""
    probe: bool = True
    """It was in the watched run."""
    bare_before: bool = False
    """The runs that were not watched are those of an earlier evaluation: they hold what the cause
    costs, and nothing of what watching does."""


@dataclass(frozen=True)
class Result:
    """What was made of it."""

    scenario: str
    seed: int
    scale: float
    gpu: str | None
    torch: str | None
    negative: bool
    kinds: list[str]
    """The right ones, the true one first."""
    sub: str | None
    family: str
    half: str
    seconds: float
    """That its runs took."""
    others_cores: float | None
    """Of its cores, those that other processes used meanwhile; None where it is not known."""
    truth: Truth
    step_ms: float
    """Of the bare run with the cause."""
    cost: float | None
    """Of being watched: part of the bare run's steps a second that is lost. None where the bare
    runs are of an earlier evaluation."""
    cost_noise: float
    """How far the bare runs are apart among themselves."""
    data_wait: DataWait | None
    action_is_the_switch: bool | None
    """The first advice says to do what the switch does; None where that is not asked."""
    tools: dict[str, Score] = field(default_factory=dict)
    """By name, ours among them; those that reported something."""
    probe: bool = True
    """It was in the watched run. Without it nobody counted steps."""

    @property
    def name(self) -> str:
        """Of the scenario, with its seed and what is unusual."""
        scale = "" if self.scale == 1.0 else f" ×{self.scale:g}"
        return f"{self.scenario}.{self.seed}{scale}"


def keep(path: Path, what: Measured | Result) -> None:
    """Write it, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(asdict(what)), indent=2))
    part.rename(path)


def measured_in(folder: Path) -> Measured:
    """What was measured for a run that came to its end."""
    return msgspec.json.decode((folder / MEASURED).read_bytes(), type=Measured)


def results_in(folder: Path) -> list[Result]:
    """All results below a folder, in the order of their names."""
    paths = sorted(folder.glob(f"*/{RESULT}"))
    return [msgspec.json.decode(path.read_bytes(), type=Result) for path in paths]


def measured_before(folder: Path, gpu: str | None) -> Measured | None:
    """What was measured for the run that this folder is of, on a GPU of this name.

    None where nothing was, or where it was on another kind of machine: what removing a cause gives
    on one GPU is no truth about another, nor about two cores. What was measured must have been
    judged.
    """
    if not (folder / MEASURED).exists():
        return None
    result = msgspec.json.decode((folder / RESULT).read_bytes(), type=Result)
    return measured_in(folder) if result.gpu == gpu else None
