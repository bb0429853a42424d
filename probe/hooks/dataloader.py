"""The DataLoader: one class patch sees every iterator of it, those already made included.

`for` calls the type's slot, and assigning `__next__` on the base class updates the slot of all
subclasses (torchdata's and litdata's too). `__init__` and `_reset` tell when a new epoch begins.
A torch without that class has no fetches: steps end with the optimizer, and `probe.wrap` is left.
"""

import functools
import sys
from threading import get_ident
from typing import Any

from ..loaders import LOOK_EVERY, LoaderWatch, look_at, ready_batches
from ..recorder import Recorder
from ..wire.marks import FETCH_END, FETCH_ENTER, FETCH_FAILED, FETCH_LEAVE, ITERATION, LOADER, READY
from . import Detach
from .replaced import replace

MODULE = "torch"


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
    put, number, now_ns, claim = recorder.put, recorder.number, recorder.now_ns, recorder.claim
    known, queued, trip = watch.known, watch.queued, recorder.trip

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        if recorder.resting:
            return original(self)
        if get_ident() != recorder.owner and not claim(FETCH_ENTER):
            return original(self)
        entered, owner = 0, recorder.owner
        try:
            iterator = id(self)
            if iterator not in known:
                recorder.mark(LOADER, self, watch.describe)
            if recorder.watched and iterator in queued:
                recorder.mark(READY, self, ready_batches)
            entered = number()
            put((entered, FETCH_ENTER, now_ns(), iterator))
            if (stamp := recorder.stamp) is not None:
                stamp(entered, FETCH_ENTER)
        except Exception as error:
            trip(error)
        try:
            batch = original(self)
        except StopIteration:
            recorder.mark(FETCH_END)
            raise
        except BaseException:
            recorder.mark(FETCH_FAILED)
            raise
        try:
            if recorder.owner != owner:
                return batch  # another thread trains since then
            if entered % LOOK_EVERY:
                put((n := number(), FETCH_LEAVE, now_ns(), None))
                if (stamp := recorder.stamp) is not None:
                    stamp(n, FETCH_LEAVE)
            else:
                recorder.mark(FETCH_LEAVE, batch, look_at)
        except Exception as error:
            trip(error)
        return batch

    return replace(original, __next__, [(base, "__next__")])


def _patch_start(recorder: Recorder, watch: LoaderWatch, base: Any, name: str) -> Detach:
    original = getattr(base, name)
    mark, trip = recorder.mark, recorder.trip

    @functools.wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.on:
            try:
                mark(ITERATION, watch.restarted(self))  # also while the hooks rest
            except Exception as error:
                trip(error)
        return original(self, *args, **kwargs)

    return replace(original, start, [(base, name)])
