"""The state page as a source: the open phase, even while the process cannot answer."""

from typing import Final

from ...probe.wire import page
from ..discovery.state_page import OpenPage
from ..model.observations import AnyObservation, Greeted, Missing, PageSeen

LOOK_NS: Final = 250_000_000


class PageSource:
    """Reads the words four times a second: 0.5 us and no system call of the target's."""

    name: Final = "page"
    interval_ns = LOOK_NS

    def __init__(self, opened: OpenPage) -> None:
        self._page = opened
        self._greeted = False
        self._fault_reported = False

    def open(self) -> None:
        """The page is open already: it is how the process was found."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """The words, and the hello the first time."""
        seen: list[AnyObservation] = []
        if not self._greeted:
            self._greeted = True
            seen.append(Greeted(t_ns=now_ns, hello=self._page.hello))
        words = self._page.words()
        if words.state == page.STATE_DISARMED and not self._fault_reported:
            self._fault_reported = True
            fault = self._page.reread_hello().fault or "a hook failed"
            seen.append(
                Missing(
                    t_ns=now_ns,
                    source="feed",
                    reason=f"the probe stopped watching ({fault})",
                    fix="restart the run to watch it again, and please report this",
                )
            )
        seen.append(
            PageSeen(
                t_ns=now_ns,
                open_kind=words.open_kind,
                open_since_ns=words.open_since_ns,
                steps=words.steps,
                heartbeat_ns=words.heartbeat_ns,
                state=words.state,
            )
        )
        return seen

    def close(self) -> None:
        """Let go of the page."""
        self._page.close()
