"""The picker: which process to watch. A program of its own, which ends with a pid or without."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from textual import events
from textual.screen import Screen

from ..discovery.candidates import Candidate
from ..terminal import Appearance, TerminalGuard
from ..widgets.panel import ROLE_CLASSES, DrawnRows
from ..widgets.picker import Picking, picker_rows
from .terminal_app import TerminalApp, run_on_terminal

LOOK_S: Final = 1.0
HELP: Final = "arrows choose, enter watches, letters narrow the list, esc or q leaves"
HELP_S: Final = 8.0
"""Asked for, so that it may stay longer than a notice."""
Find = Callable[[], Sequence[Candidate]]


class PickerScreen(Screen[None]):
    """Nothing but the rows."""

    COMPONENT_CLASSES = ROLE_CLASSES

    def compose(self) -> Any:
        """The rows."""
        yield DrawnRows("picker")


class PickerApp(TerminalApp):
    """Arrows choose, letters filter, Enter takes; looks again every second on a thread."""

    STYLES = ("dialogs",)

    def __init__(self, find: Find, **options: Any) -> None:
        super().__init__(**options)
        self._find = find
        self._picking = Picking(None)
        self._is_helping = False
        """The help was asked for, and not closed."""
        self._rows = PickerScreen()
        self.picked: int | None = None
        """The process to watch."""

    def get_default_screen(self) -> Screen[None]:
        """The list."""
        return self._rows

    def on_mount(self) -> None:
        """Look now, and every second."""
        self.begin_frames()
        self.call_after_refresh(self.frame)
        self.look()
        self.set_interval(LOOK_S, self.look)

    def look(self) -> None:
        """Look for processes, unless the last look is still at it."""
        if not any(worker.is_running for worker in self.workers):
            self.run_worker(self._look, thread=True)

    def draw(self) -> None:
        """The list as it is."""
        rows = self._rows.query_one(DrawnRows)
        rows.draw(picker_rows(self._picking, *rows.size), self._charset, rows.size)

    def on_key(self, event: events.Key) -> None:
        """Letters filter what is shown; what moves and what leaves is below."""
        moves = {"down": 1, "up": -1, "tab": 1, "shift+tab": -1}
        if event.key in ("ctrl+c", "ctrl+q") or (event.key == "q" and not self._picking.typed):
            self.exit(0)
        elif event.key == "enter":
            self._take()
        elif event.key == "escape":
            self._escape()
        elif event.key == "question_mark":
            self._is_helping = True
            self.notify(HELP, timeout=HELP_S)
        elif event.key in moves:
            self._move(moves[event.key])
        elif event.key == "backspace":
            self._type(self._picking.typed[:-1])
        elif event.character is not None and event.character.isprintable():
            self._type(self._picking.typed + event.character)
        self.frame()

    def _look(self) -> None:
        found = tuple(self._find())
        self.call_from_thread(self._found, found)

    def _found(self, candidates: tuple[Candidate, ...]) -> None:
        """The chosen process stays chosen while others come and go."""
        before = self._picking.pick
        self._picking = replace(self._picking, candidates=candidates)
        if before is not None:
            pids = [one.pid for one in self._picking.shown]
            at = pids.index(before.pid) if before.pid in pids else self._picking.chosen
            self._picking = replace(self._picking, chosen=at)
        self.frame()

    def _take(self) -> None:
        pick = self._picking.pick
        if pick is None:
            return
        self.picked = pick.pid
        self.exit(0)

    def _escape(self) -> None:
        """Back from the innermost thing: the help, what was typed, the picker."""
        if self._is_helping:
            self._is_helping = False
            self.clear_notifications()
        elif self._picking.typed:
            self._type("")
        else:
            self.exit(0)

    def _move(self, by: int) -> None:
        last = max(0, len(self._picking.shown) - 1)
        chosen = max(0, min(last, self._picking.chosen + by))
        self._picking = replace(self._picking, chosen=chosen)

    def _type(self, typed: str) -> None:
        self._picking = replace(self._picking, typed=typed, chosen=0)


def pick(find: Find, appearance: Appearance) -> int | None:
    """Let a person choose: the pid, or None who left."""
    with TerminalGuard() as guard:
        app, _ = run_on_terminal(partial(PickerApp, find), guard, appearance)
        return app.picked
