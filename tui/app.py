"""The screen's program: frames, keys, and a way out that always gives the terminal back."""

import asyncio
import os
import sys
from typing import Any

from textual.app import App
from textual.screen import Screen

from tui.picture import Picture
from tui.screens.help import HelpScreen
from tui.screens.main import MainScreen
from tui.screens.tabs import tab_named
from tui.session.recordable import RecordablePicture
from tui.snapshot import Snapshot
from tui.terminal import (
    NoScreenError,
    TerminalGuard,
    charset_name,
    colour_count,
    output_state,
    why_no_screen,
)
from tui.widgets.bindings import bindings
from tui.widgets.charset import Charset
from tui.widgets.panel import Panel
from tui.widgets.tabs import NAMES
from tui.widgets.view import View
from tui.widgets.windows import DEFAULT_S, automatic, beside

FRAMES_S = 4.0
FRAMES_S_REMOTE = 2.0
"""Over SSH every frame is bytes on the link."""
TERMINAL_GONE = 129
"""As a shell reports a program that SIGHUP ended."""


class GpuwatchApp(App[int]):
    """Shows a picture until somebody leaves. Reads it every frame and never waits for it."""

    TITLE = "gpuwatch"
    CSS_PATH = [f"styles/{name}.tcss" for name in ("roles", "main", "dialogs", *NAMES)]
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = bindings()

    def __init__(
        self,
        picture: Picture,
        *,
        charset: Charset = Charset.UNICODE,
        colours: str = "many",
        frames_s: float = FRAMES_S,
        guard_fd: int | None = None,
    ) -> None:
        # Said before Textual looks at NO_COLOR: else it takes the colours of the terminal to grey.
        super().__init__(ansi_color=None if colours == "many" else True)
        self._picture = picture
        self._charset = charset
        self._colours = colours
        self._frames_s = frames_s
        self._guard_fd = guard_fd
        """The terminal to look at before each frame; None in tests."""
        self._held: Snapshot | None = None
        """The picture that a paused view stays at."""
        self._window_s = DEFAULT_S
        self._told = ""
        """The last news of a recording."""
        self._chosen = False
        """A person chose the window; until then it follows the steps."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main = MainScreen()
        self.guard: TerminalGuard | None = None
        self.animation_level = "none"

    def get_default_screen(self) -> Screen[None]:
        """The main screen."""
        return self._main

    def on_mount(self) -> None:
        """Draw the first frame, then let the sources begin."""
        self._loop = asyncio.get_running_loop()
        if self._colours != "many":
            self.theme = "ansi-dark"
            self._main.add_class("-named-colours")
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.set_interval(1 / self._frames_s, self.frame)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.frame()
        self.call_after_refresh(self._picture.start)

    def frame(self) -> None:
        """One frame, if the terminal takes it, and the screen is not being taken down."""
        if not self.is_running:
            return
        if self._guard_fd is not None:
            state = output_state(self._guard_fd)
            if state == "gone":
                self.leave(TERMINAL_GONE)
            if state != "ready":
                return
        self._main.show(self._view())
        self._tell_news()

    def _tell_news(self) -> None:
        """What became of a recording, on any screen: the smaller ones have no events."""
        picture = self._picture
        if isinstance(picture, RecordablePicture) and picture.news != self._told:
            self._told = picture.news
            self.notify(picture.news, markup=False)

    def _view(self) -> View:
        now = self._picture.snapshot()
        shown = self._held or now
        if not self._chosen:
            self._window_s = automatic(shown, self._main.chart_columns, self._window_s)
        behind_s = None if self._held is None else (now.t_ns - self._held.t_ns) / 1e9
        return View(shown, self._window_s, self._charset, behind_s, tab=self._main.tab.name)

    def leave(self, code: int) -> bool:
        """End with a code, from any thread or signal handler; False before there is a loop."""
        if self._loop is None or self._loop.is_closed():
            return False
        if self.guard is not None:
            self.guard.deadline(code)
        self._loop.call_soon_threadsafe(self.exit, code)
        return True

    def action_pause(self) -> None:
        """Hold the view, or catch up."""
        self._held = self._picture.snapshot() if self._held is None else None
        self.frame()

    def action_longer(self) -> None:
        """The next longer window."""
        self._choose_window(+1)

    def action_shorter(self) -> None:
        """The next shorter window."""
        self._choose_window(-1)

    def _choose_window(self, by: int) -> None:
        shown = self._held or self._picture.snapshot()
        self._window_s = beside(shown, self._main.chart_columns, self._window_s, by)
        self._chosen = True
        self.frame()

    def action_record(self) -> None:
        """Begin a recording, or end it. Whether that went well is in the next frames."""
        if isinstance(self._picture, RecordablePicture):
            self._picture.toggle_recording()
            self.frame()
        else:
            self.bell()

    def action_zoom(self) -> None:
        """One panel alone, and back."""
        self._main.zoom()

    async def action_tab(self, name: str) -> None:
        """Another view."""
        await self._main.turn_to(tab_named(name))
        self.call_after_refresh(self.frame)

    def action_drill(self) -> None:
        """Into the focused panel, its own way or else alone; without one, into the verdict."""
        if self._main.zoomed:
            self._main.zoom()
            return
        focused = self._main.focused or self._main.query_one("#verdict", Panel)
        if not (isinstance(focused, Panel) and focused.drill()):
            focused.focus()
            self.call_after_refresh(self._main.zoom)

    async def action_back(self) -> None:
        """Out of the innermost thing one is in."""
        if self._main.zoomed:
            self._main.zoom()
        elif self._held is not None:
            self.action_pause()
        else:
            self._main.set_focus(None)

    def action_help(self) -> None:
        """Every key, and how to read the picture."""
        self.push_screen(HelpScreen(self._charset))

    def action_redraw(self) -> None:
        """Everything again, for a terminal that lost some of it."""
        self.screen.refresh(layout=True)

    async def action_quit(self) -> None:
        """Leave; the training goes on."""
        self.exit(0)


def run_screen(picture: Picture, *, ascii_only: bool = False, frames_s: float | None = None) -> int:
    """Show the picture until somebody leaves, and give the terminal back. Returns the exit code.

    Raises NoScreenError where there is no terminal for it; the picture is closed in every case.
    """
    with TerminalGuard() as guard:
        try:
            reason = why_no_screen()
            if reason is not None:
                raise NoScreenError(reason)
            return _run(picture, guard, ascii_only, frames_s)
        finally:
            picture.close()


def _run(picture: Picture, guard: TerminalGuard, ascii_only: bool, frames_s: float | None) -> int:
    remote = "SSH_CONNECTION" in os.environ
    stream: Any = sys.__stderr__
    if "utf" not in str(stream.encoding).lower():
        stream.reconfigure(encoding="utf-8", errors="replace")
    app = GpuwatchApp(
        picture,
        charset=Charset.ASCII if ascii_only else Charset(charset_name()),
        colours=colour_count(),
        frames_s=frames_s or (FRAMES_S_REMOTE if remote else FRAMES_S),
        guard_fd=stream.fileno(),
    )
    app.guard = guard
    guard.leave = app.leave
    code = app.run(mouse=False)
    return (app.return_code or 0) if code is None else code
