"""Output that is kept while the screen has the terminal."""

import os

from gpuwatch.tui.launch.pty import HeldOutput


def written(reader: int) -> bytes:
    os.set_blocking(reader, False)
    try:
        return os.read(reader, 1 << 20)
    except BlockingIOError:
        return b""


def test_it_is_shown_kept_and_shown_again_in_order() -> None:
    reader, writer = os.pipe()
    output = HeldOutput(writer)
    output.write(b"one ")
    assert written(reader) == b"one "
    output.hold()
    output.write(b"two ")
    output.write(b"three ")
    assert written(reader) == b""
    output.release()
    output.write(b"four")
    assert written(reader) == b"two three four"


def test_the_oldest_is_dropped_and_reported_once() -> None:
    reader, writer = os.pipe()
    output = HeldOutput(writer, kept_bytes=1000)
    output.hold()
    for number in range(10):
        output.write(bytes([48 + number]) * 400)
    output.release()
    text, rest = written(reader).split(b"\r\n")
    assert text == b"gpuwatch: the oldest 3 KB of its output were not kept"
    assert rest == b"8" * 400 + b"9" * 400
    output.hold()
    output.release()
    assert written(reader) == b""


def test_a_terminal_that_has_closed_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    HeldOutput(writer).write(b"x")
