"""The wire: golden bytes of version 1, and whatever else arrives is refused."""

from array import array
from typing import Any, get_args

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from gpuwatch.probe import encoding, identity, loaders
from gpuwatch.probe.collectives import Taken
from gpuwatch.probe.device.memory_look import MemoryLook
from gpuwatch.probe.loaders import look_at
from gpuwatch.probe.padding import padding_of
from gpuwatch.probe.wire import marks
from gpuwatch.tui import messages as wire
from gpuwatch.tui.messages import Bye, Dump, ThreadStack
from gpuwatch.tui.requests import (
    AskCollectives,
    AskMemory,
    AskProfile,
    AskStacks,
    Leave,
    Request,
    Subscribe,
)
from gpuwatch.tui.settings import Settings
from gpuwatch.tui.sources.marks.merging import merge_steps
from gpuwatch.tui.sources.marks.reader import MarkReader, columns_of
from gpuwatch.tui.steps import Step
from tests.unit.probe.fake_device import FakeDevice
from tests.unit.probe.held_clock import HeldClock
from tests.unit.probe.test_memory_look import stats


def fields_of(asked: encoding.Request) -> tuple[Any, ...]:
    """Of a subscription, as the monitor has them."""
    return tuple(getattr(asked, name) for name in Subscribe.__struct_fields__)


def test_a_request_survives_the_wire() -> None:
    request = Subscribe(wire.SCHEMA, 1, True)
    asked = encoding.decode_request(wire.encode_message(request))
    assert fields_of(asked) == astuple(request)


def test_golden_bytes_of_version_three() -> None:
    assert wire.SCHEMA == 3
    assert encoding.encode_bye("exiting", 3) == b'["bye","exiting",3]'
    assert wire.decode_reply(b'["bye","exiting",3]') == Bye("exiting", 3)
    written = b'["dump",5,[["MainThread",true,[["f","a.py",3]],false]],0,""]'
    assert (
        encoding.encode_dump((5, [("MainThread", True, [("f", "a.py", 3)], False)], 0, ""))
        == written
    )
    read = Dump(5, [ThreadStack("MainThread", True, [("f", "a.py", 3)], False)], 0)
    assert wire.decode_reply(written) == read


ROWS = [
    (encoding.settings_row({}), Settings),
    (look_at(torch.zeros(4, 5)), wire.BatchSeen),
    (padding_of({"attention_mask": torch.ones(2, 3).long()}, torch), wire.PaddingSeen),
    (MemoryLook(FakeDevice(HeldClock(), stats=stats())).at_end(10**9), wire.Allocated),
]
"""What the probe writes, and what the monitor makes of it."""


@pytest.mark.parametrize(("row", "read"), ROWS)
def test_both_sides_have_the_same_fields(row: Any, read: Any) -> None:
    assert len(row) == len(read.__struct_fields__)
    assert msgspec.convert([*row], read)


def test_both_sides_have_the_same_settings() -> None:
    assert Settings.__struct_fields__ == encoding.SETTINGS


def test_both_sides_have_the_same_subscription() -> None:
    assert set(encoding.Subscribe.__slots__) == set(Subscribe.__struct_fields__)
    least = encoding.decode_request(b'["subscribe",3,7,true]')
    assert fields_of(least) == astuple(Subscribe(3, 7, True))


def test_the_greeting_is_the_identity() -> None:
    who = identity.Identity("ipc:///tmp/x", None)
    greeting = wire.decode_reply(encoding.encode_greeting(who, 5))
    assert isinstance(greeting, wire.Greeting)
    assert all(
        getattr(greeting.hello, name) == getattr(who, name) for name in wire.Hello.__struct_fields__
    )


def test_marks_cross_as_they_stand_in_the_ring() -> None:
    row = loaders.describe_iterator(object())
    seen = (32, 2, 1024, "cpu", False)
    masked = (*seen, 4096, (32, 128, 900, 77, True))
    allocated = (9, 0, None, 0, 1, 2, 3, 4, 5, 6, None, None, None, 5, None)
    body = b"\n{" + bytes(14)
    head = (
        1, 2, 1, 3, ["other phases"], [(0, row, True, 7)], [(0, seen), (1, masked)], 1024, None,
        300, None, encoding.settings_row({"threads": 4}), 0, [(0, True)], [(5, 0, [(0, 1)])],
        [(0, 1, 2, 3)], [allocated], 50_000, 0, "", [(5, "norm", "", 0.0, "nan")],
        (20_000, 9_000),
    )  # fmt: skip
    assert len(head) == len(wire.Marks.__struct_fields__)
    read = wire.decode_reply(encoding.encode_marks(head) + body)
    assert isinstance(read, wire.Marks)
    assert read.body == body
    assert read.loaders[0][1:] == (wire.Loader(*row), True, 7)
    padding = wire.PaddingSeen(32, 128, 900, 77, True)
    assert read.batches == [
        (0, wire.BatchSeen(*seen)),
        (1, wire.BatchSeen(*seen, 4096, padding)),
    ]
    assert read.settings == Settings(threads=4)
    assert read.allocated[0].peak_reserved == 4
    assert read.notes == [wire.Noted(5, "norm", "", 0.0, "nan")]
    assert read.update_wrapper_ns == (20_000, 9_000)


def test_a_kind_that_is_not_known_is_passed_over_and_counted() -> None:
    reader = MarkReader()
    body = array("q", [100, 200, 300, 400, 500, -6, -99, -7, -8, -9]).tobytes()
    batch = reader.read(
        wire.Marks(
            1, 9, 5, 0, [], [], [], None, None, None, None, None, 0, [], [], [], [], None, 0,
            body,
        )
    )  # fmt: skip
    assert (reader.unknown, batch.lost_marks, batch.open.kind) == (1, 0, marks.OPTIMIZER_LEAVE)
    with pytest.raises(ValueError, match="bytes of marks"):
        columns_of(b"x")


def test_golden_bytes_of_the_deep_look() -> None:
    profile = wire.encode_message(AskProfile(3, 9, True, "k", "0", 431))
    assert profile == b'["profile",3,9,true,"k","0",431]'
    for frame, behind in ((profile, ("0", 431)), (b'["profile",3,9,true,"k"]', ("", 0))):
        asked = encoding.decode_request(frame)
        assert isinstance(asked, encoding.AskProfile)
        assert (asked.steps, asked.most_ns, asked.operators, asked.key) == (3, 9, True, "k")
        assert (asked.group, asked.number) == behind
    memory = wire.encode_message(AskMemory(5, False, "k"))
    assert memory == b'["memory",5,false,"k"]'
    kept = encoding.decode_request(memory)
    assert isinstance(kept, encoding.AskMemory)
    assert (kept.for_ns, kept.host, kept.key) == (5, False, "k")
    answer = wire.decode_reply(encoding.encode_profile({"why_not": "no"}))
    assert answer == wire.Profiled(b'{"why_not":"no"}')
    seen = wire.decode_reply(encoding.encode_memory({"why_not": "no"}))
    assert seen == wire.MemorySeen(b'{"why_not":"no"}')


def test_golden_bytes_of_a_look_at_the_stacks() -> None:
    assert wire.encode_message(AskStacks()) == b'["stacks"]'
    assert encoding.decode_request(b'["stacks"]') == "stacks"


def test_golden_bytes_of_what_is_asked_of_the_flight_recorder() -> None:
    asked = wire.encode_message(AskCollectives(7, True, "k"))
    assert asked == b'["collectives",7,true,"k"]'
    read = encoding.decode_request(asked)
    assert isinstance(read, encoding.AskCollectives)
    assert (read.at_ns, read.entries, read.key) == (7, True, "k")


def test_what_the_flight_recorder_has_is_a_line_and_its_own_json() -> None:
    logged = [100, 5, 4, 3, 2, 1, 0, 9, 2]
    frames = [("train", "train.py", 9)]
    taken = Taken(1, 2, True, 3, [logged], "", frames, b'{"entries":[]}\n')
    frame = encoding.encode_collectives(taken)
    head = b'["collectives",1,2,true,3,[[100,5,4,3,2,1,0,9,2]],"",[["train","train.py",9]]]\n{'
    assert frame.startswith(head)
    read = wire.decode_reply(frame)
    assert isinstance(read, wire.Collectives)
    assert read.body == taken.body
    assert read.modules == [wire.DdpTimes(*logged)]
    assert read.frames == frames
    older = wire.decode_reply(b'["collectives",1,2,true,3,[],""]\n{}')
    assert isinstance(older, wire.Collectives)
    assert (older.frames, older.body) == ([], b"{}")


def test_what_can_be_asked_for_is_a_closed_list() -> None:
    watching = (Subscribe, Leave, AskStacks, AskCollectives)
    assert get_args(Request) == (*watching, AskProfile, AskMemory)


@pytest.mark.parametrize(
    "asked", [["burst", 3], ["memories"], ["rate", 9], ["exec", "id"], ["stack"], [], "stacks", 3]
)
def test_any_other_command_is_refused(asked: object) -> None:
    with pytest.raises(ValueError, match=r"Invalid value|not a request"):
        encoding.decode_request(msgspec.json.encode(asked))


@pytest.mark.parametrize(
    "asked",
    [b'["subscribe",2,1]', b'["subscribe",2,true,true]', b'["subscribe",2,1,true,0,0,5]',
     b'["leave",1.0]', b'["leave","1"]',
     b'["leave",%d]' % 2**64, b'["leave",' + b"9" * 4070 + b"]", b"[" * 4096, b'["leave",NaN]'],
)  # fmt: skip
def test_a_request_whose_fields_are_wrong_is_refused(asked: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        encoding.decode_request(asked)


def test_a_newer_monitor_may_append_fields() -> None:
    asked = encoding.decode_request(b'["subscribe",3,7,true,5,900,"key",true,{"and":["more"]}]')
    assert fields_of(asked) == (3, 7, True, 5, 900, "key", True)


def test_a_newer_version_may_append_fields() -> None:
    assert wire.decode_reply(b'["bye","exiting",3,{"and":["more"]}]') == Bye("exiting", 3)


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(frame: bytes) -> None:
    for decode in (wire.decode_reply, encoding.decode_request, wire.decode_hello):
        try:
            decode(frame)
        except ValueError:
            continue


def test_a_frame_without_end_is_refused_before_it_is_read() -> None:
    with pytest.raises(ValueError, match="bytes"):
        wire.decode_reply(b"\x00" * (wire.MAX_FRAME_BYTES + 1))


def test_the_schema_is_one_number() -> None:
    assert identity.SCHEMA == wire.SCHEMA


def test_merged_steps_keep_every_sum() -> None:
    steps = [
        Step(
            n,
            1,
            n * 100,
            n * 100 + 100,
            n,
            0,
            2,
            3,
            4,
            91 - n,
            0,
            0,
            0,
            {},
            1,
            1,
            1,
            8,
            0,
            n,
            False,
        )
        for n in range(1, 91)
    ]
    merged = merge_steps(steps, 20)
    assert len(merged) <= 20
    assert sum(step.count for step in merged) == 90
    assert sum(step.data_ns for step in merged) == sum(step.data_ns for step in steps)
    assert [merged[0].start_ns, merged[-1].end_ns] == [100, 9100]
    assert merged[-1].number == 90
    assert merge_steps(steps, 90) is steps


def test_batches_that_were_not_looked_at_count_as_large_as_the_others() -> None:
    known = Step(1, 1, 0, 100, 9, 0, 2, 3, 4, 82, 0, 0, 0, {}, 1, 1, 1, 32, 0, 9, False)
    unknown = replace(known, samples=None)
    (merged,) = merge_steps([known, unknown, unknown], 1)
    assert (merged.samples, merged.fetches) == (96, 3)
    (merged,) = merge_steps([unknown, unknown], 1)
    assert merged.samples is None


def test_a_page_that_is_met_late_numbers_its_steps_as_the_run_does() -> None:
    """Twenty steps of a bare loop; of its marks the last ones are read."""
    step = [
        *(marks.FETCH_ENTER, marks.FETCH_LEAVE, marks.BACKWARD_ENTER, marks.BACKWARD_LEAVE),
        *(marks.OPTIMIZER_ENTER, marks.OPTIMIZER_LEAVE),
    ]
    kinds = [marks.word_of(kind) for kind in step] * 20
    times = [10 * at for at in range(len(kinds))]

    def body(since: int) -> bytes:
        return array("q", times[since:]).tobytes() + array("q", kinds[since:]).tobytes()

    whole = MarkReader().page_steps(0, body(0), 19)
    steps = MarkReader().page_steps(62, body(62), 19)
    assert len(steps) > 5
    assert [(one.number, one.end_ns) for one in steps] == [
        (one.number, one.end_ns) for one in whole[-len(steps) :]
    ]


def test_settings_survive_the_wire() -> None:
    known = encoding.settings_row(
        {"capability": 90, "threads": 4, "autocast": "", "set_to_none": False}
    )
    head: tuple[Any, ...] = (
        1,
        2,
        3,
        4,
        [],
        [],
        [],
        None,
        None,
        None,
        None,
        known,
        0,
        [],
        [],
        [],
        [],
        None,
        0,
    )
    read = wire.decode_reply(encoding.encode_marks(head))
    assert isinstance(read, wire.Marks)
    assert read.settings == Settings(threads=4, autocast="", set_to_none=False, capability=90)
