"""What a request has switched on in the process (a profiler, a mode that counts, a tracer of
allocations), and how it goes off whatever becomes of the loop that was to switch it off.

PyTorch keeps a profiler and a mode for one thread, which alone can end them. Left on, a profiler
records every operator (180 MB a second in a loop of small ones), also in a fork's child, and takes
the process down with a segmentation fault when its thread ends. So each goes off, on its own
thread, when the probe leaves or is disarmed; when the thread ends; in a fork's child; and, where
the loop puts no more marks, when its time is over: the main thread is asked then, by a pending call
of the interpreter's, another thread at its next mark.
"""

import ctypes
import threading
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final

from .circuit_breaker import is_users

_on: "list[Switched]" = []
_threads: Final = threading.local()


class Switched:
    """Something that is on, from now. Made on the thread that switches it on."""

    def __init__(
        self,
        off: Callable[[], object],
        until_ns: int,
        in_child: Callable[[], object] | None = None,
        anywhere: bool = False,
    ) -> None:
        """`off` switches it off; False: it cannot yet. `until_ns` (perf_counter_ns) is when it has
        to be off at the latest; `in_child` does the same in a fork's child, `off` if not given.
        `anywhere`: any thread can."""
        self._off = off
        self._in_child = in_child or off
        self.until_ns = until_ns
        self.anywhere = anywhere
        self.ident = get_ident()
        _on.append(self)
        if not (anywhere or hasattr(_threads, "end")):
            _threads.end = _ThreadEnd()

    @property
    def is_mine(self) -> bool:
        """This thread switched it on: another may have taken the timeline over since then, and can
        neither end it nor count for it."""
        return self.ident == get_ident()

    def done(self) -> None:
        """It is off."""
        if self in _on:
            _on.remove(self)

    def off(self) -> None:
        """Switch it off, once. What fails at that is PyTorch's: it was the last try."""
        if self not in _on:
            return
        _on.remove(self)
        if _tried(self._off) is False:
            _on.append(self)

    def off_in_child(self) -> None:
        """In a fork's child, which has of the parent's threads only the one that forked."""
        if self.anywhere or self.ident == get_ident():
            _tried(self._in_child)


def _tried(off: Callable[[], object]) -> object:
    try:
        return off()
    except Exception as error:
        if is_users(error):
            raise
        return None


class _ThreadEnd:
    """Held by a thread alone, so that it goes as that ends."""

    def __del__(self) -> None:
        if _on:  # None as the interpreter goes
            mine_off()


def any_on() -> bool:
    """Something is on, on whatever thread."""
    return bool(_on)


def mine_off() -> None:
    """What this thread can switch off."""
    ident = get_ident()
    for one in list(_on):
        if one.anywhere or one.ident == ident:
            one.off()


def all_off() -> None:
    """The probe leaves, or is disarmed: what this thread cannot switch off, the main thread may."""
    mine_off()
    if _on:
        ask_main_thread()


def overdue_off(now_ns: int) -> None:
    """What should be off by now. On the publisher's thread."""
    for one in list(_on):
        if now_ns > one.until_ns:
            if one.anywhere:
                one.off()
            else:
                ask_main_thread()


def after_fork() -> None:
    """In the child."""
    switched = list(_on)
    _on.clear()
    for one in switched:
        one.off_in_child()


def ask_main_thread() -> None:
    """Have the main thread switch off what is its own, between two of its bytecodes."""
    if any(one.ident == threading.main_thread().ident for one in _on):
        ctypes.pythonapi.Py_AddPendingCall(_call, None)


def _called(_: Any) -> int:
    """ctypes swallows what is raised in here; what the program's own signal handlers raise
    meanwhile is raised again once this has returned."""
    try:
        mine_off()
    except BaseException as error:
        main = ctypes.c_ulong(get_ident())
        ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(type(error)))
    return 0


_call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_called)

LOADED: Final = True
"""The last line: after a fork the module is used once it is whole."""
