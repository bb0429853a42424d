"""Where the time of some steps went: sums over rows, in ns."""

from collections.abc import Sequence
from dataclasses import dataclass

from probe.wire.messages import Step
from tui.verdict import policy


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums over rows. A row may be several merged steps."""

    steps: int
    fetches: int
    wall_ns: int
    data_ns: int
    startup_ns: int
    aside_ns: int
    """Evaluation, checkpoints and compilation: not the training itself."""
    attributed_ns: int
    """Of the wall time, what any phase claims."""

    @property
    def training_ns(self) -> int:
        """Wall time without what is beside the training."""
        return max(0, self.wall_ns - self.aside_ns - self.startup_ns)

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
    return max(0, step.end_ns - step.start_ns)


def aside_of(step: Step) -> int:
    """What lies beside the training in a row, ns."""
    return step.evaluation_ns + step.checkpoint_ns + step.compile_ns


def pace_of(step: Step) -> float:
    """Training time of one step of a row, ns: without what comes now and then."""
    return max(0, wall_of(step) - aside_of(step) - step.startup_ns) / max(1, step.count)


def is_python(phase: str) -> bool:
    """Whether a user's phase is Python between the steps, by its name: neither data nor compute."""
    return not any(word in phase.lower() for word in (*policy.COMPUTE_PHASES, *policy.DATA_PHASES))


def spent(rows: Sequence[Step]) -> Spent:
    """The sums over `rows`."""
    steps = fetches = wall = data = startup = aside = attributed = 0
    for row in rows:
        beside = aside_of(row)
        steps += row.count
        fetches += row.fetches
        wall += wall_of(row)
        data += row.data_ns
        startup += row.startup_ns
        aside += beside
        attributed += (
            row.data_ns
            + row.startup_ns
            + row.forward_ns
            + row.backward_ns
            + row.optimizer_ns
            + row.other_ns
            + beside
        )
        if row.phases:
            attributed += sum(row.phases.values())
    return Spent(steps, fetches, wall, data, startup, aside, attributed)
