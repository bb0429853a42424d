"""A training script in a process of its own, and a bare monitor's end of the wire."""

import os
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import zmq

from gpuwatch.probe.socket_place import key_path
from gpuwatch.probe.wire import page
from gpuwatch.tui.discovery.state_page import hello_of as hello_on
from gpuwatch.tui.messages import SCHEMA, Hello, encode_message
from gpuwatch.tui.requests import Subscribe
from gpuwatch.tui.sources.marks.reader import Decoded, ReplyReader

ROOT = Path(__file__).parents[2]
LIMIT_S = 50.0
"""No answer within this is a failure; nothing here waits for it otherwise. A little less than
pytest's own limit of a test, since five of them may share two busy cores."""

RARELY_COLLECTED = "import gc; gc.set_threshold(100_000);"
"""Before the first line of a script, so that each keeps its number. Python's collector goes through
what torch has made again and again while torch is imported, 0.3 s of CPU; and once more at the end,
0.7 s, of a short training that takes 3.5."""
SOON_ENDED = f"{RARELY_COLLECTED} import atexit; atexit.register(gc.freeze);"
"""Neither then: for a script whose end is no part of what is tested. What torch and the probe do as
it ends, they do before (handlers are called in reverse order)."""


@dataclass
class Run:
    """A started script. Its lines are read with `line()`."""

    process: "subprocess.Popen[str]"

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line of its stdout."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        assert ready, "the script wrote nothing"
        return self.process.stdout.readline().strip()

    def send(self, text: str = "") -> None:
        """Send it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def finish(self) -> tuple[int, str, str]:
        """Let it end: exit status, the rest of stdout, stderr."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


@contextmanager
def started(script: str, tmp_path: Path, **environment: str) -> Iterator[Run]:
    """Run a script as a user would, from a file; killed at the end if it still lives."""
    path = tmp_path / "train.py"
    path.write_text(RARELY_COLLECTED + textwrap.dedent(script))
    with subprocess.Popen(
        [sys.executable, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    ) as process:
        try:
            yield Run(process)
        finally:
            process.kill()


def pages_of(pid: int) -> list[bytes]:
    """The state pages that a process holds a descriptor of; while one is made there are two of
    it, the mapping's and the one that it was made with."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if page.NAME in os.readlink(fd):
                found[fd.stat().st_ino] = fd.read_bytes()
        except FileNotFoundError:
            continue
    return list(found.values())


def hello_of(pid: int) -> Hello:
    """The hello of a process' one page; waits until there is one."""

    def written() -> Hello | None:
        pages = pages_of(pid)
        assert len(pages) < 2
        try:
            return hello_on(pages[0]) if pages else None
        except ValueError:
            return None  # the file is there a moment before what it holds

    return until(written)


def word_of(pid: int, index: int) -> int:
    """One of the words of a process' page."""
    return int.from_bytes(pages_of(pid)[0][index * 8 : index * 8 + 8], "little")


def subscription(endpoint: str, history: bool = True) -> bytes:
    """What a monitor of this user sends to be sent the marks: with the key, which it waits for."""
    key = until(Path(key_path(endpoint.removeprefix("ipc://"))).read_text)
    return encode_message(Subscribe(SCHEMA, os.getpid(), history, key=key))


@contextmanager
def subscribed(endpoint: str, history: bool = True) -> Iterator[Callable[[], Decoded]]:
    """Subscribe; yields a function that waits for the next reply."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    socket.connect(endpoint)
    socket.send(subscription(endpoint, history))
    replies = ReplyReader()

    def next_reply() -> Decoded:
        assert socket.poll(int(LIMIT_S * 1000)), "no reply"
        return replies.read(socket.recv())

    try:
        yield next_reply
    finally:
        context.destroy(linger=0)


Seen = TypeVar("Seen")


def until(look: Callable[[], Seen | None], limit_s: float = LIMIT_S) -> Seen:
    """Wait for `look` to see something, which is returned."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            if seen := look():
                return seen
        except FileNotFoundError:
            pass
        time.sleep(0.01)
    raise AssertionError("never seen")
