"""DistributedDataParallel: weak references to its instances, which time their own exchange."""

import functools
import os
import sys
import weakref
from typing import Any

from ..recorder import Recorder
from . import Detach, replace

MODULE = "torch.nn.parallel.distributed"


def attach(recorder: Recorder) -> Detach:
    """Hook its constructor; nothing where it does not log."""
    if os.environ.get("WORLD_SIZE", "1") != "1":
        # While a run hangs nobody can load it: the training thread stands in a collective.
        from .. import collectives

        assert collectives.LOADED
    wrapper: Any = getattr(sys.modules[MODULE], "DistributedDataParallel", None)
    if not hasattr(wrapper, "_get_ddp_logging_data"):
        return lambda: ()
    original: Any = wrapper.__init__
    parallel = recorder.parallel

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if recorder.on:
            parallel.append(weakref.ref(self))

    return replace(original, __init__, [(wrapper, "__init__")])
