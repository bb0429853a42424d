"""torch.compile: dynamo's callbacks around each compilation, once somebody has imported it.

`torch.compiler.reset()`, between the trials of a search or two cells of a notebook, drops them all:
ours are registered anew behind it.
"""

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from ..recorder import Recorder
from ..wire.marks import COMPILE_ENTER, COMPILE_LEAVE
from . import Detach, replace

MODULE = "torch._dynamo.callback"
NEEDED: Final = (
    "register_start_callback",
    "register_end_callback",
    "remove_start_callback",
    "remove_end_callback",
)


def attach(recorder: Recorder) -> Detach:
    """Register with the callback handler; a torch without it has no compile phase, whose time is
    then forward's."""
    handler: Any = getattr(sys.modules[MODULE], "callback_handler", None)
    if not all(hasattr(handler, name) for name in NEEDED):
        return lambda: ()
    mark = recorder.mark

    def started(*_: Any) -> None:
        if recorder.on:
            mark(COMPILE_ENTER)

    def ended(*_: Any) -> None:
        if recorder.on:
            mark(COMPILE_LEAVE)

    def register() -> None:
        handler.register_start_callback(started)
        handler.register_end_callback(ended)

    def remove() -> None:
        with suppress(ValueError):  # where `clear` is another's, a reset has dropped them
            handler.remove_start_callback(started)
        with suppress(ValueError):
            handler.remove_end_callback(ended)

    register()
    put_back = _register_behind_clear(handler, recorder, register)

    def detach() -> tuple[str, ...]:
        left = put_back()
        remove()
        return left

    return detach


def _register_behind_clear(
    handler: Any, recorder: Recorder, register: Callable[[], None]
) -> Detach:
    cls = type(handler)
    original = vars(cls).get("clear")
    if original is None:
        return lambda: ()

    @functools.wraps(original)
    def clear(self: Any) -> None:
        try:
            original(self)
        finally:  # it clears, and raises then where something is being compiled
            if self is handler and recorder.on:
                register()

    return replace(original, clear, [(cls, "clear")])
