"""The verdict engine of a demonstration: it says when the machine is too busy to show it."""

from dataclasses import replace

from tui.cli.catalogue import Demo
from tui.session.judge import Engine
from tui.verdict.findings import Note, Verdict
from tui.verdict.memory_trend import MemoryTrend
from tui.verdict.said import Held, Timeline
from tui.verdict.window import Window


class DemoEngine:
    """Says what `engine` says; where others hold the cores or the GPU, what one came to see too."""

    def __init__(self, demo: Demo, engine: Engine) -> None:
        self._engine = engine
        self._shows = f"{demo.kind}/{demo.sub}" if demo.sub else demo.kind
        self._kinds = {demo.kind, demo.kind_without_gpu}

    def judge(self, window: Window) -> Verdict:
        """The verdict, and a note where it is the machine's and not the demonstration's."""
        verdict = self._engine.judge(window)
        finding = verdict.finding
        if finding.kind != "contention" or finding.kind in self._kinds:
            return verdict
        held = "GPU" if finding.sub == "gpu" else "cores"
        text = f"this demo shows {self._shows}, but other processes hold the {held} of this machine"
        note = Note(f"{text}: run it when they are done", None, "proc")
        return replace(verdict, notes=(note, *verdict.notes))

    def timeline(self) -> Timeline:
        """What was said until the last window."""
        return self._engine.timeline()

    def summary(self) -> tuple[Held, ...]:
        """The same by the time that each thing was said."""
        return self._engine.summary()

    def trends(self) -> tuple[MemoryTrend, ...]:
        """Of the memories that grow, as of the last window."""
        return self._engine.trends()
