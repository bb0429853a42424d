"""Accelerate's dispatcher: the first rank fetches for all, and the others wait for its broadcast.

They make an iterator and never fetch from it, so that their wait would be taken for forward.
"""

import functools
import sys
from typing import Any

from ..recorder import Recorder
from ..wire.marks import FETCH_END, FETCH_ENTER, FETCH_FAILED, FETCH_LEAVE
from . import Detach, replace

MODULE = "accelerate.data_loader"


def attach(recorder: Recorder) -> Detach:
    """Hook the method that gets the batches of all ranks; nothing where there is none of it."""
    dispatcher: Any = getattr(sys.modules[MODULE], "DataLoaderDispatcher", None)
    original: Any = getattr(dispatcher, "_fetch_batches", None)
    if original is None:
        return lambda: ()
    mark = recorder.mark

    @functools.wraps(original)
    def _fetch_batches(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.on or getattr(self.state, "process_index", 0) == 0:
            return original(self, *args, **kwargs)
        mark(FETCH_ENTER, detail=id(self))
        try:
            batches = original(self, *args, **kwargs)
        except BaseException:
            mark(FETCH_FAILED)
            raise
        mark(FETCH_END if getattr(self, "_stop_iteration", False) else FETCH_LEAVE)
        return batches

    return replace(original, _fetch_batches, [(dispatcher, "_fetch_batches")])
