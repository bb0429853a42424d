"""What a program on the terminal needs, whatever it shows: frames that the terminal takes, a theme,
and a way out that always gives the terminal back."""

import asyncio
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.notifications import SeverityLevel

from .. import clock
from ..errors import GpuwatchError
from ..formats.files import export, file_stem
from ..terminal import (
    THEMES,
    Appearance,
    TerminalGuard,
    after,
    charset_name,
    colour_count,
    output_state,
)
from ..widgets.text import Charset
from .stylesheets import first_styles, read_theme
from .textual_private import QuietlyFailing, remove_notices, write_beside

# A mistake of ours that ended the screen: a report in a file, and three lines for the person.

REPORTED: Final = ("TERM", "COLORTERM", "TERM_PROGRAM", "LANG", "LC_ALL", "TMUX", "STY", "NO_COLOR")
"""Of the environment, what the screen depends on. Nothing else of it is written down."""


class ScreenBrokeError(GpuwatchError):
    """The exit code is ours to fix: 1."""


def screen_broke(
    error: Exception, size: tuple[int, int], versions: Iterable[str], stem: str, folder: Path
) -> ScreenBrokeError:
    """What to raise once the terminal is given back; writes the report into the folder."""
    text = " ".join(str(error).split())
    what = f"the screen broke: {type(error).__name__}{': ' if text else ''}{text}"
    why = "This is a mistake in gpuwatch; the training goes on, and --plain works without a screen."
    try:
        path = export({".txt": _report(error, size, versions)}, stem, folder).paths[0]
    except OSError as failed:
        return ScreenBrokeError(what, why, f"Please report it (no file could be written: {failed})")
    return ScreenBrokeError(what, why, f"Please report it with this file: {path}")


def _report(error: Exception, size: tuple[int, int], versions: Iterable[str]) -> str:
    terminal = [f"{name}={os.environ[name]}" for name in REPORTED if name in os.environ]
    lines = [*versions, f"terminal {size[0]}x{size[1]}", *terminal, ""]
    return "\n".join(lines) + "\n" + "".join(traceback.format_exception(error))


# Leaves an empty screen behind: what the terminal keeps of it is nobody's history.

CLEARED: Final = "\x1b[H\x1b[2J"


class LeavesEmpty(LinuxDriver):
    """Clears the alternate screen before it leaves it, for good or while it is suspended.

    tmux first makes that screen as high as the shell's was, and moves the rows that are then too
    many to the shell's history: after a window has become higher, some of ours.
    """

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        self.write(CLEARED)
        super().stop_application_mode()


FRAMES_S: Final = 4.0
FRAMES_S_REMOTE: Final = 2.0
"""Over SSH every frame is bytes on the link."""
UNFOCUSED_S: Final = 1.0
"""Between two frames while another window has the keyboard. Not for ever: the screen often stands
beside the editor, in sight."""
NOTICE_S: Final = 4.0
"""Long enough to read a line."""
TERMINAL_CLOSED: Final = 129
"""As a shell reports a program that SIGHUP ended."""
BASE_THEMES: Final = {
    "dark": "textual-dark",
    "light": "textual-light",
    "contrast": "textual-dark",
    "terminal": "ansi-dark",
}
"""Textual's, for what is not ours (notices); ours are in styles/themes."""


class TerminalApp(QuietlyFailing):
    """Draws frames until somebody leaves."""

    ENABLE_COMMAND_PALETTE = False
    STYLES: ClassVar[tuple[str, ...]] = ()
    """The stylesheets that it begins with, besides its theme's."""

    def __init__(
        self,
        *,
        charset: Charset = Charset.UNICODE,
        colours: str = "many",
        theme: str = THEMES[0],
        frames_s: float = FRAMES_S,
        guard_fd: int | None = None,
        signs: Callable[[], str] | None = None,
    ) -> None:
        """`signs` gives what the terminal is to be sent beside the frames; "" for nothing."""
        worn = theme if colours == "many" else "terminal"
        # Set before Textual looks at NO_COLOR: else it takes the colours of the terminal to grey.
        ansi_color = None if colours == "many" else True
        super().__init__(css_path=[*first_styles(worn, *self.STYLES)], ansi_color=ansi_color)
        self._charset = charset
        self._colours = colours
        self._worn = worn
        """Of `THEMES`."""
        self._frames_s = frames_s
        self._guard_fd = guard_fd
        self._signs = signs
        """The terminal to look at before each frame; None in tests."""
        self._frame_loop: asyncio.AbstractEventLoop | None = None
        self._skipped = 0
        """Frames since the last one, while another window has the keyboard."""
        self.guard: TerminalGuard | None = None
        self.animation_level = "none"
        # Before there are panels: else every one of them is styled twice for the first frame.
        self.add_class(f"-{self._worn}", update=False)

    def get_driver_class(self) -> type[Driver]:
        """Textual's for this terminal; of Unix one that leaves nothing behind."""
        usual = super().get_driver_class()
        if usual.__module__ != "textual.drivers.linux_driver":
            return usual

        return LeavesEmpty

    def draw(self) -> None:
        """One frame."""
        raise NotImplementedError

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = NOTICE_S,
        markup: bool = False,
    ) -> None:
        """One line, in the place of the last one: there is room for one, and the newest counts."""
        self.clear_notifications()
        remove_notices(self.screen)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def begin_frames(self) -> None:
        """Colours, and frames from now on. Called once, when there is a loop."""
        self._frame_loop = asyncio.get_running_loop()
        self.theme = BASE_THEMES[self._worn]
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.set_interval(1 / self._frames_s, self._tick)

    def frame(self) -> None:
        """One frame, if the terminal takes it, and the screen is not being taken down."""
        if not self.is_running:
            return
        if self._guard_fd is not None:
            state = output_state(self._guard_fd)
            if state == "gone":
                self.leave(TERMINAL_CLOSED)
            if state != "ready":
                return
        if self._signs is not None and (text := self._signs()):
            write_beside(self, text)
        self.draw()

    def on_resize(self) -> None:
        """All of it anew, even at the same size: a terminal that was smaller in between, and
        larger again before that was noticed, has lost rows that did not change."""
        if self._frame_loop is not None:
            self.action_redraw()

    def leave(self, code: int) -> bool:
        """End with a code, from any thread or signal handler; False before there is a loop."""
        if self._frame_loop is None or self._frame_loop.is_closed():
            return False
        if self.guard is not None:
            self.guard.deadline(code)
        self._frame_loop.call_soon_threadsafe(self.exit, code)
        return True

    def action_theme(self) -> None:
        """The next theme, where there are colours to choose from."""
        if self._colours == "many":
            self._wear(after(self._worn))
            self.notify(f"theme: {self._worn}", timeout=2)
        else:
            self.notify("this terminal shows the colours that it has")

    def action_redraw(self) -> None:
        """Everything again, for a terminal that lost some of it."""
        self.screen.refresh(layout=True)

    async def action_quit(self) -> None:
        """Leave; the training goes on."""
        self.exit(0)

    def _tick(self) -> None:
        self._skipped += 1
        if self.app_focus or self._skipped >= UNFOCUSED_S * self._frames_s:
            self._skipped = 0
            self.frame()

    def _wear(self, theme: str) -> None:
        self.remove_class(f"-{self._worn}")
        self._worn = theme
        self.add_class(f"-{theme}")
        self.theme = BASE_THEMES[theme]
        read_theme(self, theme)
        self.refresh_css(animate=False)  # two of ours stand on one of Textual's


AnyApp = TypeVar("AnyApp", bound=TerminalApp)


def run_on_terminal(
    make: Callable[..., AnyApp], guard: TerminalGuard, appearance: Appearance
) -> tuple[AnyApp, int]:
    """Run an app until somebody leaves it; it, and its exit code.

    `make` takes the keyword arguments of `TerminalApp`. Raises ScreenBrokeError for a mistake of
    ours, after the terminal was given back.
    """
    if not appearance.colour:
        os.environ["NO_COLOR"] = "1"  # Textual reads it too
    remote = "SSH_CONNECTION" in os.environ
    stream: Any = sys.__stderr__
    if "utf" not in str(stream.encoding).lower():
        stream.reconfigure(encoding="utf-8", errors="replace")
    app = make(
        charset=Charset.ASCII if appearance.ascii_only else Charset(charset_name()),
        colours=colour_count(),
        theme=appearance.theme,
        frames_s=appearance.frames_s or (FRAMES_S_REMOTE if remote else FRAMES_S),
        guard_fd=stream.fileno(),
    )
    app.guard = guard
    guard.leave = app.leave
    code = app.run(mouse=appearance.mouse)
    if app.fault is not None:
        from ..errors import version_lines

        stem = file_stem("crash", os.getpid(), clock.now_unix())
        size = (app.size.width, app.size.height)
        folder = Path(tempfile.gettempdir())
        raise screen_broke(app.fault, size, version_lines(), stem, folder) from app.fault
    return app, (app.return_code or 0) if code is None else code
