"""Things worth a line, told once."""

from collections import deque
from typing import Final

from probe.wire.messages import Loader, Step
from tui.snapshot import Event
from tui.verdict.changes import Change
from tui.verdict.policy import COMPILE_HORIZON

HELD: Final = 50
HELD_OF_A_KIND: Final = 20
"""So that a checkpoint at every step does not push out the verdict that changed."""


class EventBook:
    """The newest events of each kind."""

    def __init__(self) -> None:
        self._by_kind: dict[str, deque[Event]] = {}
        self._worker_pids: dict[int, tuple[int, ...]] = {}

    def say(self, kind: str, t_ns: int, step: int | None, text: str) -> None:
        """Add an event; `kind` only says what it competes with for room."""
        kept = self._by_kind.setdefault(kind, deque(maxlen=HELD_OF_A_KIND))
        kept.append(Event(t_ns, step, text))

    def step_ended(self, step: Step) -> None:
        """What a step had in it beside training. Compiling is news only once the run is warm."""
        for kind, ns in (("checkpoint", step.checkpoint_ns), ("evaluation", step.evaluation_ns)):
            if ns:
                self.say(kind, step.end_ns, step.number, f"{kind} {ns / 1e9:.1f} s")
        if step.compile_ns and step.number > COMPILE_HORIZON:
            text = f"recompile {step.compile_ns / 1e9:.1f} s"
            self.say("recompile", step.end_ns, step.number, text)

    def pace_changed(self, first: Step, change: Change) -> None:
        """Steps take another time from `first` on."""
        was = f"{change.before_ns / 1e6:,.0f} ms"
        text = f"step time {change.factor - 1:+.0%} (was {was})"
        if change.what:
            text += f": {change.what}"
        self.say("pace", first.start_ns, first.number, text)

    def loader_told(self, t_ns: int, step: int | None, loader: Loader) -> None:
        """A loader changed: new worker processes are worth a line, the first ones are not."""
        before = self._worker_pids.get(loader.key)
        if loader.worker_pids:
            self._worker_pids[loader.key] = loader.worker_pids
            if before and before != loader.worker_pids:
                text = f"{len(loader.worker_pids)} loader workers started again"
                self.say("workers", t_ns, step, f"{text} (iteration {loader.iterations})")

    def newest(self) -> tuple[Event, ...]:
        """The newest events, newest last."""
        kept = [event for events in self._by_kind.values() for event in events]
        return tuple(sorted(kept, key=lambda event: event.t_ns)[-HELD:])
