"""What PyTorch's flight recorder gives, parsed and matched over ranks."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from gpuwatch.tui.messages import Collectives, DdpTimes
from gpuwatch.tui.sources import collectives
from gpuwatch.tui.sources.collectives import (
    AHEAD_NS,
    EVERY_NS,
    NO_ENTRIES,
    NO_SOCKET,
    PATIENCE_NS,
    Answer,
    CollectivesAsker,
    RankLink,
    answer_of,
    collectives_of,
    ddp_of,
    trace_of,
    why_not,
)
from tests.unit.session.making import HELLO

S = 1_000_000_000
ENTRY: dict[str, Any] = {
    "collective_seq_id": 62, "input_dtypes": ["Float"], "input_sizes": [[787968]], "is_p2p": False,
    "op_id": 62, "output_dtypes": ["Float"], "output_sizes": [[787968]], "p2p_seq_id": 0,
    "pg_id": 0, "process_group": ["0", "default_pg"], "profiling_name": "gloo:all_reduce",
    "record_id": 61, "retired": True, "state": "scheduled", "thread_id": "140109941136256",
    "thread_name": "python", "time_created_ns": 5_000 * S, "time_discovered_completed_ns": 0,
    "time_discovered_started_ns": 0, "timeout_ms": 1800000,
}  # fmt: skip
"""As torch 2.13 writes it."""


def reply(
    entries: list[dict[str, Any]] | None = None,
    status: dict[str, int] | None = None,
    ranks: str = "",
    **fields: Any,
) -> Collectives:
    """An answer; `status`: enqueued and completed, as PyTorch's texts; `ranks`: the group's."""
    counters = {f"last_{name}_collective": str(value) for name, value in (status or {}).items()}
    body = {"entries": entries or [], "pg_status": {"0": counters} if status else {}}
    if ranks:
        body["pg_config"] = {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}
    given: dict[str, Any] = {
        "taken_ns": 100 * S, "unix_ns": 5_100 * S, "entries": True, "cost_ns": 1, "modules": [],
        "why_not": "", "body": json.dumps(body).encode(), **fields,
    }  # fmt: skip
    return Collectives(**given)


def test_an_entry_of_torch_on_the_clock_of_the_steps() -> None:
    answer = reply([ENTRY, {**ENTRY, "is_p2p": True}])
    (one,) = collectives_of(answer, trace_of(answer))
    assert (one.group, one.number, one.bytes) == ("0", 62, 4 * 787968)
    assert (one.created_ns, one.duration_ns, one.done) == (0, None, True)


def test_groups_that_were_split_at_once_are_told_apart() -> None:
    """All of them have one name; that of the first group needs no ranks."""
    split = {**ENTRY, "process_group": ["3", "mesh_tp"]}
    groups = []
    for ranks in ("[0, 1]", "[2, 3]"):
        config = {"0": {"ranks": "[0, 1, 2, 3]"}, "3": {"ranks": ranks}}
        body = json.dumps({"entries": [ENTRY, split], "pg_config": config}).encode()
        answer = answer_of(reply(body=body), with_ranks=True)
        groups.append([one.group for one in answer.collectives])
    assert groups == [["0", "3 [0, 1]"], ["0", "3 [2, 3]"]]


def test_an_entry_of_nccl_has_its_duration() -> None:
    timed = {**ENTRY, "duration_ms": 0.179, "state": "completed", "retired": False}
    running = {**ENTRY, "state": "started", "retired": False, "input_dtypes": ["BFloat16"]}
    answer = reply([timed, running])
    first, second = collectives_of(answer, trace_of(answer))
    assert (first.duration_ns, first.done) == (179_000, True)
    assert (second.duration_ns, second.done, second.bytes) == (None, False, 2 * 787968)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"entries": 3}', b'{"entries": [{"is_p2p": []}]}'])
def test_what_is_malformed_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        trace_of(reply(body=body))
    answer = answer_of(reply(body=body))
    assert answer.collectives == ()
    assert "malformed" in why_not({0: answer})


@pytest.mark.parametrize("ms", ["-1.0", "1e300", "1e999"])
def test_figures_that_no_collective_has_are_none(ms: str) -> None:
    body = json.dumps({"entries": [{**ENTRY, "input_sizes": [[2**62, 2**62], [-4], [8]]}]})
    answer = answer_of(
        reply(body=body.replace('"op_id"', f'"duration_ms": {ms}, "op_id"').encode())
    )
    if answer.reply.why_not:
        assert "malformed" in answer.reply.why_not
    else:
        (one,) = answer.collectives
        assert (one.duration_ns, one.bytes) == (None, 32)


def answers(*replies: Collectives) -> dict[int, Answer]:
    return {rank: answer_of(one) for rank, one in enumerate(replies)}


def test_why_there_are_none() -> None:
    begun = {"enqueued": 9, "completed": 9}
    assert why_not(answers(reply(), reply(why_not="turned off"))) == "turned off"
    assert why_not(answers(reply(status=begun), reply(status=begun))) == NO_ENTRIES
    assert why_not(answers(reply(), reply())) == "", "no collective has begun"
    assert why_not(answers(reply([ENTRY], begun), reply([ENTRY], begun))) == ""


def test_of_several_modules_the_largest_counts() -> None:
    small, large = (DdpTimes(1, 2, 3, 4, 5, 6, 0, size, 1) for size in (10, 1_000))
    assert ddp_of(answers(reply(modules=[small, large]), reply())) == {0: large}


class Links:
    """Ranks' probes: what each was asked, and what it has answered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
        self.asked: list[tuple[int, int, bool]] = []
        self.answers: dict[int, list[Collectives]] = {}
        links = self

        class Link:
            why_not = ""

            def __init__(self, hello: object, pid: int, uid: int) -> None:
                self.rank = pid

            def ask(self, context: object, at_ns: int, entries: bool) -> None:
                links.asked.append((self.rank, at_ns, entries))

            def answers(self) -> list[Collectives]:
                return links.answers.pop(self.rank, [])

            def close(self) -> None:
                pass

        monkeypatch.setattr(collectives, "RankLink", Link)
        self.asker = CollectivesAsker()
        for rank in range(ranks):
            self.asker.link(rank, HELLO, rank, 0)


def test_all_ranks_are_asked_for_the_same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    links = Links(monkeypatch, 2)
    for ms in range(0, 500, 100):
        assert links.asker.poll(ms * 1_000_000) is None
    (first, at_ns, entries), second = links.asked
    assert (first, second) == (0, (1, at_ns, True))
    assert entries
    assert at_ns > AHEAD_NS
    links.answers = {0: [reply(cost_ns=35_000_000)]}
    assert links.asker.poll(S) is None, "rank 1 has not answered"
    links.answers = {1: [reply()]}
    found = links.asker.poll(2 * S)
    assert found is not None
    assert sorted(found) == [0, 1]
    assert links.asker.cost_ns == 35_000_000
    links.asker.close()


def test_where_one_does_not_answer_the_others_show_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of them alone a wait for that one would look like transfer."""
    links = Links(monkeypatch, 2)
    asked: list[int] = []
    for ms in range(0, 30_000, 100):
        if links.asked and len(links.asked) // 2 > len(asked):
            asked.append(ms)
            links.answers[0] = [reply()]
        assert links.asker.poll(ms * 1_000_000) is None
    assert 2 <= len(asked) <= 4, "it is asked again, and not at once"
    assert asked[1] - asked[0] > (AHEAD_NS + PATIENCE_NS) // 1_000_000
    links.answers[0] = [reply()]
    links.asker.unlink(1)
    assert list(links.asker.poll(31 * S) or ()) == [0], "it has ended"
    links.asker.close()


def test_a_rank_that_never_answers_is_told_from_one_that_answers_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    links = Links(monkeypatch, 3)
    for ms in range(0, 25_000, 100):
        links.answers[0] = [reply()]
        if ms == 24_000:
            links.answers[2] = [reply()]
        links.asker.poll(ms * 1_000_000)
    (found,) = links.asker.unanswered(25 * S).items()
    assert found == (1, (links.asked[0][1], ""))
    links.asker.unlink(1)
    assert links.asker.unanswered(25 * S) == {}, "it has ended"
    links.asker.close()


@pytest.mark.parametrize("fault", [None, "no room in /tmp"])
def test_a_rank_without_a_socket_says_why(fault: str | None) -> None:
    link = RankLink(replace(HELLO, endpoint=None, fault=fault), 1, 0)
    link.ask(None, 0, entries=True)  # type: ignore[arg-type]
    assert link.why_not == (fault or NO_SOCKET)
    assert link.answers() == []


def test_dear_entries_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    links = Links(monkeypatch, 1)
    ends_ns: list[int] = []
    for ms in range(0, 40_000, 100):
        links.answers[0] = [reply(cost_ns=1_000_000 if len(ends_ns) < 2 else 35_000_000)]
        if links.asker.poll(ms * 1_000_000) is not None:
            ends_ns.append(ms * 1_000_000)
    assert EVERY_NS < ends_ns[1] - ends_ns[0] < 2 * EVERY_NS
    assert ends_ns[3] - ends_ns[2] > 35_000_000 / 0.003
    links.asker.close()


def test_many_ranks_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    links = Links(monkeypatch, 20)
    for ms in (0, 300):
        links.asker.poll(ms * 1_000_000)
    links.answers = {rank: [reply()] for rank in range(20)}
    polls = 0
    while (found := links.asker.poll(S)) is None:
        polls += 1
    assert (len(found), polls) == (20, 6)
    links.asker.close()
