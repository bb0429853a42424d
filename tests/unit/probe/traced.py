"""Steps that are traced by hand, one after the other."""

from collections.abc import Callable
from itertools import count

import pytest
import torch

from gpuwatch.probe.one_step import lasting, needless, tracer
from gpuwatch.probe.one_step.operation import Step

BEARS_SUBCLASSES = pytest.mark.skipif(
    not tracer.bears_subclasses(), reason="this torch breaks tensors of own types below a mode"
)
SIZE = 64
X = torch.randn(SIZE, SIZE)


class Traced:
    """Steps one after the other; each operation takes 1 us."""

    def __init__(self) -> None:
        self.known = lasting.Known()
        self.before = frozenset[int]()

    def step(self, run: Callable[[], object]) -> Step:
        mode = tracer.tracer(self.known, count().__next__)
        with mode:
            run()
        assert not mode.why_not
        return tracer.step_of(mode, lambda _: 1_000)

    def constant(self, run: Callable[[], object]) -> needless.Needless | None:
        step = self.step(run)
        steady = needless.steady_of(step, self.known.ids)
        found = needless.constant(step, steady, self.before)
        self.before = frozenset(steady.keys)
        return found
