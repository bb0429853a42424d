"""What has one switch in a process is the program's first: where it uses that while ours is on,
ours goes off before, and it is as if ours had never been on.
"""

import _tracemalloc
import functools
import tracemalloc
from collections.abc import Callable
from typing import Any

PutBack = Callable[[], None]


def give_way_before(owner: Any, name: str, give_way: Callable[[], object]) -> PutBack:
    """Have `give_way` called before each call of this function, until it is put back."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        give_way()
        return original(*args, **kwargs)

    return _replace(owner, name, called)


def _replace(owner: Any, name: str, ours: Callable[..., Any]) -> PutBack:
    original = getattr(owner, name)
    setattr(owner, name, ours)

    def put_back() -> None:
        if getattr(owner, name) is ours:  # else somebody has patched it since, and calls ours
            setattr(owner, name, original)

    return put_back


class PythonTraces:
    """tracemalloc for us. The program is told that it does not trace; where it starts or stops it,
    `give_way` is called before, and has to call `stop`."""

    def __init__(self, give_way: Callable[[], object]) -> None:
        self._give_way = give_way
        self._is_on = False
        self._put_back: list[PutBack] = []

    def start(self, frames: int) -> None:
        """Trace from now on."""
        self._is_on = True
        self._put_back.append(give_way_before(tracemalloc, "start", self._give_way))
        self._put_back.append(give_way_before(tracemalloc, "stop", self._give_way))
        self._put_back.append(self._hide())
        _tracemalloc.start(frames)

    def stop(self) -> None:
        """Trace no more, and stand before nothing."""
        self._is_on = False
        for put_back in self._put_back:
            put_back()
        _tracemalloc.stop()

    def _hide(self) -> PutBack:
        original = tracemalloc.is_tracing

        @functools.wraps(original)
        def is_tracing() -> bool:
            return not self._is_on and original()

        return _replace(tracemalloc, "is_tracing", is_tracing)
