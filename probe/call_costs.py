"""What a hook of ours takes where it is called, and what PyTorch's wrapper around an update takes.

Both are code that runs once a step, between kernels that have taken the core's caches. Called in a
row the two marks of a hook take 0.25 us, and the wrapper's `record_function` 5; behind the backward
of steps of 0.4 ms they take 2 and 17 us, of steps of 1.3 ms 4 and 39 (two cores). So both are timed
there, behind a backward, in a few steps a second while somebody watches.

The wrapper is `Optimizer.profile_hook_step`, which is around every optimizer's step. It calls the
hooks of an update, and so makes our marks, within a `record_function`: that one lies between the
phases of each step, where the user's own Python lies too, and no user can mend it. It is 0.75 to
0.85 of what the wrapper takes there, so what is reported is the least.
"""

import sys
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final

from .figures import PATIENCE
from .loaders import is_dispatched, past_overrides
from .recorder import Recorder
from .wire import marks

IN_A_ROW: Final = 4
"""Steps that are timed. The first is left out: what was not called for a second is colder than what
is called in each step."""
HELD: Final = 5 * (IN_A_ROW - 1)
"""Of which the medians are reported: a core's other work falls into single ones."""
ENTRIES: Final = 64
NAME: Final = "gpuwatch"
MARKS_OF_A_HOOK: Final = 2

Wrapped = tuple[int, int]
"""ns before an update's hooks, and behind them."""


class CallCosts:
    """Made by the training thread, whose are all methods but `ask` and `reading`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._left = IN_A_ROW
        """Steps that are still to be timed."""
        self._unlearnt = 0
        """Fetches since the last backward."""
        self._hooks: deque[int] = deque(maxlen=HELD)
        self._wrappers: deque[Wrapped] = deque(maxlen=HELD)
        self._hooked = _like_a_hook(recorder)

    def ask(self) -> None:
        """Time the next steps. Called by the publisher."""
        if self._recorder.on and not self._left:
            self._left = IN_A_ROW
            self._recorder.time_with(self.at)

    def reading(self) -> tuple[int | None, Wrapped | None]:
        """ns of one mark, and of the wrapper; None for what was not timed. For the publisher."""
        hook_ns = _median(list(self._hooks))
        wrappers = list(self._wrappers)
        before_ns, behind_ns = (_median([one[side] for one in wrappers]) for side in (0, 1))
        return (
            None if hook_ns is None else hook_ns // MARKS_OF_A_HOOK,
            None if before_ns is None or behind_ns is None else (before_ns, behind_ns),
        )

    def at(self, kind: int) -> None:
        """Behind a mark of this kind. Where no backward comes fetches stand for them."""
        self._unlearnt = 0 if kind == marks.BACKWARD_LEAVE else self._unlearnt
        if kind == marks.FETCH_LEAVE:
            self._unlearnt += 1
        if kind != (marks.FETCH_LEAVE if self._unlearnt > PATIENCE else marks.BACKWARD_LEAVE):
            return
        now_ns = self._recorder.now_ns
        began_ns = now_ns()
        self._hooked(kind, kind=kind)
        hook_ns = now_ns() - began_ns
        wrapper_ns = self._wrapper_ns() if kind == marks.BACKWARD_LEAVE else None
        self._left -= 1
        if self._left < IN_A_ROW - 1:
            self._hooks.append(hook_ns)
            if wrapper_ns is not None:
                self._wrappers.append(wrapper_ns)
        if not self._left:
            self._recorder.time_with(None)

    def _wrapper_ns(self) -> Wrapped | None:
        """None where a profiler of the program's would show it, where a mode of its own would be
        called, and where the name stands for something else."""
        torch: Any = sys.modules["torch"]
        profiler: Any = sys.modules.get("torch.autograd.profiler")
        called: Any = getattr(profiler, "record_function", None)
        records: Any = getattr(torch.autograd, "_profiler_enabled", None)
        is_torchs = isinstance(called, type) and called.__module__ == profiler.__name__
        if not is_torchs or records is None or records() or is_dispatched(torch):
            return None
        return past_overrides(torch, self._timed, called)

    def _timed(self, record_function: Any) -> Wrapped:
        now_ns = self._recorder.now_ns
        began_ns = now_ns()
        with record_function(NAME):
            within_ns = now_ns()
        return within_ns - began_ns, now_ns() - within_ns


def _like_a_hook(recorder: Recorder) -> Callable[..., None]:
    """What `hooks.backward` puts around a function, with marks that nobody reads."""
    now_ns, put = recorder.now_ns, deque([0] * ENTRIES, maxlen=ENTRIES).append
    enter, leave = marks.word_of(marks.BACKWARD_ENTER), marks.word_of(marks.BACKWARD_LEAVE)

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    def hooked(*args: Any, **kwargs: Any) -> None:
        if get_ident() != recorder.owner:
            return nothing(*args, **kwargs)
        owner = recorder.owner
        put(now_ns())
        put(enter)
        try:
            return nothing(*args, **kwargs)
        finally:
            if recorder.owner == owner:
                put(now_ns())
                put(leave)

    return hooked


def _median(figures: list[int]) -> int | None:
    return sorted(figures)[len(figures) // 2] if figures else None
