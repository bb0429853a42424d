"""`probe.wrap`: the fetches of an iterable that is not a DataLoader."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from .loaders import Description, look_at
from .recorder import Recorder
from .wire.marks import FETCH_END, FETCH_ENTER, FETCH_FAILED, FETCH_LEAVE, ITERATION, LOADER

T = TypeVar("T")


class Wrapped(Generic[T]):
    """Stands in for an iterable or iterator: same items, same length, same attributes."""

    def __init__(self, inner: Iterable[T], recorder: Callable[[], Recorder | None]) -> None:
        self._inner = inner
        self._recorder = recorder
        self._iterator: Iterator[T] | None = None
        self._described = False

    def __iter__(self) -> "Wrapped[T]":
        begun = Wrapped(self._inner, self._recorder)
        recorder = self._recorder()
        if recorder is not None and recorder.on:
            recorder.mark(ITERATION, detail=id(begun))
        begun._iterator = iter(self._inner)
        return begun

    def __next__(self) -> T:
        if self._iterator is None:
            self._iterator = iter(self._inner)
        recorder = self._recorder()
        if recorder is None or not recorder.on:
            return next(self._iterator)
        if not self._described:
            self._described = True
            recorder.mark(LOADER, self, id(self), _describe)
            recorder.look_with(look_at)
        recorder.mark(FETCH_ENTER, detail=id(self))
        try:
            batch = next(self._iterator)
        except StopIteration:
            recorder.mark(FETCH_END)
            raise
        except BaseException:
            recorder.mark(FETCH_FAILED)
            raise
        recorder.mark(FETCH_LEAVE, batch)
        return batch

    def __len__(self) -> int:
        return len(self._inner)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":
            raise AttributeError(name)  # being unpickled: there is nothing to ask yet
        return getattr(self._inner, name)


def _describe(wrapped: Wrapped[Any]) -> Description:
    """All that can be known of a foreign pipeline: that it is one."""
    inner = wrapped._inner
    try:
        batches: int | None = len(inner)  # type: ignore[arg-type]
    except Exception:
        batches = None  # it is the user's, and need not have one
    name = type(inner).__name__
    row = (id(inner), "wrap", None, None, False, False, None, batches, (), name)
    torch = sys.modules.get("torch")
    return row, torch is None or bool(torch.is_grad_enabled())
