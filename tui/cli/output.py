"""Results go to standard output, everything else to standard error; and how either can fail."""

import errno
import os
import select
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn, TextIO

PLAIN_WIDTH: Final = 100
"""Where there is no terminal that could say."""
_ASCII: Final = str.maketrans(
    {"·": "-", "→": "->", "←": "<-", "≤": "<=", "≥": ">=", "×": "x", "…": "...", "–": "-"}
    | {"✓": "v", "◆": "*", "▲": "!", "▼": "v", "○": "o", "●": "*", "■": "#", "▸": ">"}
    | {"±": "+-", "°": " "}
)


class CannotWriteError(Exception):
    """Standard output takes no more, and it was not closed on purpose (a full disk)."""


class ReaderClosedError(Exception):
    """Whoever read standard output has left, as `head` does: a normal end."""


def write_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Write and flush, so that a reader sees each line when it is written.

    Raises ReaderClosedError or CannotWriteError.
    """
    out: TextIO | None = sys.stdout if stream is None else stream
    if out is None:
        return  # closed before we began: nobody wants to read
    try:
        for line in lines:
            out.write(_writable(line, out.encoding) + "\n")
        out.flush()
    except BrokenPipeError:
        raise ReaderClosedError from None
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise ReaderClosedError from None
        raise CannotWriteError(os.strerror(error.errno or errno.EIO)) from None


def write_notes(lines: Iterable[str]) -> None:
    """Lines on standard error; lost without a word where nobody takes them."""
    out: TextIO | None = sys.stderr
    if out is None:
        return
    try:
        for line in lines:
            out.write(_writable(line, out.encoding) + "\n")
        out.flush()
    except OSError:
        pass


def discard_output() -> None:
    """Let nothing be flushed at exit into a pipe or a disk that has failed already."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass  # it is no file, or it is closed
    finally:
        os.close(null)


class _TooLate(BaseException):
    """Nobody has taken the lines in time."""


@contextmanager
def limited(limit_s: float) -> Iterator[None]:
    """Write for so long at most; then nothing more is written. On the main thread alone."""

    def interrupt(*_: object) -> NoReturn:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    except _TooLate:
        discard_output()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def discard_if_stalled() -> None:
    """What is left unwritten would hold up our end, where nobody reads it now."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        if not poll.poll(0):
            discard_output()
    except (OSError, ValueError, AttributeError):
        pass  # it is no file, or it is closed


def width() -> int:
    """Columns to write in."""
    return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns


def _writable(line: str, encoding: str | None) -> str:
    """The line in the characters that the stream has.

    Without those that command a terminal: another's process says its own name, and the names of
    its files and phases.
    """
    if not line.isprintable():
        line = "".join(char if char.isprintable() or char in "\n\t" else "?" for char in line)
    try:
        line.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return line.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return line
