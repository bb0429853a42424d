"""The views: what each is called and which panels it has.

A view's panels are imported when it is first shown: the first frame must not wait for the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..widgets.footer import NAMES

if TYPE_CHECKING:
    from ..widgets.panel import Panel


def _overview() -> "Sequence[Panel]":
    """The picture that proves the verdict, then detail."""
    from ..widgets.gpu.ranks import RanksPanel
    from ..widgets.gpu.sawtooth import SawtoothPanel
    from ..widgets.ledger import LedgerPanel
    from ..widgets.memory.overview import MemoryPanel
    from ..widgets.processes.events import EventsPanel
    from ..widgets.processes.panel import ProcessesPanel
    from ..widgets.stacks.panel import StacksPanel
    from ..widgets.steps.overview import StepPanel

    return (
        SawtoothPanel("overview-sawtooth"),
        RanksPanel("overview-ranks"),
        LedgerPanel("overview-ledger"),
        StepPanel("overview-step"),
        StacksPanel("overview-stacks"),
        MemoryPanel("overview-memory"),
        ProcessesPanel("overview-processes"),
        EventsPanel("overview-events"),
    )


def _steps() -> "Sequence[Panel]":
    """Where their time goes, on both clocks."""
    from ..widgets.steps.phase_table import PhaseTable
    from ..widgets.steps.scope import ScopePanel
    from ..widgets.steps.step_times import StepTimes
    from ..widgets.steps.two_clocks import TwoClocksPanel

    return (
        TwoClocksPanel("steps-two-clocks"),
        PhaseTable("steps-phases"),
        ScopePanel("steps-scope"),
        StepTimes("steps-times"),
    )


def _gpu() -> "Sequence[Panel]":
    """What it does, how it is, who else is on it, and the ranks beside this one."""
    from ..widgets.gpu.chart import GpuChartsPanel
    from ..widgets.gpu.facts import GpuFactsPanel
    from ..widgets.gpu.ranks import RanksPanel

    return (GpuChartsPanel("gpu-charts"), RanksPanel("gpu-ranks"), GpuFactsPanel("gpu-facts"))


def _memory() -> "Sequence[Panel]":
    """Who holds how much, and where it is heading."""
    from ..widgets.memory.charts import MemoryChartsPanel
    from ..widgets.memory.holders import MemoryRoomPanel
    from ..widgets.memory.trends import MemoryTrendsPanel

    return (
        MemoryRoomPanel("memory-room"),
        MemoryTrendsPanel("memory-trends"),
        MemoryChartsPanel("memory-charts"),
    )


def _stacks() -> "Sequence[Panel]":
    """Where the threads are while the GPU is idle, busy, or at any time."""
    from ..widgets.stacks.panel import PlacesPanel
    from ..widgets.stacks.tree import StackTreePanel

    return (StackTreePanel("stacks-tree"), PlacesPanel("stacks-places"))


def _processes() -> "Sequence[Panel]":
    """The processes of the run, the machine's cores, and what has happened."""
    from ..widgets.processes.events import EventsPanel
    from ..widgets.processes.panel import CoresPanel, ProcessesPanel

    return (
        ProcessesPanel("processes-processes"),
        CoresPanel("processes-cores"),
        EventsPanel("processes-events"),
    )


def _ranks() -> "Sequence[Panel]":
    """Of a job of several: each rank's lane."""
    from ..widgets.gpu.rank_lanes import RankLanesPanel

    return (RankLanesPanel("ranks-lanes"),)


PANELS: Final[dict[str, "Callable[[], Sequence[Panel]]"]] = {
    "overview": _overview,
    "steps": _steps,
    "gpu": _gpu,
    "memory": _memory,
    "stacks": _stacks,
    "processes": _processes,
    "ranks": _ranks,
}


@dataclass(frozen=True, slots=True)
class Tab:
    """One view."""

    name: str

    def panels(self) -> "Sequence[Panel]":
        """Fresh panels, in the order in which they stand."""
        return PANELS[self.name]()


TABS = tuple(Tab(name) for name in NAMES)


def tab_named(name: str) -> Tab:
    """The view of that name. Raises StopIteration for another."""
    return next(tab for tab in TABS if tab.name == name)
