"""The gradient's norm where clipping works it out anyway, and steps that a GradScaler skips.

`clip_grad_norm_` ends in a private function, which returns the norm on its device without waiting
for it. `GradScaler` waits for its own flag before each step, and then asks the optimizer to step or
does not. Compiled, both are traced: the first question says so, and nothing is done.
"""

import functools
import sys
from threading import get_ident
from typing import Any

from ..first_number import numerics_of
from ..recorder import Recorder
from . import Detach, replace, uncounted

MODULE = "torch"


class _Asked:
    """Stands for an optimizer in torch's own function, which does nothing with it but to have it
    step: one that is compiled puts no marks."""

    __slots__ = ("_optimizer", "steps")

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self.steps = 0

    @uncounted
    def step(self, *args: Any, **kwargs: Any) -> Any:
        self.steps += 1
        return self._optimizer.step(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)


def attach(recorder: Recorder) -> Detach:
    """Hook both, where this torch has them."""
    undo = [_attach_norm(recorder), _attach_scaler(recorder)]
    return lambda: sum((one() for one in undo), ())


def _attach_norm(recorder: Recorder) -> Detach:
    module: Any = sys.modules.get("torch.nn.utils.clip_grad")
    utils: Any = sys.modules.get("torch.nn.utils")
    original = getattr(module, "_get_total_norm", None)
    if original is not None:
        places = [(module, "_get_total_norm")]
    else:  # before torch 2.6
        original = getattr(module, "clip_grad_norm_", None)
        places = [(module, "clip_grad_norm_"), (utils, "clip_grad_norm_")]
    if original is None:
        return lambda: ()
    compiler: Any = sys.modules["torch.compiler"]
    is_compiling = getattr(compiler, "is_dynamo_compiling", compiler.is_compiling)

    @functools.wraps(original)
    def total_norm(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(*args, **kwargs)
        norm = original(*args, **kwargs)
        if get_ident() == recorder.owner:
            try:
                numerics_of(recorder).norm(norm)
            except Exception as error:
                recorder.trip(error)
        return norm

    return replace(original, total_norm, places)


def _attach_scaler(recorder: Recorder) -> Detach:
    module: Any = sys.modules.get("torch.amp.grad_scaler")
    scaler: Any = getattr(module, "GradScaler", None)
    original = None if scaler is None else vars(scaler).get("_maybe_opt_step")
    if original is None or getattr(original, "__globals__", None) is not vars(module):
        return lambda: ()
    compiler: Any = sys.modules["torch.compiler"]
    is_compiling = getattr(compiler, "is_dynamo_compiling", compiler.is_compiling)

    @functools.wraps(original)
    def _maybe_opt_step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or get_ident() != recorder.owner:
            return original(self, optimizer, *args, **kwargs)
        asked = _Asked(optimizer)
        result = original(self, asked, *args, **kwargs)
        try:
            numerics = numerics_of(recorder)
            if asked.steps or numerics.has_stepped:
                numerics.stepped(skipped=not asked.steps)
        except Exception as error:
            recorder.trip(error)
        return result

    return replace(original, _maybe_opt_step, [(scaler, "_maybe_opt_step")])
