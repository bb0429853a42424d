"""Exceptions that began in the program's own code while ours was running: not ours to keep.

A signal's handler (a watchdog, a timeout) runs wherever the main thread is, also inside a hook, and
what it raises is meant for the program. Told by the frame below ours that was handed our own frame,
as Python hands it to handlers and to trace functions, and by the handlers that are set. One that
another thread has put in (`PyThreadState_SetAsyncExc`) has no frame of its own: then the type has
to be neither of the standard library's nor of torch's. Loaded by its file too: imports none of
ours.
"""

import functools
import os
import signal
import sys
from types import CodeType, FrameType
from typing import Any, Final

PACKAGE: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep
KNOWN: Final = frozenset(("builtins", "torch", "gpuwatch", "_gpuwatch", "probe"))
_VARIADIC: Final = 0x04 | 0x08


def is_users(error: BaseException) -> bool:
    """Whether an error that came through our code is the program's own."""
    handlers = _handlers()
    trace, caller = error.__traceback__, None
    while trace is not None:
        frame = trace.tb_frame
        if caller is not None and (frame.f_code in handlers or _was_handed(frame, caller)):
            return True
        trace, caller = trace.tb_next, frame
    if caller is None or not caller.f_code.co_filename.startswith(PACKAGE):
        return False
    home = type(error).__module__.partition(".")[0]
    return home not in KNOWN and home not in sys.stdlib_module_names


def _was_handed(frame: FrameType, caller: FrameType) -> bool:
    """Whether the frame that called is among the arguments."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bin(code.co_flags & _VARIADIC).count("1")
    values = frame.f_locals
    for name in code.co_varnames[:count]:
        value = values.get(name)
        if value is caller or (type(value) is tuple and any(one is caller for one in value)):
            return True
    return False


def _handlers() -> set[CodeType]:
    found = (_code_of(signal.getsignal(number)) for number in signal.valid_signals())
    return {code for code in found if code is not None}


def _code_of(handler: Any) -> CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not hasattr(function, "__code__"):
        function = vars(type(handler)).get("__call__")
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None
