"""What torch and its device are doing at this moment, before something is switched on in them."""

import sys
from typing import Any, Final

from ..all_objects import all_of

TORN_DOWN_FROM: Final = (12, 6)
"""CUDA's version: before, kineto cannot come back after a teardown under CUDA graphs."""


def used_cuda() -> Any:
    """`torch.cuda` where the program uses a device; else None."""
    cuda: Any = sys.modules.get("torch.cuda")
    return cuda if cuda is not None and cuda.is_initialized() and cuda.is_available() else None


def is_capturing() -> bool:
    """Whether a graph is captured on the current stream."""
    cuda = used_cuda()
    return cuda is not None and bool(cuda.is_current_stream_capturing())


def why_not_now() -> str:
    """Why no recording can begin; "" where one can. Asked on the training thread: kineto has one
    recording at a time, and a second takes the first one's place without a word."""
    autograd: Any = sys.modules["torch.autograd"]
    profiler: Any = sys.modules["torch.autograd.profiler"]
    if autograd._profiler_enabled() or getattr(profiler, "_is_profiler_enabled", False):
        return "another profiler records in this process"
    if _is_prepared():
        return "a profiler of the program's own is about to record"
    return ""


def _is_prepared() -> bool:
    """One that is warming up has prepared kineto, and crashes where we record in between. It is
    asked for among all objects, and only where there is one at all."""
    autograd: Any = sys.modules["torch.autograd.profiler"]
    tracker = getattr(autograd, "KinetoStepTracker", None)
    module: Any = sys.modules.get("torch.profiler.profiler")
    if module is None or "ProfilerStep" not in getattr(tracker, "_step_dict", ()):
        return False
    kind, warming = module.profile, module.ProfilerAction.WARMUP
    found = all_of(_with_subclasses(kind))
    return any(getattr(one, "current_action", None) is warming for one in found)


def _with_subclasses(kind: Any) -> list[Any]:
    found = [kind]
    for one in type.__subclasses__(kind):
        found += _with_subclasses(one)
    return found


def may_tear_down() -> bool:
    """Whether CUPTI comes back after a teardown."""
    torch: Any = sys.modules["torch"]
    version = getattr(torch.version, "cuda", None)
    if version is None or used_cuda() is None:
        return False
    return tuple(int(part) for part in version.split(".")[:2]) >= TORN_DOWN_FROM
