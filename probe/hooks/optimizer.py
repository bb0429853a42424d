"""Optimizer steps: torch's own global hooks, which also see optimizers made before `install()`.

A compiled optimizer traces its hooks: whatever they do besides asking `is_compiling` would break
a full graph or send the optimizer back to eager, so that question comes first and a compiled step
has no optimizer phase (its time lies in "other").
"""

import sys
from threading import get_ident
from typing import Any, Final

from ..recorder import Recorder
from ..wire.marks import OPTIMIZER_ENTER, OPTIMIZER_LEAVE, word_of
from . import Detach

MODULE = "torch"
ENTER: Final = word_of(OPTIMIZER_ENTER)
LEAVE: Final = word_of(OPTIMIZER_LEAVE)


def attach(recorder: Recorder) -> Detach:
    """Register the two global hooks."""
    module: Any = sys.modules["torch.optim.optimizer"]
    compiler: Any = sys.modules["torch.compiler"]
    # The narrower question is the cheaper one: outside dynamo it is a constant.
    is_compiling = getattr(compiler, "is_dynamo_compiling", compiler.is_compiling)
    put, now_ns, claim = recorder.put, recorder.now_ns, recorder.claim

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if get_ident() == recorder.owner or claim(OPTIMIZER_ENTER):
            put(now_ns())
            put(ENTER)
            if recorder.extra is not None:
                recorder.extra(OPTIMIZER_ENTER, optimizer)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if get_ident() == recorder.owner or claim(OPTIMIZER_LEAVE):
            put(now_ns())
            put(LEAVE)
            if recorder.extra is not None:
                recorder.extra(OPTIMIZER_LEAVE, None)

    handles = (
        module.register_optimizer_step_pre_hook(before),
        module.register_optimizer_step_post_hook(after),
    )

    def detach() -> tuple[str, ...]:
        for handle in handles:
            handle.remove()
        return ()

    return detach
