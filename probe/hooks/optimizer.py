"""Optimizer steps: torch's own global hooks, which also see optimizers made before `install()`.

A compiled optimizer traces its hooks: whatever they do besides asking `is_compiling` would break
a full graph or send the optimizer back to eager, so that question comes first and a compiled step
has no optimizer phase (its time lies in "other").
"""

import sys
from threading import get_ident
from types import CodeType
from typing import Any, Final

from ..recorder import Recorder
from ..wire.marks import OPTIMIZER_ENTER, OPTIMIZER_LEAVE, word_of
from . import Detach
from .arrival import when_unused

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
            if (extra := recorder.extra) is not None:
                extra(OPTIMIZER_ENTER, optimizer)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if get_ident() == recorder.owner or claim(OPTIMIZER_LEAVE):
            put(now_ns())
            put(LEAVE)
            if (extra := recorder.extra) is not None:
                extra(OPTIMIZER_LEAVE, None)

    handles: list[Any] = []
    codes = _step_codes(module)

    def register() -> None:
        handles.append(module.register_optimizer_step_pre_hook(before))
        handles.append(module.register_optimizer_step_post_hook(after))

    def remove() -> None:
        while handles:
            handles.pop().remove()

    if not _has_hooks(module):
        register()
    elif not when_unused(codes, register):
        raise RuntimeError("optimizers step all the time, between hooks of the program's own")

    def detach() -> tuple[str, ...]:
        return () if when_unused(codes, remove) else ("torch.optim.optimizer",)

    return detach


def _has_hooks(module: Any) -> bool:
    """The program's own, which a step goes through: it fails where another comes meanwhile."""
    both = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
    return any(getattr(module, name, True) for name in both)


def _step_codes(module: Any) -> set[CodeType]:
    """The function around every optimizer's step, which goes through the hooks."""
    outer = getattr(module.Optimizer, "profile_hook_step", None)
    parts = outer.__code__.co_consts if outer is not None else ()
    return {one for one in parts if isinstance(one, CodeType)}
