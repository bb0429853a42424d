"""Backward: the private function that every backward of torch ends in.

`Tensor.backward`, `torch.autograd.backward`, DDP, FSDP2 and AOTAutograd all call
`_engine_run_backward`, a name held by two modules; torch itself restores the one over the other,
so both are replaced. `autograd.grad` comes through as well, with accumulate_grad false: compiling
traces its joint graph that way, which is no backward of the user's.
"""

import functools
import sys
from threading import get_ident
from typing import Any

from ..recorder import Recorder
from ..wire.marks import BACKWARD_ENTER, BACKWARD_LEAVE
from . import Detach
from .replaced import replace

MODULE = "torch"


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
    put, number, now_ns, claim = recorder.put, recorder.number, recorder.now_ns, recorder.claim
    trip = recorder.trip

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if recorder.resting or not (always or kwargs.get("accumulate_grad")):
            return original(*args, **kwargs)
        if get_ident() != recorder.owner and not claim(BACKWARD_ENTER):
            return original(*args, **kwargs)
        owner = recorder.owner
        try:
            put((n := number(), BACKWARD_ENTER, now_ns(), None))
            if (stamp := recorder.stamp) is not None:
                stamp(n, BACKWARD_ENTER)
            if (glance := recorder.glance) is not None and args:
                glance(BACKWARD_ENTER, args[0])
        except Exception as error:
            trip(error)
        try:
            return original(*args, **kwargs)
        finally:
            try:
                if recorder.owner == owner:  # else another thread trains since then
                    put((n := number(), BACKWARD_LEAVE, now_ns(), None))
                    if (stamp := recorder.stamp) is not None:
                        stamp(n, BACKWARD_LEAVE)
            except Exception as error:
                trip(error)

    return replace(original, backward, places)
