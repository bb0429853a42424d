"""torch.compile: dynamo's callbacks around each compilation, once somebody has imported it."""

import sys
from contextlib import suppress
from typing import Any, Final

from ..recorder import Recorder
from ..wire.marks import COMPILE_ENTER, COMPILE_LEAVE
from . import Detach

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

    handler.register_start_callback(started)
    handler.register_end_callback(ended)

    def detach() -> tuple[str, ...]:
        with suppress(ValueError):  # `torch._dynamo.reset()` drops all callbacks
            handler.remove_start_callback(started)
        with suppress(ValueError):
            handler.remove_end_callback(ended)
        return ()

    return detach
