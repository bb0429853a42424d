"""What a mark costs on this machine, measured: the monitor shows the probe's own cost."""

from typing import Final

from . import clock
from .recorder import Recorder
from .wire.marks import BACKWARD_ENTER, BACKWARD_LEAVE

CALLS: Final = 50
ROUNDS: Final = 7


def mark_cost_ns() -> int:
    """Nanoseconds for one mark with its share of a hook's wrapper.

    The smallest of several rounds, since other threads hold the interpreter now and then. Takes
    about 0.3 ms, on a recorder of its own.
    """
    recorder = Recorder(arm=lambda _: True, trip=lambda _: None)
    mark = recorder.mark

    def bare() -> None:
        return None

    def hooked() -> None:
        if not recorder.on:
            return bare()
        mark(BACKWARD_ENTER)
        try:
            return bare()
        finally:
            mark(BACKWARD_LEAVE)

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
