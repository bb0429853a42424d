"""The DataLoader: one class patch sees every iterator of it, those already made included.

`for` calls the type's slot, and assigning `__next__` on the base class updates the slot of all
subclasses (torchdata's and litdata's too). `__init__` and `_reset` show when a new epoch begins.
A torch without that class has no fetches: steps end with the optimizer, and `probe.wrap` is left.
"""

import functools
import sys
from threading import get_ident
from typing import Any, Final

from ..loaders import LoaderWatch, look_at, ready_batches
from ..recorder import Recorder
from ..wire.marks import (
    FETCH_END,
    FETCH_ENTER,
    FETCH_FAILED,
    FETCH_LEAVE,
    ITERATION,
    LOADER,
    NO_DETAIL,
    READY,
    word_of,
)
from . import Detach, replace

MODULE = "torch"
LEAVE: Final = word_of(FETCH_LEAVE)


def attach(recorder: Recorder) -> Detach:
    """Patch `_BaseDataLoaderIter`; one that cannot be reset is only ever made."""
    base: Any = getattr(sys.modules["torch.utils.data.dataloader"], "_BaseDataLoaderIter", None)
    if base is None:
        return lambda: ()
    watch = LoaderWatch()
    starts = [name for name in ("__init__", "_reset") if name in vars(base)]
    undo = (
        _patch_next(recorder, watch, base),
        *(_patch_start(recorder, watch, base, name) for name in starts),
    )
    return lambda: sum((one() for one in undo), ())


def _patch_next(recorder: Recorder, watch: LoaderWatch, base: Any) -> Detach:
    original = base.__next__
    put, now_ns, claim, mark = recorder.put, recorder.now_ns, recorder.claim, recorder.mark
    known, queued = watch.known, watch.queued

    def describe(iterator: Any) -> int:
        """Before the first fetch of an iterator."""
        mark(LOADER, iterator, id(iterator), watch.describe)
        recorder.look_with(look_at)
        return word_of(FETCH_ENTER, id(iterator))

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if get_ident() != recorder.owner and not claim(FETCH_ENTER):
            return original(self)
        owner = recorder.owner
        word = known.get(id(self)) or describe(self)
        if queued and recorder.watched and id(self) in queued:
            mark(READY, self, NO_DETAIL, ready_batches)
        put(now_ns())
        put(word)
        if (extra := recorder.extra) is not None:
            extra(FETCH_ENTER, None)
        try:
            batch = original(self)
        except StopIteration:
            mark(FETCH_END)
            raise
        except BaseException:
            mark(FETCH_FAILED)
            raise
        if recorder.owner == owner:  # else another thread trains since then
            put(now_ns())
            put(LEAVE)
            if (extra := recorder.extra) is not None:
                extra(FETCH_LEAVE, batch)
        return batch

    return replace(original, __next__, [(base, "__next__")])


def _patch_start(recorder: Recorder, watch: LoaderWatch, base: Any, name: str) -> Detach:
    original = getattr(base, name)
    mark, trip = recorder.mark, recorder.trip

    @functools.wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.on:
            try:
                mark(ITERATION, detail=watch.restarted(self))
            except Exception as error:
                trip(error)
        return original(self, *args, **kwargs)

    return replace(original, start, [(base, name)])
