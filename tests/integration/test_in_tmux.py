"""The screen in a real terminal emulator, driven by keys: what a person in tmux sees.

The captures are left in the test's folder, to be looked at: `pytest --basetemp=/tmp/captures`.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.tui.widgets.footer import NAMES, WORDS
from tests.processes.pseudo_terminal import OTHERS, ROOT

SIZES = [(50, 20), (80, 24), (100, 30), (200, 60)]
LIMIT_S = 40.0
"""Nothing takes as long; what does says so before the test's own time is up."""

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")


class Tmux:
    """One window of a tmux server of its own."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self._socket = str(folder / "tmux")
        self._size = size

    def start(self, *arguments: str) -> None:
        """Run `python -m arguments` in the window; the window outlives it."""
        width, height = self._size
        command = f"cd {ROOT}; {sys.executable} -m {' '.join(arguments)}; echo left with $?; cat"
        self._ask("-u", "new-session", "-d", "-x", str(width), "-y", str(height), command)

    def press(self, *keys: str) -> None:
        """Send keys, by tmux's names of them."""
        self._ask("send-keys", *keys)

    def text(self) -> str:
        """What the window shows."""
        return self._ask("capture-pane", "-p")

    def flag(self, name: str) -> str:
        """A flag of the window: "alternate_on", "cursor_flag", "mouse_any_flag"."""
        return self._ask("display", "-p", f"#{{{name}}}").strip()

    def until(self, *texts: str, missing: str = "\0") -> str:
        """Wait until all of them are there and that one is not; returns the window's text."""
        deadline = time.monotonic() + LIMIT_S
        while missing in (shown := self.text()) or not all(text in shown for text in texts):
            assert time.monotonic() < deadline, (
                f"{texts} without {missing!r} is not what shows\n{shown}"
            )
            time.sleep(0.02)
        return shown

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        self._ask("resize-window", "-x", str(width), "-y", str(height))

    def end(self) -> None:
        """End the server and what runs in it."""
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], check=False)

    def _ask(self, *words: str) -> str:
        plain = {k: v for k, v in os.environ.items() if k not in (*OTHERS, "TMUX")}
        return subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            env={**plain, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout


@contextmanager
def window(folder: Path, size: tuple[int, int]) -> Iterator[Tmux]:
    """A window with the live fake run in it."""
    tmux = Tmux(folder, size)
    tmux.start("tests.tui.live_fake")
    try:
        tmux.until("INPUT-BOUND", "quit")
        yield tmux
    finally:
        tmux.end()


@pytest.mark.parametrize("size", SIZES)
def test_every_view_by_its_key(tmp_path: Path, size: tuple[int, int]) -> None:
    with window(tmp_path, size) as tmux:
        assert tmux.flag("alternate_on") == "1"
        for key, name in [*enumerate(NAMES[1:], 2), (1, NAMES[0])]:
            tmux.press(str(key))
            marked = f"[{key} {WORDS.get(name, name)}]" if key > 1 else "Step"
            text = tmux.until(marked, "INPUT-BOUND")
            (tmp_path / f"{key}_{name}.txt").write_text(text)
            assert len(text.splitlines()) == size[1]
            assert "Traceback" not in text
        tmux.press("q")
        tmux.until("left with 0")
        assert tmux.flag("alternate_on") == "0"
        assert tmux.flag("cursor_flag") == "1"


def test_keys_that_people_press_first(tmp_path: Path) -> None:
    with window(tmp_path, (100, 30)) as tmux:
        for key, shows, missing in (
            ("?", "this help", "PAUSED"),
            ("Escape", "Step", "this help"),
            ("Space", "PAUSED", "this help"),
            ("Space", "pause", "PAUSED"),
            ("z", "GPU busy %", "── Process memory"),
            ("Escape", "── Process memory", "PAUSED"),
            ("Enter", "store the images at the size they are used", "── Process memory"),
            ("Escape", "── Process memory", "PAUSED"),
        ):
            tmux.press(key)
            tmux.until(shows, missing=missing)
        tmux.press("C-c")
        tmux.until("left with 0")


def test_the_window_may_change_its_size_at_any_time(tmp_path: Path) -> None:
    with window(tmp_path, (100, 30)) as tmux:
        for (width, height), shown, missing in (
            ((30, 8), ("INPUT-BOUND", "→ num_workers"), "quit"),
            ((200, 60), ("INPUT-BOUND", "── Events", "quit"), "→ num_workers"),
            ((50, 20), ("INPUT-BOUND", "── Stacks, GPU idle", "quit"), "── Events"),
            ((100, 30), ("INPUT-BOUND", "── Stacks while", "quit"), "Stacks, GPU idle"),
        ):
            tmux.resize(width, height)
            tmux.until(*shown, missing=missing)


def test_a_window_that_is_small_for_a_moment_loses_no_row(tmp_path: Path) -> None:
    # tmux forgets what is outside; where the program is slow it gets the last size alone.
    with window(tmp_path, (100, 30)) as tmux:
        for _ in range(3):
            for width, height in ((30, 8), (200, 60), (50, 20), (100, 30)):
                tmux.resize(width, height)
        shown = tmux.until("gpuwatch  train.py", "INPUT-BOUND", "── Stacks while", "quit")
        assert len(shown.splitlines()) == 30


def test_of_a_window_that_grew_nothing_of_ours_is_in_the_shells_history(tmp_path: Path) -> None:
    with window(tmp_path, (80, 24)) as tmux:
        tmux.resize(100, 50)
        tmux.until("INPUT-BOUND", "── Stacks")
        tmux.press("q")
        tmux.until("left with 0")
        history = tmux._ask("capture-pane", "-p", "-S", "-")
    ours = [line for line in history.splitlines() if "INPUT-BOUND" in line or "NEXT" in line]
    assert [line.split()[0] for line in ours] == ["▲", "NEXT"], "the two lines that are left"
    assert "── Stacks" not in history
