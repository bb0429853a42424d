"""Our terminal while the program has it: keys go to the program, and so do signals."""

import os
import select
import signal
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from tui.launching.own_terminal import OwnTerminal

LOOK_S: Final = 0.1
KEYS_BYTES: Final = 4096
PASSED_ON: Final = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")


@contextmanager
def signals_passed_on(program: OwnTerminal) -> Iterator[None]:
    """Signals for us reach the program; those that we were started to ignore stay ignored."""

    def pass_on(number: int, _: FrameType | None) -> None:
        if program.exit_status is None:
            program.signal(number)

    former = {}
    for name in PASSED_ON:
        number = getattr(signal, name)
        if signal.getsignal(number) != signal.SIG_IGN:
            former[number] = signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def relay(program: OwnTerminal, over: Callable[[], bool]) -> None:
    """Give the program our terminal until it has ended, or `over` says so."""
    program.match_size()
    former = signal.signal(signal.SIGWINCH, lambda *_: program.match_size())
    modes = termios.tcgetattr(0)
    _take_keys()
    try:
        while program.exit_status is None and not over():
            ready, _, _ = select.select([0], [], [], LOOK_S)
            if ready and not _pass_keys(program, modes):
                break
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, modes)
        signal.signal(signal.SIGWINCH, former)


def _pass_keys(program: OwnTerminal, modes: "list[int | list[bytes | int]]") -> bool:
    """What was typed goes to the program; False when there is nobody who could type any more."""
    try:
        keys = os.read(0, KEYS_BYTES)
    except OSError:
        return False
    if not keys:
        return False
    if program.suspends_at(keys):
        _suspend(program, modes)
    else:
        program.type(keys)
    return True


def _suspend(program: OwnTerminal, modes: "list[int | list[bytes | int]]") -> None:
    """Stop the program and then ourselves, for the shell to see; both go on together.

    The program's own terminal cannot do it: no shell is there to wake it up again.
    """
    program.signal_group(signal.SIGSTOP)
    termios.tcsetattr(0, termios.TCSADRAIN, modes)
    os.killpg(0, signal.SIGTSTP)
    _take_keys()
    program.signal_group(signal.SIGCONT)


def _take_keys() -> None:
    """Every key as it is; what was typed ahead is not lost."""
    tty.setraw(0, termios.TCSADRAIN)
