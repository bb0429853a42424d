"""Checkpoints: the two private functions of torch that every `torch.save` ends in.

`torch.save` itself stays the object that it was: a script may have bound it before `install()`, and
a function that is no longer found under its own name cannot be pickled. Without the private names
it is replaced after all.
"""

import functools
import sys
from types import TracebackType
from typing import Any

from ..recorder import Recorder
from ..wire.marks import CHECKPOINT_ENTER, CHECKPOINT_LEAVE
from . import Detach, replace

MODULE = "torch"


def attach(recorder: Recorder) -> Detach:
    """Hook saving, in both of its formats."""
    torch: Any = sys.modules["torch"]
    module: Any = sys.modules["torch.serialization"]
    opener, older = (vars(module).get(name) for name in ("_open_zipfile_writer", "_legacy_save"))
    if opener is None or older is None:
        places = [(torch, "save"), (module, "save")]
        return replace(module.save, _timed(recorder, module.save), places)
    undo = (
        replace(opener, _opening(recorder, opener), [(module, "_open_zipfile_writer")]),
        replace(older, _timed(recorder, older), [(module, "_legacy_save")]),
    )
    return lambda: sum((one() for one in undo), ())


def _timed(recorder: Recorder, original: Any) -> Any:
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

    return save


def _opening(recorder: Recorder, original: Any) -> Any:
    """The file is opened, written and closed with what this returns."""
    mark = recorder.mark

    @functools.wraps(original)
    def _open_zipfile_writer(*args: Any, **kwargs: Any) -> Any:
        if not recorder.on:
            return original(*args, **kwargs)
        mark(CHECKPOINT_ENTER)
        try:
            return _Opened(original(*args, **kwargs), recorder)
        except BaseException:
            mark(CHECKPOINT_LEAVE)
            raise

    return _open_zipfile_writer


class _Opened:
    """torch's context around the writing of a file, which ends a checkpoint where it ends."""

    __slots__ = ("_opener", "_recorder")

    def __init__(self, opener: Any, recorder: Recorder) -> None:
        self._opener = opener
        self._recorder = recorder

    def __enter__(self) -> Any:
        return self._opener.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Any:
        try:
            return self._opener.__exit__(kind, error, trace)
        finally:
            self._recorder.mark(CHECKPOINT_LEAVE)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opener, name)
