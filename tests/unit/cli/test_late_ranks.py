"""A process that is attached to before it says which rank it is."""

import os

from gpuwatch.probe.identity import Identity
from gpuwatch.probe.state_page import StatePage
from gpuwatch.probe.wire import page
from gpuwatch.tui.cli.target import LateRanks
from gpuwatch.tui.messages import Hello
from gpuwatch.tui.model.observations import AnyObservation, Greeted, Missing
from gpuwatch.tui.sources.without_probe import PageSource
from tests.unit.sources.own_pages import opened_at

S = 1_000_000_000
ENDPOINT = "ipc:///tmp/late-ranks-of-a-test"


class Ranks:
    """Counts what is asked of it."""

    name = "ranks"
    interval_ns = 7

    def __init__(self) -> None:
        self.opened = self.closed = 0

    def open(self) -> None:
        self.opened += 1

    def poll(self, now_ns: int) -> list[AnyObservation]:
        return [Missing(t_ns=now_ns, source="ranks", reason="")]

    def close(self) -> None:
        self.closed += 1


def test_its_ranks_are_looked_for_as_soon_as_it_does() -> None:
    identity = Identity(ENDPOINT, None)
    identity.rank = identity.world_size = None
    held = StatePage(identity.as_json(page.HELLO_BYTES))
    opened = opened_at(ENDPOINT)
    source, ranks, found = PageSource(opened, os.getpid()), Ranks(), []

    def ranks_of(hello: Hello) -> Ranks:
        found.append(hello)
        return ranks

    late = LateRanks(lambda: source.hello, ranks_of)  # type: ignore[arg-type]
    try:
        source.poll(0)
        assert (late.poll(0), late.interval_ns) == ([], S)
        late.close()
        identity.rank, identity.world_size = 1, 2
        held.write_hello(identity.as_json(page.HELLO_BYTES))
        (greeted, _), (unchanged,) = source.poll(S), source.poll(2 * S)
        assert isinstance(greeted, Greeted)
        assert not isinstance(unchanged, Greeted)
        assert (greeted.hello.rank, greeted.hello.world_size) == (1, 2)
        assert all(len(late.poll(now_ns)) == 1 for now_ns in (S, 2 * S))
        late.close()
        assert (found, late.interval_ns) == ([greeted.hello], 7)
        assert (ranks.opened, ranks.closed) == (1, 1)
    finally:
        source.close()
        held.close(page.STATE_ENDED)
