"""The screen's program: frames, keys, and a way out that always gives the terminal back."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.screen import Screen

from .model.provider import (
    RecordingProvider,
    SourceReader,
    SourceText,
    TimeTravelProvider,
    ViewState,
)
from .model.snapshot import Rank, Snapshot
from .model.stack_trees import next_kind, worth_showing
from .screens.dialogs import Dialog
from .screens.main import MainScreen
from .screens.switching import Make, Switch
from .screens.tabs import tab_named
from .screens.terminal_app import TerminalApp, run_on_terminal
from .screens.time_travel import TimeNavigation
from .terminal import Appearance, NoScreenError, TerminalGuard, why_no_screen
from .widgets.charts.columns import DEFAULT_S, automatic, beside
from .widgets.footer import bindings
from .widgets.gpu.devices import beside_device, beside_rank
from .widgets.keys import actions_of
from .widgets.panel import Panel, View
from .widgets.verdict import parting_lines

if TYPE_CHECKING:
    from .model.machine_facts import MachineFacts
    from .widgets.charts.cursor import CursorMoved
    from .widgets.gpu.ranks import RanksPanel
    from .widgets.stacks.tree import StackTreePanel

ELSEWHERE = {
    "slash": "/ finds rows of stacks, processes and events: 5 or 6, then /",
    "o": "o sorts the processes: 6, then o",
    "s": "s copies and writes the stacks: 5, then s",
}
"""Shown for a key where no panel of the view has it."""
SOON_S = 0.01
"""Between two frames while a recording hurries to a moment: for the keys."""
SETTLED_FRAMES = 2
"""After the sources are opened: the frame before is the first of what they report."""


class GpuwatchApp(TerminalApp):
    """Shows a picture until somebody leaves. Reads it every frame and never waits for it."""

    TITLE = "gpuwatch"
    STYLES = ("main", "dialogs")
    BINDINGS = bindings()

    class Switched(Message):
        """Another process is watched from now on; or it cannot be, and `why`."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    def __init__(
        self,
        picture: TimeTravelProvider,
        *,
        switch: Switch | None = None,
        gather: "Callable[[int], MachineFacts] | None" = None,
        read_source: SourceReader | None = None,
        settled: Callable[[], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._picture = picture
        self._switch = switch or Switch(picture)
        self._device: int | None = None
        """The GPU that a person chose."""
        self._read_source = read_source or _files_here
        self._gather = gather
        """Reads what the doctor judges; None: this machine."""
        self._settled = settled
        """Called once, when all that a session needs is loaded and on the screen."""
        self._time = TimeNavigation(picture)
        self._view_state = ViewState(DEFAULT_S)
        self._soon = False
        """The next frame comes before its time: a recording is on its way to a moment."""
        self._shown: Snapshot | None = None
        """The last frame's."""
        self._baseline: Snapshot | None = None
        """What the numbers are compared with."""
        self._last_news = ""
        """The last news of a recording."""
        self._main = MainScreen()
        self.begun = asyncio.Event()
        """The first view has its panels, and the picture goes on."""

    def get_default_screen(self) -> Screen[None]:
        """The main screen, for its first frame."""
        self._main.fit(*self.size)
        self._main.show(self._view())
        return self._main

    def on_mount(self) -> None:
        """After the first frame the view's panels, then the sources."""
        self.begin_frames()
        self.call_after_refresh(self._begin)

    async def _begin(self) -> None:
        await self._main.furnish(self._main.tab)
        if not self._main.is_attached:
            return  # left before its first view was there
        self.frame()
        self.call_after_refresh(self._start)

    def _start(self) -> None:
        self._picture.start()
        self.begun.set()
        if self._settled is not None:
            self.set_timer(SETTLED_FRAMES / self._frames_s, self._settled)

    def draw(self) -> None:
        """The view, what is open above it, and news of a recording."""
        view = self._view()
        self._main.show(view)
        if isinstance(self.screen, Dialog):
            self.screen.show(view)
        self._notify_news()
        if self._time.hurries and not self._soon:
            self._soon = True
            self.set_timer(SOON_S, self._hurry)

    def _hurry(self) -> None:
        self._soon = False
        self.frame()

    def _notify_news(self) -> None:
        """What became of a recording, on any screen: the smaller ones have no events."""
        provider = self._picture
        news = provider.news if isinstance(provider, RecordingProvider) else ""
        if news != self._last_news:
            self._last_news = news
            self.notify(news)

    def _view(self) -> View:
        moment = self._time.moment(self._view_state)
        state = self._view_state
        if not state.window_chosen:
            columns = self._main.chart_columns
            window_s = automatic(moment.snapshot, columns, state.window_s)
            state = self._view_state = state.over(window_s, chosen=False)
        focused = self._main.focused
        self._shown = moment.snapshot
        return View(
            moment.snapshot,
            state.window_s,
            self._charset,
            state.behind_s(moment.newest_ns),
            window_chosen=state.window_chosen,
            tab=self._main.tab.name,
            at_ns=moment.at_ns,
            cursor_ns=state.cursor_ns,
            device=self._device,
            baseline=self._baseline,
            panel=focused.KIND if isinstance(focused, Panel) else "",
            stacks_when=state.stacks_when or worth_showing(moment.snapshot.trees),
            read_source=self._read_source,
        )

    def write_parting(self) -> None:
        """Leave the verdict and NEXT in the terminal, if it is still there."""
        if self._shown is None:
            return
        lines = map(self._charset.translate, parting_lines(self._shown, self.size.width))
        with suppress(OSError):
            print(*(f"{line}\n" for line in lines), sep="", end="", file=sys.stderr, flush=True)

    def action_pause(self) -> None:
        """Hold the view, or catch up."""
        self._show_state(self._time.paused(self._view_state))

    def action_scrub(self, by: int) -> None:
        """Back (-1) or forward (+1) by a part of the window."""
        self._show_state(self._time.back(self._view_state, by))

    def action_one_step(self, by: int) -> None:
        """To the step before (-1) or after (+1)."""
        state = self._time.one_step(self._view_state, by)
        if state == self._view_state and state.held_ns is not None:
            self.bell()
        self._show_state(state)

    def action_end(self, by: int) -> None:
        """To the first moment (-1), or the last (+1)."""
        self._show_state(self._time.end(self._view_state, by))

    def action_speed(self, by: int) -> None:
        """Play twice as fast (+1), or half (-1)."""
        if not self._time.change_speed(by):
            self.notify("x and X are for a recording that plays")
        self.frame()

    def _show_state(self, state: ViewState) -> None:
        self._view_state = state
        self.frame()

    def action_longer(self) -> None:
        """The next longer window."""
        self._choose_window(+1)

    def action_shorter(self) -> None:
        """The next shorter window."""
        self._choose_window(-1)

    def _choose_window(self, by: int) -> None:
        shown, state = self._time.moment(self._view_state).snapshot, self._view_state
        window_s = beside(shown, self._main.chart_columns, state.window_s, by)
        self._show_state(state.over(window_s))

    def action_reset(self) -> None:
        """The charts as they were at first: now, no cursor, the window that fits the steps."""
        self._show_state(self._view_state.reset())

    def on_cursor_moved(self, message: "CursorMoved") -> None:
        """Another moment is read."""
        self._show_state(self._view_state.reading(message.t_ns))

    def action_baseline(self) -> None:
        """Compare with the picture as it is shown."""
        self._compare_with(self._time.moment(self._view_state).snapshot)

    def action_no_baseline(self) -> None:
        """Compare with nothing."""
        self._compare_with(None)

    def _compare_with(self, baseline: Snapshot | None) -> None:
        self._baseline = baseline
        self.frame()

    def action_record(self) -> None:
        """Begin a recording, or end it. Whether that went well is in the next frames."""
        if isinstance(self._picture, RecordingProvider):
            self._picture.toggle_recording()
            self.frame()
        else:
            self.notify("R records a run while it is watched: this is a recording already")

    def action_device(self, by: int) -> None:
        """The GPU after (+1) or before (-1); of a process with one, the rank."""
        shown = self._time.moment(self._view_state).snapshot
        if len(shown.gpus) > 1:
            self._device = beside_device(shown, self._device, by)
            self.frame()
        elif (rank := beside_rank(shown, by)) is not None:
            self._watch(rank)
        else:
            self.notify("< and > choose among GPUs or ranks: one is known here")

    def on_ranks_panel_chosen(self, chosen: "RanksPanel.Chosen") -> None:
        """Watch another rank."""
        self._watch(chosen.rank)

    def _watch(self, rank: Rank) -> None:
        if not self._switch.is_possible:
            self.notify(f"this is a picture of one rank: r{rank.rank} is not in it")
            return

        begun = self._switch.to(rank, lambda why: self.post_message(self.Switched(why)))
        if begun and rank.host:
            self.notify(f"r{rank.rank} is on {rank.host}: connecting")

    def on_gpuwatch_app_switched(self, switched: Switched) -> None:
        """Forget what was looked at in the picture before."""
        if switched.why:
            self.notify(switched.why, severity="warning")
            return
        self._picture = self._switch.provider
        self._time = TimeNavigation(self._picture)
        self._view_state = ViewState(self._view_state.window_s)
        self._baseline, self._device, self._last_news = None, None, ""
        self.frame()

    async def action_elsewhere(self, key: str) -> None:
        """A key that means something to another panel: to the first of the view that has it."""
        panel = self._main.panel_with(key)
        if panel is None:
            self.notify(ELSEWHERE[key])
            return
        self._main.set_focus(panel)
        (action,) = (one for one in actions_of(panel.KIND) if key in one.keys)
        await self.run_action(action.handler, panel)
        self.frame()

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
        elif self._view_state.held_ns is not None:
            self.action_pause()
        else:
            self._main.set_focus(None)

    def action_help(self) -> None:
        """Every key, and how to read the picture."""
        from .screens.dialogs import HelpScreen

        self.push_screen(HelpScreen(self._view()))

    def action_doctor(self) -> None:
        """What is measured, what is not, and what changes that."""
        from .screens.dialogs import DoctorScreen, facts_here

        self.push_screen(DoctorScreen(self._view(), self._gather or facts_here))

    def action_deep(self, what: str) -> None:
        """A window inside the process: of its profiler, of its memory."""
        from .screens.deep_look import screen_for

        found = screen_for(what, self._view())
        self.notify(found) if isinstance(found, str) else self.push_screen(found)

    def action_export(self) -> None:
        """The screen as it stands: report, JSON and picture."""
        from .screens.export import export_screen  # what most sessions never need

        self.notify(export_screen(self, self._view().snapshot))

    def action_stacks_when(self) -> None:
        """The stacks of another kind of moment."""
        self._show_state(self._view_state.at_stacks(next_kind(self._view().stacks_when)))

    def on_stack_tree_panel_copy(self, wanted: "StackTreePanel.Copy") -> None:
        """Stacks as text."""
        from .screens.export import copy_stacks

        self.notify(copy_stacks(self, self._view().snapshot, wanted.text))

    def action_copy(self) -> None:
        """The verdict as text."""
        from .screens.export import copy_verdict

        self.notify(copy_verdict(self, self._view().snapshot))


def run_screen(
    picture: TimeTravelProvider,
    appearance: Appearance | None = None,
    other: Make | None = None,
    settled: Callable[[], None] | None = None,
    signs: Callable[[], str] | None = None,
) -> int:
    """Show the picture until somebody leaves, and give the terminal back. Returns the exit code.

    `other` makes the picture of another process, where there can be one; `settled` is called when
    all that a session needs is loaded and on the screen; `signs` gives what the terminal is sent
    beside the frames. Raises NoScreenError where there is no terminal for it; the picture is closed
    in every case.
    """
    switch = Switch(picture, other)
    with TerminalGuard() as guard:
        try:
            reason = why_no_screen()
            if reason is not None:
                raise NoScreenError(reason)
            make = partial(GpuwatchApp, picture, switch=switch, settled=settled, signs=signs)
            app, code = run_on_terminal(make, guard, appearance or Appearance())
        finally:
            switch.close()
    app.write_parting()
    return code


def _files_here(frame: str, snapshot: Snapshot) -> SourceText:
    from .sources.source_text.files import read_around  # what most sessions never need

    return read_around(frame, snapshot)
