"""Optimizer steps: torch's own global hooks, which also see optimizers made before `install()`.

A compiled optimizer traces its hooks: whatever they do besides asking `is_compiling` would break
a full graph or send the optimizer back to eager, so that question comes first and a compiled step
has no optimizer phase (its time lies in "other").
"""

import sys
from threading import get_ident
from typing import Any

from ..recorder import Recorder
from ..wire.marks import OPTIMIZER_ENTER, OPTIMIZER_LEAVE
from . import Detach

MODULE = "torch"


def attach(recorder: Recorder) -> Detach:
    """Register the two global hooks."""
    module: Any = sys.modules["torch.optim.optimizer"]
    compiler: Any = sys.modules["torch.compiler"]
    # The narrower question is the cheaper one: outside dynamo it is a constant.
    is_compiling = getattr(compiler, "is_dynamo_compiling", compiler.is_compiling)
    put, number, now_ns, claim = recorder.put, recorder.number, recorder.now_ns, recorder.claim
    trip = recorder.trip

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling() or recorder.resting:
            return
        try:
            if get_ident() == recorder.owner or claim(OPTIMIZER_ENTER):
                put((n := number(), OPTIMIZER_ENTER, now_ns(), None))
                if (stamp := recorder.stamp) is not None:
                    stamp(n, OPTIMIZER_ENTER)
                if (glance := recorder.glance) is not None:
                    glance(OPTIMIZER_ENTER, optimizer)
        except Exception as error:
            trip(error)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        try:
            if recorder.resting:
                recorder.rested += get_ident() == recorder.owner
            elif get_ident() == recorder.owner or claim(OPTIMIZER_LEAVE):
                put((n := number(), OPTIMIZER_LEAVE, now_ns(), None))
                if (stamp := recorder.stamp) is not None:
                    stamp(n, OPTIMIZER_LEAVE)
        except Exception as error:
            trip(error)

    handles = (
        module.register_optimizer_step_pre_hook(before),
        module.register_optimizer_step_post_hook(after),
    )

    def detach() -> tuple[str, ...]:
        for handle in handles:
            handle.remove()
        return ()

    return detach
