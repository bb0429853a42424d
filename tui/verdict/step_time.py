"""Where the time of some steps went: sums over rows, in ns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Final

from ..steps import GpuStep, Step
from .thresholds.causes import COMPUTE_PHASES, DATA_PHASES

_COUNT: Final = attrgetter("count")
_FETCHES: Final = attrgetter("fetches")
_DATA_NS: Final = attrgetter("data_ns")
_STARTUP_NS: Final = attrgetter("startup_ns")
_TRAINING_NS: Final = tuple(
    map(attrgetter, ("forward_ns", "backward_ns", "optimizer_ns", "other_ns"))
)
_PAUSED_NS: Final = tuple(map(attrgetter, ("evaluation_ns", "checkpoint_ns", "compile_ns")))


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums over rows. A row may be several merged steps."""

    steps: int
    fetches: int
    wall_ns: int
    data_ns: int
    startup_ns: int
    paused_ns: int
    """Evaluation, checkpoints and compilation: not the training itself."""
    attributed_ns: int
    """Of the wall time, what any phase claims."""

    @property
    def training_ns(self) -> int:
        """Wall time without what is beside the training."""
        return max(0, self.wall_ns - self.paused_ns - self.startup_ns)

    @property
    def batch_ns(self) -> float | None:
        """Wall time of one batch, of the training alone; None when nothing was fetched."""
        return self.training_ns / self.fetches if self.fetches else None

    @property
    def wait_ns(self) -> float | None:
        """Data wait of one batch."""
        return self.data_ns / self.fetches if self.fetches else None

    @property
    def attributed(self) -> float:
        """Share of the wall time that the phases explain, 0 to 1."""
        return min(1.0, self.attributed_ns / self.wall_ns) if self.wall_ns > 0 else 0.0


def wall_of(step: Step) -> int:
    """Length of a row, ns; never negative."""
    length_ns = step.end_ns - step.start_ns
    return length_ns if length_ns > 0 else 0


def paused_of(step: Step) -> int:
    """What lies beside the training in a row, ns."""
    return step.evaluation_ns + step.checkpoint_ns + step.compile_ns


def issued_of(row: Step | GpuStep) -> int:
    """The phases of a row in which kernels are launched, ns."""
    return row.forward_ns + row.backward_ns + row.optimizer_ns


def between_of(row: Step | GpuStep, named: Iterable[str]) -> int:
    """What lies between the phases of a row, with the user's phases of these names
    (`host_phases`), ns."""
    return row.other_ns + sum(row.phases.get(name, 0) for name in named)


def pace_of(step: Step) -> float:
    """Training time of one step of a row, ns: without what comes now and then."""
    # In one expression: it is called for hundreds of rows at every judgement.
    pace_ns = (
        step.end_ns
        - step.start_ns
        - step.startup_ns
        - step.evaluation_ns
        - step.checkpoint_ns
        - step.compile_ns
    )
    if pace_ns <= 0:
        return 0.0
    return pace_ns / step.count if step.count > 1 else float(pace_ns)


def is_python(phase: str) -> bool:
    """Whether a user's phase is Python between the steps, by its name: neither data nor compute."""
    return not any(word in phase.lower() for word in (*COMPUTE_PHASES, *DATA_PHASES))


class _These:
    """A tuple of rows, which is no other's: to compare rows takes longer than to sum them up."""

    __slots__ = ("rows",)

    def __init__(self, rows: tuple[Step, ...]) -> None:
        self.rows = rows

    def __hash__(self) -> int:
        return id(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _These) and other.rows is self.rows


def spent(rows: Sequence[Step]) -> Spent:
    """The sums over `rows`. Nearly every rule asks for those of the window's steps."""
    return _spent_once(_These(rows)) if isinstance(rows, tuple) else _spent(rows)


@lru_cache(maxsize=4)
def _spent_once(these: _These) -> Spent:
    return _spent(these.rows)


def _spent(rows: Sequence[Step]) -> Spent:
    # One sum for each field takes half as long as a loop over the rows.
    data, startup = sum(map(_DATA_NS, rows)), sum(map(_STARTUP_NS, rows))
    paused = sum(sum(map(ns_of, rows)) for ns_of in _PAUSED_NS)
    training = sum(sum(map(ns_of, rows)) for ns_of in _TRAINING_NS)
    named = sum(sum(row.phases.values()) for row in rows if row.phases)
    return Spent(
        steps=sum(map(_COUNT, rows)),
        fetches=sum(map(_FETCHES, rows)),
        wall_ns=sum(map(wall_of, rows)),
        data_ns=data,
        startup_ns=startup,
        paused_ns=paused,
        attributed_ns=data + startup + training + paused + named,
    )


def named_ns(rows: Sequence[Step]) -> int:
    """The user's phases that are data or the net's, by their names, ns."""
    return sum(ns for row in rows for name, ns in row.phases.items() if not is_python(name))


def host_phases(rows: Sequence[Step]) -> dict[str, int]:
    """The user's phases that are Python between the steps, by name, ns."""
    sums: dict[str, int] = {}
    for row in rows:
        for name, ns in row.phases.items():
            sums[name] = sums.get(name, 0) + ns
    return {name: ns for name, ns in sums.items() if is_python(name)}
