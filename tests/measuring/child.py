"""A process that trains: started early, since it takes 10 s to be ready, and run when asked to.

All processes of a section start together and only one at a time works on the device.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
READY_S: Final = 120.0
"""Imports and a CUDA context take 6 to 10 s alone, and more beside others."""


def python_path() -> str:
    """This checkout, and whatever the caller has put on the path besides."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


class ChildError(Exception):
    """It ended or fell silent; says what it wrote last."""


class Child:
    """`python -m MODULE …`; it prints "ready", waits for a line, then prints JSON lines."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (closed with the child)
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path(), **(environment or {})},
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The process itself."""
        return self._process.pid

    def ready(self) -> None:
        """Wait until it is."""
        self.until("ready", READY_S)

    def send(self, word: str = "go") -> None:
        """Send it a line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ChildError(self._last_words()) from None

    def until(self, word: str, limit_s: float) -> None:
        """Read lines up to one that begins with `word`."""
        while not self._line(limit_s).startswith(word):
            pass

    def answer(self, limit_s: float) -> dict[str, Any]:
        """The next line that is a JSON object; others (of libraries) are passed over."""
        while True:
            line = self._line(limit_s)
            if line.startswith("{"):
                seen: dict[str, Any] = json.loads(line)
                return seen

    def bye(self, limit_s: float = 10.0) -> None:
        """Let it end by itself."""
        try:
            self.send("bye")
            self._process.wait(limit_s)
        except (ChildError, subprocess.TimeoutExpired):
            pass
        self.kill()

    def kill(self) -> None:
        """End it, and the workers and helpers that it started."""
        try:
            os.killpg(self._process.pid, 9)
        except ProcessLookupError:
            pass
        self._process.wait()
        if not self._errors.closed:
            self._errors.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())
        self._lines.put(None)

    def _line(self, limit_s: float) -> str:
        try:
            line = self._lines.get(timeout=limit_s)
        except queue.Empty:
            raise ChildError(f"silent for {limit_s:.0f} s: {self._last_words()}") from None
        if line is None:
            self._lines.put(None)
            raise ChildError(self._last_words())
        return line

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-4000:] or "it ended without a word"


@contextmanager
def children(each: Sequence[Sequence[str]]) -> Iterator[list[Child]]:
    """Start one process for each list of arguments, all at once; all are gone afterwards.

    Yields when all are ready. One that failed says so when it is asked.
    """
    with ExitStack() as stack:
        started = [stack.enter_context(Child(arguments)) for arguments in each]
        for child in started:
            try:
                child.ready()
            except ChildError:
                continue
        yield started
