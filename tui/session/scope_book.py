"""The scope of a session, looked at anew every few seconds."""

from typing import Final

from tui.session.activity_book import ActivityBook
from tui.session.anchoring import anchored
from tui.session.gpu_step_book import GpuStepBook
from tui.session.scope import folded
from tui.session.step_book import StepBook
from tui.snapshot import Scope

FOLDED_ROWS: Final = 1_200
"""Steps that the samples of 24 s can be folded on."""
EVERY_NS: Final = 4_000_000_000
"""It looks back over 24 s, and a look takes 3 to 6 ms: a sixth of its samples are new by then."""


class ScopeBook:
    """Folds what one book holds on what the other does."""

    def __init__(self, gpus: ActivityBook, steps: StepBook, on_gpu: GpuStepBook) -> None:
        self._gpus = gpus
        self._on_gpu = on_gpu
        self._steps = steps
        self._due_ns = 0
        self._scope: Scope | None = None

    def at(self, now_ns: int) -> Scope | None:
        """The profile of one step; None where the counters or the steps do not tell one."""
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + EVERY_NS
            self._scope = self._look()
        return self._scope

    def _look(self) -> Scope | None:
        steps = self._steps.last(FOLDED_ROWS)
        if not steps or any(step.count > 1 for step in steps):
            return None  # merged steps are far too short
        edges_ns = [*(step.start_ns for step in steps), steps[-1].end_ns]
        scope = folded(self._gpus.readings(), edges_ns, "gpm 100 ms")
        if scope is None:
            return None
        return anchored(scope, self._on_gpu.between(edges_ns[0], edges_ns[-1]))
