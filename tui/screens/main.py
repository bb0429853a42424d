"""The main screen: the verdict always, and below it one of the views."""

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen
from textual.widget import Widget

from ..model.snapshot import Snapshot
from ..widgets.footer import Footer, TabsRow
from ..widgets.header import Header
from ..widgets.keys import actions_of
from ..widgets.panel import BEGIN, ROLE_CLASSES, Panel, View
from ..widgets.verdict import VerdictPanel, least_rows
from .stylesheets import HEIGHTS, WIDTHS, classes_at, read_view
from .tabs import TABS, Tab

FEW_RANKS = 4
"""So many get a lower panel."""
WALKED = ("stacks", "processes", "ranks")
"""Views that are there to be walked through: the keys mean their first panel at once."""
FILTERABLE = 2
"""Rows of a panel from which it has a heading, and in it what is typed."""
DEFAULT_COLUMNS = 80
"""Of a chart that is not laid out yet."""
HEADED_FROM = 30
"""Rows of the screen from which the verdict above the overview has a heading."""
NORMAL_FROM = 24
LEAST_OVERVIEW, LEAST_FLOOR = 13, 10
"""Rows below the verdict: the chart's three with heading and axis, then three panels of few; on a
lower screen the chart keeps one."""
LEAST_VIEW = 10
TIGHT_OVERVIEW = 14
"""With fewer at 80x24 memory loses one, for the chart to keep its three."""
UNSEEN = frozenset(("-no-gpu", "-few-ranks"))
"""Of a process that nothing is known of: the first frame's."""


def has_ledger_row(snapshot: Snapshot) -> bool:
    """Beside ranks there is no room for it."""
    return snapshot.ledger is not None and not snapshot.ranks


def states_of(snapshot: Snapshot) -> frozenset[str]:
    """What the layout depends on, as classes of the screen."""
    states = {
        "-noted": bool(snapshot.verdict.notes),
        "-no-gpu": not snapshot.gpus,
        "-ranks": bool(snapshot.ranks),
        "-ledger": has_ledger_row(snapshot),
        "-few-ranks": len(snapshot.ranks) <= FEW_RANKS,
        "-several-gpus": len(snapshot.gpus) > 1,
        "-grows": bool(snapshot.trends),
    }
    return frozenset(name for name, is_so in states.items() if is_so)


class MainScreen(Screen[None]):
    """Which panels a view has is in `tabs/`; how large they are is in the stylesheets.

    The body of the view that is shown has the class `-shown`; the others' panels have no size, and
    so draw nothing. A class of the screen would have every panel of every view styled anew for a
    key. A view's panels are made when it is first shown, and the first view's after what stands
    around it was drawn.
    """

    AUTO_FOCUS = ""
    COMPONENT_CLASSES = ROLE_CLASSES
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(self) -> None:
        super().__init__(classes=" ".join(UNSEEN))
        self._states = UNSEEN
        self.tab = TABS[0]
        self._verdict = VerdictPanel("verdict").add_class("-whole", update=False)
        self._verdict_rows = 0
        """The least that it has, whatever the stylesheet says."""
        self._first_size = (0, 0)
        self._above: list[Panel] = [Header("header"), self._verdict, TabsRow("tabs")]
        self._below: list[Panel] = [Footer("footer")]
        self._inside: dict[str, Sequence[Panel]] = {}
        """The panels of each view that was shown: found without a search, four times a second."""

    def fit(self, width: int, height: int) -> None:
        """Begin at this size: else everything is styled anew at the first resize."""
        self._first_size = (width, height)
        self.add_class(*classes_at(width, height), update=False)

    def compose(self) -> ComposeResult:
        """Header, verdict, the views' bodies of which one is shown, footer."""
        yield from self._above
        for tab in TABS:
            yield Container(id=tab.name, classes="body -shown" if tab is self.tab else "body")
        yield from self._below

    async def furnish(self, tab: Tab) -> None:
        """Make the panels of a view, where it has none yet."""
        body = self.query_one(f"#{tab.name}")
        if not body.children and body.is_attached:  # not so where the screen is being left
            read_view(self.app, tab.name)
            body.update_node_styles(animate=False)
            self._inside[tab.name] = tab.panels()
            await body.mount(*self._inside[tab.name])

    async def turn_to(self, tab: Tab) -> None:
        """Show another view."""
        if tab is self.tab:
            return
        self._end_zoom()
        self.set_focus(None)
        await self.furnish(tab)
        self.query_one(f"#{self.tab.name}").remove_class("-shown")
        self.tab = tab
        self._mark(tab)
        if tab.name in WALKED:
            self.set_focus(self.query_one(f"#{tab.name}").query(Panel).first())

    def _mark(self, tab: Tab) -> None:
        self.query_one(f"#{tab.name}").add_class("-shown")
        self.query_one("#verdict").set_class(tab is TABS[0], "-whole")
        self.query_one("#tabs").set_class(tab is not TABS[0], "-shown")

    @property
    def focus_chain(self) -> list[Widget]:
        """What Tab goes through: beside the overview the view comes before the verdict."""
        chain = super().focus_chain
        if self.tab is TABS[0]:
            return chain
        return sorted(chain, key=lambda widget: widget.id == "verdict")

    def panel_with(self, key: str) -> Panel | None:
        """The first panel of the view that this key means something to, where it is in sight."""
        for panel in self.focus_chain:
            if not isinstance(panel, Panel) or panel.size.height < FILTERABLE:
                continue
            if not self._is_unbound(key, panel):
                return panel
        return None

    async def on_key(self, event: events.Key) -> None:
        """Keys that come in one burst are here before the first of them has moved the focus: what
        begins to type is seen to at once, and what comes after it is text."""
        focused = self.focused
        panel = focused if isinstance(focused, Panel) else None
        if panel is not None and panel.typing:
            panel.take_key(event)
        elif event.key in BEGIN and (panel is None or self._is_unbound(event.key, panel)):
            event.stop()
            await self.app.run_action(f"elsewhere({event.key!r})", self.app)

    def _is_unbound(self, key: str, panel: Panel) -> bool:
        """No key of that kind of panel's own."""
        own = actions_of(panel.KIND) if panel.KIND else ()
        return all(key not in action.keys for action in own)

    def show(self, view: View) -> None:
        """Draw a frame."""
        tight = self._fit_next(view)
        self._be(states_of(view.snapshot) | tight)
        for panel in (*self._above, *self._panels, *self._below):
            panel.show(view)

    def _fit_next(self, view: View) -> frozenset[str]:
        """Give the verdict the rows that NEXT needs: the chart has them to spare. Returns the
        classes of the screen for where that is not enough."""
        width, height = self.size or self._first_size
        is_whole = self.tab is TABS[0]
        rows = least_rows(view, width, brief=not is_whole)
        if is_whole and height >= HEADED_FROM:
            rows += 1
        rest = LEAST_VIEW
        if is_whole:
            least = LEAST_OVERVIEW if height >= NORMAL_FROM else LEAST_FLOOR
            rest = least + bool(view.snapshot.ranks) + has_ledger_row(view.snapshot)
        rows = max(0, min(rows, height - 2 - rest))
        if rows != self._verdict_rows:
            self._verdict_rows = rows
            self._verdict.styles.min_height = rows
        tight = TIGHT_OVERVIEW + has_ledger_row(view.snapshot)
        return frozenset(("-tight",) if is_whole and height - 2 - rows < tight else ())

    @property
    def _panels(self) -> Sequence[Panel]:
        return self._inside.get(self.tab.name, ())

    def _be(self, states: frozenset[str]) -> None:
        """With these classes, and the panels styled anew once, if at all."""
        if states != self._states:
            self.remove_class(*(self._states - states), update=False)
            self.add_class(*(states - self._states), update=False)
            self._states = states
            self.update_node_styles(animate=False)

    @property
    def chart_columns(self) -> int:
        """Columns of the view's picture over time as it is laid out now."""
        for panel in self._panels:
            width = panel.size.width
            if width and (columns := panel.columns_in(width)):
                return columns
        return DEFAULT_COLUMNS

    @property
    def zoomed(self) -> bool:
        """One panel has the body for itself."""
        return self.has_class("-zoomed")

    def zoom(self) -> None:
        """The focused panel, or else the view's first, alone: and back."""
        if self.zoomed:
            self._end_zoom()
            return
        body = self.query_one(f"#{self.tab.name}")
        focused = self.focused
        if focused is None or focused.parent not in (body, self):
            focused = next(iter(body.children))
        focused.add_class("-large")
        self.add_class("-zoomed")
        self.set_class(focused.parent is self, "-zoomed-verdict")

    def _end_zoom(self) -> None:
        self.remove_class("-zoomed", "-zoomed-verdict")
        for panel in self.query(".-large"):
            panel.remove_class("-large")
