"""SIGTERM and SIGHUP end a command like ctrl-c does: its last line is written all the same."""

import signal
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def end_on_signals() -> None:
    """From now on these signals raise Interrupted in the main thread."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _raise)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """As a shell reports a program that a signal ended."""
    number = interrupt.number if isinstance(interrupt, Interrupted) else signal.SIGINT
    return 128 + number


def _raise(number: int, _: FrameType | None) -> None:
    raise Interrupted(number)
