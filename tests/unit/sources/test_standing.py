"""What is seen of ranks that stand, by their counters, their probes and py-spy."""

import json
import os
from typing import Any

import msgspec
import pytest

from gpuwatch.tui.messages import Collectives
from gpuwatch.tui.model.observations import PendingSeen, RanksSeen, RankUse
from gpuwatch.tui.sources.collectives import Answer, CollectivesAsker
from gpuwatch.tui.sources.standing import (
    ASKS_NS,
    SILENT_NS,
    STANDS_NS,
    Standstill,
    main_frames,
    pending_of,
)
from tests.unit.sources.test_collectives import ENTRY, S, answers, reply


def test_a_rank_that_skips_a_collective_is_named() -> None:
    stuck = {**ENTRY, "collective_seq_id": 157, "input_sizes": [[512, 512]], "retired": False}
    found = pending_of(
        answers(
            reply([stuck], {"enqueued": 157, "started": 157, "completed": 156}),
            reply([], {"enqueued": 156, "started": 156, "completed": 156}),
            reply([stuck], {"enqueued": 158, "started": 157, "completed": 156}),
        )
    )
    assert found is not None
    assert (found.number, found.name, found.bytes) == (157, "all_reduce", 1 << 20)
    assert (found.inside, found.outside) == ((0, 2), (1,))


def test_all_in_it_are_all_in_it_and_none_is_none() -> None:
    both = answers(*[reply([], {"enqueued": 9, "completed": 8})] * 2)
    found = pending_of(both)
    assert found is not None
    assert (found.inside, found.outside, found.bytes) == ((0, 1), (), None)
    assert pending_of(answers(reply([], {"enqueued": 9, "completed": 9}))) is None


def test_who_is_silent_is_not_in_it_where_all_who_answer_are() -> None:
    one = answers(reply([], {"enqueued": 9, "completed": 8}))
    found = pending_of(one, silent=(1,))
    assert found is not None
    assert (found.inside, found.outside) == ((0,), (1,))


def test_who_is_silent_in_another_group_is_not_waited_for() -> None:
    one = answers(reply([], {"enqueued": 9, "completed": 8}, ranks="[0, 2]"))
    found = pending_of(one, silent=(1, 2))
    assert found is not None
    assert (found.inside, found.outside) == ((0,), (2,))
    assert (found.group, found.members) == ("0", (0, 2))


def test_ranks_in_different_collectives_are_distinguished() -> None:
    small = {**ENTRY, "collective_seq_id": 9, "input_sizes": [[3]], "retired": False}
    large = {**small, "input_sizes": [[1024, 1024]]}
    waits = {"enqueued": 9, "completed": 8}
    found = pending_of(answers(reply([small], waits), reply([large], waits)))
    assert found is not None
    assert [(one.rank, one.bytes) for one in found.disagrees] == [(0, 12), (1, 4 << 20)]
    same = pending_of(answers(reply([small], waits), reply([small], waits)))
    assert same is not None
    assert same.disagrees == ()


def test_a_collective_of_another_group_has_the_same_number() -> None:
    other = {**ENTRY, "collective_seq_id": 9, "process_group": ["1", "tp"], "retired": False}
    found = pending_of(answers(reply([other], {"enqueued": 9, "completed": 8})))
    assert found is not None
    assert (found.name, found.bytes) == ("", None)


def in_groups(**groups: tuple[int, int, str]) -> Collectives:
    """A rank's answer: by group (with a letter before its name) how many collectives it has begun
    and ended, and the group's ranks, "" where they are not told."""
    status, config, entries = {}, {}, []
    for letter_and_name, (begun, ended, ranks) in groups.items():
        name = letter_and_name[1:]
        status[name] = {
            "last_enqueued_collective": str(begun),
            "last_completed_collective": str(ended),
        }
        config[name] = {"ranks": ranks}
        stands = {"collective_seq_id": begun, "process_group": [name, "x"], "retired": False}
        entries += [{**ENTRY, **stands}] if begun > ended else []
    body = json.dumps({"entries": entries, "pg_status": status, "pg_config": config})
    return reply(body=body.encode())


def test_ranks_that_wait_for_each_other_in_two_groups_are_both_named() -> None:
    """Rank 1 calls the second group's first collective, to which rank 0 never comes: it was "not in
    all_reduce 206, but in forward"."""
    found = pending_of(
        answers(in_groups(g0=(206, 205, "")), in_groups(g0=(205, 205, ""), g1=(1, -1, "")))
    )
    assert found is not None
    assert (found.number, found.inside, found.outside) == (206, (0,), (1,))
    assert [(one.rank, one.name, one.number, one.group) for one in found.crossed] == [
        (0, "all_reduce", 206, "0"),
        (1, "all_reduce", 1, "1"),
    ]
    assert found.is_sure


def test_of_several_groups_the_one_that_waits_for_a_rank_in_none_counts() -> None:
    """Rank 3 computes for ever; rank 2 waits for it, and rank 0 for rank 2."""
    found = pending_of(
        answers(
            in_groups(g1=(9, 8, "[0, 2]")),
            in_groups(g4=(8, 8, "[1, 3]")),
            in_groups(g1=(8, 8, "[0, 2]"), g3=(30, 29, "[2, 3]")),
            in_groups(g3=(29, 29, "[2, 3]"), g4=(8, 8, "[1, 3]")),
        )
    )
    assert found is not None
    assert (found.group, found.inside, found.outside, found.crossed) == ("3", (2,), (3,), ())


def test_groups_of_one_name_have_their_own_numbers() -> None:
    pair, other = "[0, 1]", "[2, 3]"
    found = pending_of(
        answers(
            in_groups(g1=(30, 30, pair)),
            in_groups(g1=(30, 30, pair)),
            in_groups(g1=(9, 8, other)),
            in_groups(g1=(8, 8, other)),
        )
    )
    assert found is not None
    assert (found.number, found.inside, found.outside) == (9, (2,), (3,))


def test_who_waits_for_a_rank_elsewhere_does_not_wait_for_one_here() -> None:
    """Rank 1 waits for rank 0, and that for rank 8 of another host."""
    found = pending_of(
        answers(
            in_groups(g1=(30, 30, "[0, 1]"), g2=(9, 8, "[0, 8]")),
            in_groups(g1=(31, 30, "[0, 1]")),
        ),
        all_here=False,
    )
    assert found is not None
    assert (found.group, found.inside, found.outside) == ("2", (0,), ())


class Asked(CollectivesAsker):
    """Answers what it is given."""

    def __init__(self, given: dict[int, Answer]) -> None:
        super().__init__()
        self.given = given
        self.of: list[int] = []

    def poll_counters(self, now_ns: int, of: Any) -> dict[int, Answer] | None:
        self.of = list(of)
        return {rank: self.given[rank] for rank in of if rank in self.given} or None


def use(rank: int, open_s: float, heartbeat_s: float) -> RankUse:
    zeros: dict[str, Any] = dict.fromkeys(
        ("counted", "wall_ns", "data_ns", "forward_ns", "backward_ns", "optimizer_ns"), 0
    )
    return RankUse(
        rank=rank,
        pid=os.getpid(),
        running=True,
        state=1,
        steps=9,
        open_kind=4,
        open_since_ns=round(open_s * S),
        heartbeat_ns=round(heartbeat_s * S),
        device=None,
        **zeros,
    )


def ranks_at(t_s: float, *ranks: RankUse) -> RanksSeen:
    return RanksSeen(t_ns=round(t_s * S), world_size=2, interval_ns=S, ranks=ranks)


def stuck(**fields: Any) -> dict[int, Answer]:
    waits = {"enqueued": 9, "completed": 8}
    stands = {**ENTRY, "collective_seq_id": 9, "retired": False}
    return answers(reply([stands], waits, **fields))


def test_nothing_is_asked_while_a_rank_moves() -> None:
    asked = Asked(stuck())
    still = Standstill(asked, "/bin/false")
    moving = 100 - ASKS_NS / S + 0.1
    assert still.look(ranks_at(100, use(0, 10, 100), use(1, moving, 100))) == []
    assert asked.of == []


def test_each_rank_that_answers_has_its_line() -> None:
    frames = [("main", "/a/train.py", 9), ("wait", "/a/train.py", 30)]
    asked = Asked(
        {**stuck(frames=frames), 1: answers(reply([], {"enqueued": 8, "completed": 8}))[0]}
    )
    still = Standstill(asked, "/bin/false")
    (found,) = still.look(ranks_at(100, use(0, 90, 100), use(1, 90, 100)))
    assert isinstance(found, PendingSeen)
    assert (found.inside, found.outside) == ((0,), (1,))
    assert found.ranks[0].way[-1] == "wait (train.py:30)"
    assert (found.ranks[0].name, found.ranks[0].silent, found.ranks[1].silent) == (
        "all_reduce",
        False,
        False,
    )
    moved = still.look(ranks_at(101, use(0, 100.9, 101), use(1, 90, 101)))
    assert [one.number for one in moved if isinstance(one, PendingSeen)] == [-1]


def test_ranks_that_others_elsewhere_wait_for_have_their_places() -> None:
    """None of those here is in a collective; the job has more ranks than these."""
    ended = {"enqueued": 8, "completed": 8}
    frames = [("main", "/a/train.py", 9), ("sleep", "/a/train.py", 40)]
    asked = Asked(answers(reply([], ended, frames=frames)))
    still = Standstill(asked, "/bin/false")
    (found,) = still.look(ranks_at(100, use(0, 90, 100)))
    assert isinstance(found, PendingSeen)
    assert (found.number, found.inside) == (-1, ())
    assert found.ranks[0].way[-1] == "sleep (train.py:40)"
    all_here = Standstill(Asked(answers(*[reply([], ended)] * 2)), "/bin/false")
    assert all_here.look(ranks_at(100, use(0, 90, 100), use(1, 90, 100))) == []


def test_ranks_that_have_made_no_mark_yet_have_their_places() -> None:
    """One never comes to the group that the other waits for."""
    frames = [("main", "/a/train.py", 9), ("load", "/a/train.py", 40)]
    none = reply(why_not="torch.distributed is not initialised", frames=frames)
    still = Standstill(Asked(answers(none, none)), "/bin/false")
    starting = [msgspec.structs.replace(use(rank, 0, 100), open_kind=0) for rank in (0, 1)]
    still.look(ranks_at(100, *starting))
    (found,) = still.look(ranks_at(102, *starting))
    assert isinstance(found, PendingSeen)
    assert (found.number, [one.way[-1] for one in found.ranks]) == (-1, ["load (train.py:40)"] * 2)
    assert all(one.stays for one in found.ranks)


def test_a_rank_that_is_seen_twice_at_one_place_stays_there() -> None:
    frames = [("main", "/a/train.py", 9), ("wait", "/a/train.py", 30)]
    asked = Asked(stuck(frames=frames, taken_ns=99 * S))
    still = Standstill(asked, "/bin/false")
    first = 100 - STANDS_NS / S + 1.0
    assert still.look(ranks_at(100, use(0, first, 100), use(1, first, 100))) == [], "too early"
    (found,) = still.look(ranks_at(102, use(0, first, 102), use(1, first, 102)))
    assert isinstance(found, PendingSeen)
    assert found.ranks[0].stays
    asked.given = stuck(frames=[*frames, ("more", "/a/train.py", 31)], taken_ns=103 * S)
    (found,) = still.look(ranks_at(104, use(0, first, 104), use(1, first, 104)))
    assert isinstance(found, PendingSeen)
    assert not found.ranks[0].stays


def test_an_answer_of_before_the_last_mark_shows_nothing_of_now() -> None:
    asked = Asked(stuck(taken_ns=80 * S))
    still = Standstill(asked, "/bin/false")
    assert still.look(ranks_at(100, use(0, 90, 100), use(1, 90, 100))) == []


def test_a_rank_whose_probe_is_silent_is_not_asked_and_looked_at_by_py_spy() -> None:
    asked = Asked(stuck())
    still = Standstill(asked, "/bin/false")
    (found,) = still.look(ranks_at(100, use(0, 90, 100), use(1, 90, 100 - SILENT_NS / S - 0.1)))
    assert isinstance(found, PendingSeen)
    assert asked.of == [0]
    assert found.outside == (1,)
    assert [(one.silent, one.stays) for one in found.ranks] == [(False, False), (True, True)]
    still.close()


DUMPED = [
    {"pid": 1, "thread_id": 3, "thread_name": "gpuwatch", "os_thread_id": 11, "frames": []},
    {
        "pid": 1, "thread_id": 2, "thread_name": "MainThread", "os_thread_id": 10, "owns_gil": True,
        "frames": [
            {"name": "work", "filename": "/a/train.py", "line": 7, "locals": None},
            {"name": "<module>", "filename": "/a/train.py", "line": 20, "locals": None},
        ],
    },
]  # fmt: skip
"""As py-spy 0.4 writes it."""


def test_a_dump_of_py_spy_has_the_main_thread_outermost_first() -> None:
    frames = main_frames(json.dumps(DUMPED).encode(), 10)
    assert frames == [("<module>", "/a/train.py", 20), ("work", "/a/train.py", 7)]


@pytest.mark.parametrize("dumped", [b"", b"{", b"[]", b"[3]"])
def test_a_dump_that_is_malformed_has_no_frames(dumped: bytes) -> None:
    assert main_frames(dumped, 10) == ()
