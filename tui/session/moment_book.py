"""At which steps a run began an epoch, evaluated, saved, or started its workers anew."""

from collections import deque
from typing import Final

from probe.wire.messages import Loader, Step
from tui.verdict.window import Moment

HELD_OF_A_KIND: Final = 200
"""A checkpoint at every step must not push out the epochs."""


class MomentBook:
    """The newest moments of each kind."""

    def __init__(self) -> None:
        self._asides: dict[str, deque[Moment]] = {}
        self._epochs: deque[tuple[int, int]] = deque(maxlen=HELD_OF_A_KIND)
        """(step, key of the loader): that a loader serves evaluation shows only later."""
        self._loaders: dict[int, Loader] = {}

    def step_ended(self, step: Step) -> None:
        """A step may have had something in it beside training."""
        if step.evaluation_ns:
            self._keep(Moment(step.number, "evaluation"))
        if step.checkpoint_ns:
            self._keep(Moment(step.number, "checkpoint"))

    def loader_told(self, step: int, loader: Loader) -> None:
        """A loader changed: it, or another one in its place, may have begun anew. The first one
        begins the run."""
        before = self._loaders.get(loader.key)
        began = bool(self._loaders) if before is None else loader.iterations > before.iterations
        if began:
            self._epochs.append((step, loader.key))
        if before and before.worker_pids and loader.worker_pids not in ((), before.worker_pids):
            self._keep(Moment(step, "workers"))
        self._loaders[loader.key] = loader

    def all(self) -> tuple[Moment, ...]:
        """What is held, oldest first."""
        training = {key for key, loader in self._loaders.items() if not loader.evaluation}
        moments = [Moment(step, "epoch") for step, key in self._epochs if key in training]
        for kept in self._asides.values():
            moments += kept
        return tuple(sorted(moments, key=lambda moment: moment.step))

    def _keep(self, moment: Moment) -> None:
        kept = self._asides.setdefault(moment.kind, deque(maxlen=HELD_OF_A_KIND))
        kept.append(moment)
