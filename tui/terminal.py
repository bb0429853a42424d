"""The terminal: whether it can show a screen, whether it takes a frame, and giving it back.

Textual restores the terminal after a key, an exception and SIGINT, but not after SIGTERM, SIGHUP
or SIGQUIT, and a program that has lost its terminal spins for ever. Both are handled here.
"""

import os
import select
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Final, Literal

if sys.platform != "win32":
    import termios

CharsetName = Literal["unicode", "console", "ascii"]
"""The console is Linux's own, with some 200 characters of its font."""
ColourCount = Literal["none", "16", "many"]

THEMES: Final = ("dark", "light", "contrast", "terminal")
"""In the order in which `T` goes through them; "terminal": the terminal's own palette."""


@dataclass(frozen=True, slots=True)
class Appearance:
    """How the screen looks, by the options of the commands that open one."""

    theme: str = THEMES[0]
    ascii_only: bool = False
    colour: bool = True
    mouse: bool = False
    """Off, the terminal's own text selection works."""
    frames_s: float | None = None
    """Frames a second; None: 4, or 2 over SSH."""


def after(theme: str) -> str:
    """The next theme, the first after the last."""
    return THEMES[(THEMES.index(theme) + 1) % len(THEMES)]


HARD_DEADLINE_S: Final = 1.5
"""After a signal, the orderly way out may take this long."""

RESET: Final = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1004l\x1b[?2004l\x1b[?2026l"
    b"\x1b[<u\x1b[?7h\x1b[?25h\x1b[?1049l\x1b[0m"
)
"""Mouse, focus, paste and synchronised modes off, keys plain, wrap and cursor on, main screen."""

SIGNALS: Final = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT")
TAKEN_BY_TEXTUAL: Final = ("SIGTSTP", "SIGCONT")
"""Its driver takes and keeps them; after the screen they would be for a loop that is gone."""


class NoScreenError(Exception):
    """There is no terminal that a screen could be drawn on; the plain view works everywhere."""


def why_no_screen(environ: Mapping[str, str] = os.environ) -> str | None:
    """Why a screen cannot be shown here, or None where it can."""
    # Keys come from standard input, and Textual draws on standard error.
    if not (_is_tty(sys.__stdin__) and _is_tty(sys.__stderr__)):
        return "no terminal"
    if environ.get("TERM", "") in ("", "dumb"):
        return "the terminal cannot place text (TERM is dumb or not set)"
    return None


def _is_tty(stream: Any) -> bool:
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:  # closed
        return False


def charset_name(environ: Mapping[str, str] = os.environ) -> CharsetName:
    """What the terminal can show, by what the environment says of it.

    A locale that is not set at all says nothing (most containers): Unicode.
    """
    if environ.get("TERM") == "linux":
        return "console"
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = environ.get(name, "")
        if value:
            return "unicode" if "utf8" in value.lower().replace("-", "") else "ascii"
    return "unicode"


def colour_count(environ: Mapping[str, str] = os.environ) -> ColourCount:
    """Colours to use: none with NO_COLOR, the 16 named ones where no more are announced."""
    if environ.get("NO_COLOR"):
        return "none"
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "many"
    return "many" if "256color" in environ.get("TERM", "") or "WT_SESSION" in environ else "16"


def takes_clipboard(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal may pass text on to the clipboard (OSC 52). It gives no answer, so this
    is by what is known not to: the Linux console, Apple's Terminal, GNU screen."""
    if environ.get("TERM") == "linux" or "STY" in environ:
        return False
    return environ.get("TERM_PROGRAM") != "Apple_Terminal"


# Notices to a person who looks elsewhere. The terminal answers to none of them.

BELL: Final = "\a"
MOST_NOTICE: Final = 160
"""Characters: a desktop shows two lines of a notice."""
_TITLED: Final = ("rxvt", "foot")
"""Terminals that know OSC 777 and not OSC 9, by the beginning of TERM; VTE's too."""


def desktop_notice(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """What makes the terminal show a notice on the desktop: OSC 777 ("notify", title, text) where
    it is known, else OSC 9 (iTerm2, WezTerm, kitty, Ghostty, Windows Terminal).

    tmux hands it on where `allow-passthrough` is on, GNU screen always. Both show a bell, which
    comes along there.
    """
    shown = "".join(char if char.isprintable() and char != ";" else " " for char in text)
    shown = shown[:MOST_NOTICE]
    titled = environ.get("TERM", "").startswith(_TITLED) or "VTE_VERSION" in environ
    sign = f"\x1b]777;notify;gpuwatch;{shown}\a" if titled else f"\x1b]9;{shown}\a"
    if "TMUX" in environ:
        return "\x1bPtmux;" + sign.replace("\x1b", "\x1b\x1b") + "\x1b\\" + BELL
    if "STY" in environ:
        return f"\x1bP{sign}\x1b\\{BELL}"
    return sign


def output_state(fd: int) -> Literal["ready", "full", "gone"]:
    """Whether the terminal takes a frame now. One system call, under a microsecond."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    for _, event in poll.poll(0):
        if event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
            return "gone"
        if event & select.POLLOUT:
            return "ready"
    return "full"


def _nothing_to_leave(code: int) -> bool:
    return False


class TerminalGuard:
    """Gives the terminal back whatever ends the program.

    `leave` asks the screen to end in order; a screen that cannot (its loop is blocked on a terminal
    that nobody reads) is cut off after HARD_DEADLINE_S with the terminal restored by hand.
    """

    def __init__(self) -> None:
        self.leave: Callable[[int], bool] = _nothing_to_leave
        """Called with the exit code; False when there is nothing that could leave."""
        self._code = 1
        self._modes: list[Any] | None = None
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "TerminalGuard":
        if "termios" in sys.modules and sys.__stdin__ is not None and sys.__stdin__.isatty():
            self._modes = termios.tcgetattr(sys.__stdin__.fileno())
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                self._former[number] = signal.signal(number, self._on_signal)
        for name in TAKEN_BY_TEXTUAL:
            number = getattr(signal, name, None)
            if number is not None:
                self._former[number] = signal.getsignal(number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def deadline(self, code: int) -> None:
        """From now on the orderly way out has HARD_DEADLINE_S."""
        self._code = code
        if hasattr(signal, "setitimer"):
            self._former.setdefault(
                signal.SIGALRM, signal.signal(signal.SIGALRM, lambda *_: self.cut_off())
            )
            signal.setitimer(signal.ITIMER_REAL, HARD_DEADLINE_S)

    def cut_off(self) -> None:
        """Restore the terminal by hand and end at once."""
        if self._modes is not None and sys.__stdin__ is not None:
            try:
                termios.tcsetattr(sys.__stdin__.fileno(), termios.TCSANOW, self._modes)
            except (OSError, termios.error):
                pass  # the terminal is gone
        try:
            os.set_blocking(2, False)
            os.write(2, RESET)
            os.set_blocking(2, True)
        except OSError:
            pass
        os._exit(self._code)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.deadline(128 + number)
        if not self.leave(128 + number):
            self.cut_off()
