"""Checkpoints: `torch.save`, under both names that hold it.

A script that said `from torch import save` before `install()` keeps the bare one; its stalls are
then named by stacks instead.
"""

import functools
import sys
from typing import Any

from ..recorder import Recorder
from ..wire.marks import CHECKPOINT_ENTER, CHECKPOINT_LEAVE
from . import Detach
from .replaced import replace

MODULE = "torch"


def attach(recorder: Recorder) -> Detach:
    """Hook `torch.save`."""
    torch: Any = sys.modules["torch"]
    serialization: Any = sys.modules["torch.serialization"]
    original = serialization.save
    mark = recorder.mark

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        if not recorder.on:
            return original(*args, **kwargs)
        mark(CHECKPOINT_ENTER)
        try:
            return original(*args, **kwargs)
        finally:
            mark(CHECKPOINT_LEAVE)

    return replace(original, save, [(torch, "save"), (serialization, "save")])
