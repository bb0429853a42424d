"""Backward: the private function that every backward of torch ends in.

`Tensor.backward`, `torch.autograd.backward`, DDP, FSDP2 and AOTAutograd all call
`_engine_run_backward`, a name held by two modules; torch itself restores the one over the other,
so both are replaced. `autograd.grad` comes through as well, with accumulate_grad false: compiling
traces its joint graph that way, which is no backward of the user's.
"""

import functools
import sys
from threading import get_ident
from typing import Any, Final

from ..recorder import Recorder
from ..wire.marks import BACKWARD_ENTER, BACKWARD_LEAVE, word_of
from . import Detach, replace

MODULE = "torch"
ENTER: Final = word_of(BACKWARD_ENTER)
LEAVE: Final = word_of(BACKWARD_LEAVE)


def attach(recorder: Recorder) -> Detach:
    """Hook backward. Without the private name, the public `torch.autograd.backward` instead."""
    autograd: Any = sys.modules["torch.autograd"]
    graph: Any = sys.modules.get("torch.autograd.graph")
    engine = getattr(graph, "_engine_run_backward", None)
    if engine is None:
        # `Tensor.backward` looks this up at each call, so it is seen too.
        return _attach(recorder, autograd.backward, [(autograd, "backward")], always=True)
    places = [(graph, "_engine_run_backward"), (autograd, "_engine_run_backward")]
    return _attach(recorder, engine, places, always=False)


def _attach(
    recorder: Recorder, original: Any, places: list[tuple[Any, str]], always: bool
) -> Detach:
    put, now_ns, claim = recorder.put, recorder.now_ns, recorder.claim
    torch: Any = sys.modules["torch"]
    count_modes = getattr(torch._C, "_len_torch_dispatch_stack", int)

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if count_modes():
            _before(recorder, args)
        if not (always or kwargs.get("accumulate_grad")):
            return original(*args, **kwargs)
        if get_ident() != recorder.owner and not claim(BACKWARD_ENTER):
            return original(*args, **kwargs)
        owner = recorder.owner
        put(now_ns())
        put(ENTER)
        if (extra := recorder.extra) is not None:
            extra(BACKWARD_ENTER, args[0] if args else None)
        try:
            return original(*args, **kwargs)
        finally:
            if recorder.owner == owner:  # else another thread trains since then
                put(now_ns())
                put(LEAVE)
                if (extra := recorder.extra) is not None:
                    extra(BACKWARD_LEAVE, args[0] if args else None)

    return replace(original, backward, places)


def _before(recorder: Recorder, args: tuple[Any, ...]) -> None:
    """A mode of ours goes off that would change the gradients. Nothing that fails in here reaches
    the user's loop."""
    from ..dispatch_modes import before_gradients  # most runs never have a mode on

    try:
        before_gradients(args[0] if args else None)
    except Exception as error:
        recorder.trip(error)
