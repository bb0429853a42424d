"""What a mark costs on this machine, measured: the monitor shows the probe's own cost."""

from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Final

from . import clock
from .wire.marks import BACKWARD_ENTER, BACKWARD_LEAVE, word_of

ENTRIES: Final = 64
CALLS: Final = 50
ROUNDS: Final = 7


class _Owner:
    __slots__ = ("extra", "ident")

    def __init__(self) -> None:
        self.ident = get_ident()
        self.extra: Callable[[int], None] | None = None


def mark_cost_ns() -> int:
    """Nanoseconds for one mark with its share of a hook's wrapper, as `hooks.backward` has it.

    The smallest of several rounds, since other threads hold the interpreter now and then. Takes
    about 0.3 ms, on marks of its own.
    """
    now_ns, owner = clock.now_ns, _Owner()
    put = deque([0] * ENTRIES, maxlen=ENTRIES).append
    words = word_of(BACKWARD_ENTER), word_of(BACKWARD_LEAVE)

    def bare() -> None:
        return None

    def hooked() -> None:
        for word in words:
            if get_ident() == owner.ident:
                put(now_ns())
                put(word)
                if owner.extra is not None:
                    owner.extra(word)
        return bare()

    def spent_ns(call: object) -> int:
        assert callable(call)
        start_ns = clock.now_ns()
        for _ in range(CALLS):
            call()
        return clock.now_ns() - start_ns

    extra = min(spent_ns(hooked) for _ in range(ROUNDS)) - min(
        spent_ns(bare) for _ in range(ROUNDS)
    )
    return max(0, extra) // (2 * CALLS)
