"""One reader for all monitors of a job."""

import os
from typing import ClassVar, Final

import msgspec

from gpuwatch.tui.fleet.ranks import SharedRanks
from gpuwatch.tui.messages import Hello
from gpuwatch.tui.model.observations import AnyObservation, RanksSeen
from tests.unit.session.making import HELLO

PID = os.getpid()
"""Whose environment says of which job it is: the same for all."""
RANKS = [msgspec.structs.replace(HELLO, rank=rank, world_size=3) for rank in range(3)]


class Reader:
    """Counts how often it is asked."""

    name: Final = "ranks"
    interval_ns = 200_000_000
    made: ClassVar["list[Reader]"] = []

    def __init__(self, pid: int, hello: Hello) -> None:
        self.asked = 0
        self.is_open = False
        self.made.append(self)

    def open(self) -> None:
        self.is_open = True

    def poll(self, now_ns: int) -> list[AnyObservation]:
        self.asked += 1
        return [RanksSeen(t_ns=now_ns, world_size=3, interval_ns=1, ranks=())]

    def close(self) -> None:
        self.is_open = False


def test_one_reads_and_all_see_it() -> None:
    Reader.made = []
    shared = SharedRanks(Reader)
    first, second, third = (shared.source(PID, hello) for hello in RANKS)
    for now_ns in (1, 2):
        seen = first.poll(now_ns)
        assert second.poll(now_ns) == third.poll(now_ns) == seen != []
    (reader,) = Reader.made
    assert (reader.asked, reader.is_open) == (2, True)
    assert second.poll(3) == []


def test_another_goes_on_where_the_reader_left() -> None:
    Reader.made = []
    shared = SharedRanks(Reader)
    first, second = (shared.source(PID, hello) for hello in RANKS[:2])
    first.poll(1)
    first.close()
    assert not Reader.made[0].is_open
    assert len(second.poll(2)) == 1  # what was handed on before
    assert len(second.poll(3)) == 1
    assert [reader.is_open for reader in Reader.made] == [False, True]
    second.close()
    assert not Reader.made[1].is_open


def test_jobs_of_another_size_are_others() -> None:
    Reader.made = []
    shared = SharedRanks(Reader)
    shared.source(PID, RANKS[0]).poll(1)
    shared.source(PID, msgspec.structs.replace(RANKS[0], world_size=8)).poll(1)
    assert len(Reader.made) == 2
