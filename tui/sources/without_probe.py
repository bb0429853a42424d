"""The state page as a source, and a process that has no probe yet."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...probe.wire import page
from ..discovery.command_lines import has_torch, install_line, run_again
from ..discovery.state_page import OpenPage
from ..discovery.targets import own_page
from ..messages import Hello
from ..model.observations import AnyObservation, Greeted, Missing, PageSeen
from .feed import FeedSource

PAGE_NS: Final = 250_000_000
SEARCH_NS: Final = 1_000_000_000


class PageSource:
    """Reads the words four times a second: 0.5 us and no system call of the target's."""

    name: Final = "page"
    interval_ns = PAGE_NS

    def __init__(self, opened: OpenPage, pid: int | None = None) -> None:
        """`pid` as it is here: in a container the process itself knows another."""
        self._page = opened
        self._pid = opened.hello.pid if pid is None else pid
        self._look_ns = 0
        self._greeted = False
        self._fault_reported = False

    @property
    def hello(self) -> Hello:
        """As it was read last."""
        return self._page.hello

    def open(self) -> None:
        """The page is open already: it is how the process was found."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """The words, and the hello the first time, and as it says which rank this is."""
        seen: list[AnyObservation] = []
        if now_ns >= self._look_ns:
            self._look_ns = now_ns + SEARCH_NS
            if self._page.words().state == page.STATE_UNINSTALLED:
                self._look_for_another()
            elif self._page.hello.rank is None:
                self._look_for_rank()
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

    def _look_for_another(self) -> None:
        """The page of a probe that was installed once more."""
        opened = own_page(self._pid)
        if opened is None:
            return
        if opened.words().state == page.STATE_UNINSTALLED:
            opened.close()  # the same one, which the process could not let go of
        else:
            self._page.close()
            self._page = opened
            self._greeted = self._fault_reported = False

    def _look_for_rank(self) -> None:
        """A script may have its ranks numbered long after it has installed the probe."""
        try:
            rank = self._page.reread_hello().rank
        except ValueError:
            return  # it is being rewritten
        self._greeted = self._greeted and rank is None


TORCH_NS: Final = 5_000_000_000
"""A process that has not loaded torch after so long is reported."""
INJECTABLE: Final = (3, 14)
ADDS: Final = "step times, times on the GPU's clock, and what each wait costs"


class WithoutProbe:
    """Looks for a probe once a second; once one is injected, it is that probe's page and feed."""

    name: Final = "probe"

    def __init__(
        self,
        pid: int,
        python: tuple[int, int] | None,
        proc: Path = Path("/proc"),
        *,
        stacks: bool = True,
        lacks_stacks: Callable[[], bool] = lambda: False,
    ) -> None:
        """`stacks`: they are sampled. `lacks_stacks` is for the feed of a probe that comes."""
        self._lacks_stacks = lacks_stacks
        self._stacks = stacks
        self._pid = pid
        self._python = python
        self._maps = proc / str(pid) / "maps"
        self._reported = False
        self._since_ns: int | None = None
        self._has_torch = False
        self._torch_reported = False
        self._next_ns = 0
        self._page: PageSource | None = None
        self._feed: FeedSource | None = None

    @property
    def interval_ns(self) -> int:
        """The feed's pace, once there is one."""
        return SEARCH_NS if self._feed is None else self._feed.interval_ns

    @property
    def hello(self) -> Hello | None:
        """Of the probe that came, as it was read last."""
        return None if self._page is None else self._page.hello

    def open(self) -> None:
        """Nothing is held until a probe comes."""

    def poll(self, now_ns: int) -> list[AnyObservation]:
        """That there is none; or what it sends."""
        if self._page is not None and self._feed is not None:
            return [*self._poll_page(self._page, now_ns), *self._feed.poll(now_ns)]
        opened = own_page(self._pid)
        if opened is not None:
            return self._take(opened, now_ns)
        return [*self._report_none(now_ns), *self._report_torch(now_ns)]

    def close(self) -> None:
        """Close the probe that came."""
        if self._page is not None and self._feed is not None:
            self._page.close()
            self._feed.close()

    def _take(self, opened: OpenPage, now_ns: int) -> list[AnyObservation]:
        self._page = PageSource(opened, self._pid)
        self._feed = FeedSource(opened.hello, self._pid, self._lacks_stacks)
        self._feed.open()
        back = [Missing(t_ns=now_ns, source=self.name, reason="")]
        if self._torch_reported:
            back.append(Missing(t_ns=now_ns, source="torch", reason=""))
        return [*back, *self._poll_page(self._page, now_ns)]

    def _poll_page(self, page: PageSource, now_ns: int) -> list[AnyObservation]:
        """At its own pace, which is slower than the feed's."""
        if now_ns < self._next_ns:
            return []
        self._next_ns = now_ns + page.interval_ns
        return page.poll(now_ns)

    def _report_none(self, now_ns: int) -> list[Missing]:
        if self._reported:
            return []
        self._reported = True
        fix = f"Start it with: {run_again(self._pid)}, or with {install_line(self._pid)} at its top"
        if self._python is not None and self._python >= INJECTABLE:
            fix = f"gpuwatch attach --inject {self._pid}, or start it with: {run_again(self._pid)}"
        reason = f"not in the process: it adds {ADDS}"
        missing = [Missing(t_ns=now_ns, source=self.name, reason=reason, fix=fix)]
        if not self._stacks:
            off = "not sampled: without a probe nothing else shows what the run does"
            missing.append(
                Missing(t_ns=now_ns, source="stacks", reason=off, fix="Leave out --no-stacks")
            )
        return missing

    def _report_torch(self, now_ns: int) -> list[Missing]:
        if self._has_torch:
            return []
        self._since_ns = now_ns if self._since_ns is None else self._since_ns
        known = has_torch(self._maps)
        self._has_torch = bool(known) if self._torch_reported else known is not False
        if self._has_torch and self._torch_reported:
            return [Missing(t_ns=now_ns, source="torch", reason="")]
        if self._has_torch or self._torch_reported or now_ns - self._since_ns < TORCH_NS:
            return []
        self._torch_reported = True
        reason = "no torch loaded: it does not train, as far as can be seen"
        return [Missing(t_ns=now_ns, source="torch", reason=reason, fix="See: gpuwatch ls")]
