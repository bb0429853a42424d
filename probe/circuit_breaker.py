"""The circuit breaker: what fails inside the probe ends the watching, never the training.

Exceptions that began in the program's own code while ours was running are not ours to keep. A
signal's handler (a watchdog, a timeout) runs wherever the main thread is, also inside a hook, and
what it raises is the program's. Recognised by the frame below ours that was handed our own frame,
as Python hands it to handlers and to trace functions, and by the handlers that are set. One that
another thread has put in (`PyThreadState_SetAsyncExc`) has no frame of its own: then the type has
to be neither of the standard library's nor of torch's.

Loaded by its file too: imports none of ours.
"""

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any, Final

PACKAGE: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep
KNOWN: Final = frozenset(("builtins", "torch", "gpuwatch", "_gpuwatch", "probe"))
_VARIADIC: Final = 0x04 | 0x08
MOST_TEXT: Final = 300
"""Characters of an error's text: it goes onto one line, and onto the state page."""


class CircuitBreaker:
    """Trips once and stays open. As a context manager it swallows what fails inside and trips.

    The hot path calls `trip` from its own handler (a context manager costs 0.2 us).
    """

    def __init__(self, on_trip: Callable[[], None]) -> None:
        self._on_trip = on_trip
        self.fault: str | None = None
        """Why the probe is disarmed; None while it is whole."""

    def trip(self, error: BaseException) -> None:
        """Disarm the probe, and write so on one line of stderr: only the first time.

        Raises what the program's own code raised while ours was running, whether disarmed or not.
        """
        if is_users(error):
            raise error
        if self.fault is not None:
            return
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {encodable(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        self.fault = f"{type(error).__name__}: {_text(error)}{place}"
        for report in (self._on_trip, self._print_fault):
            try:
                report()
            except Exception as failure:
                if is_users(failure):
                    raise
                # stderr is closed, its disk full, or what stands there is the user's own

    def _print_fault(self) -> None:
        if sys.stderr is not None:
            line = f"gpuwatch: the probe stopped watching ({self.fault}); the run goes on.\n"
            sys.stderr.write(line)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or is_users(error):
            return False  # KeyboardInterrupt and SystemExit are the user's
        self.trip(error)
        return True


def _text(error: BaseException) -> str:
    """An error's text, on one line; a class of the user's may fail at that as well."""
    try:
        return encodable(" ".join(str(error).split())[:MOST_TEXT])
    except Exception as failure:
        if is_by_handler(failure):
            raise
        return "it cannot say why"


def encodable(text: str) -> str:
    """A text of the user's as UTF-8 can hold it on the wire, with a question mark for what is none:
    a file's name may hold any bytes."""
    return text.encode("utf-8", "replace").decode()


def is_users(error: BaseException) -> bool:
    """Whether an error that came through our code is the program's own."""
    is_by_handler, innermost = _raised_by(error)
    if is_by_handler:
        return True
    if innermost is None or not innermost.f_code.co_filename.startswith(PACKAGE):
        return False
    home = type(error).__module__.partition(".")[0]
    return home not in KNOWN and home not in sys.stdlib_module_names


def is_by_handler(error: BaseException) -> bool:
    """Whether a handler or a trace function has raised it: `is_users` for where we call an object
    of the program's, which may be written in C. What that raises, of a type of its own, has no
    frame either."""
    return _raised_by(error)[0]


def _raised_by(error: BaseException) -> tuple[bool, FrameType | None]:
    """Whether a handler did; and the innermost frame otherwise."""
    handlers = _handlers()
    trace, caller = error.__traceback__, None
    while trace is not None:
        frame = trace.tb_frame
        if caller is not None and (frame.f_code in handlers or _was_handed(frame, caller)):
            return True, None
        trace, caller = trace.tb_next, frame
    return False, caller


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
