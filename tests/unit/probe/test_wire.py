"""The wire: golden bytes of version 1, and whatever else arrives is refused."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.probe import identity
from gpuwatch.probe.merging import merge_steps
from gpuwatch.probe.wire import messages as wire
from gpuwatch.probe.wire.dump import Dump, ThreadStack
from gpuwatch.probe.wire.messages import (
    AskStacks,
    Batch,
    Bye,
    Leave,
    Loader,
    Open,
    Request,
    Step,
    Subscribe,
)

STEP = Step(
    7, 1, 100, 200, 10, 0, 20, 40, 20, 10, 0, 0, 0, {"augment": 5}, 1, 1, 1, 32, 2, 10, False
)
LOADER = Loader(5, "_MultiProcessingDataLoaderIter", 2, 2, False, True, 32, 100, (11, 12), "Rows")


def batch_of(**fields: Any) -> Batch:
    """A message of one step, with `fields` besides."""
    opened = Open(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, None, False)
    return Batch(1, 2, [STEP], opened, [LOADER], 0, 1024, 300, 42, None, **fields)


def test_everything_survives_the_wire() -> None:
    batch = batch_of()
    assert wire.decode_reply(wire.encode_message(batch)) == batch
    request = Subscribe(wire.SCHEMA, 1, True)
    assert wire.decode_request(wire.encode_message(request)) == request


def test_golden_bytes_of_version_one() -> None:
    assert wire.SCHEMA == 1
    assert wire.encode_message(Bye("exiting", 3)).hex() == "93a3627965a765786974696e6703"
    assert wire.decode_reply(bytes.fromhex("93a3627965a765786974696e6703")) == Bye("exiting", 3)


def test_golden_bytes_of_the_one_command() -> None:
    assert wire.encode_message(AskStacks()).hex() == "91a6737461636b73"
    assert wire.decode_request(bytes.fromhex("91a6737461636b73")) == AskStacks()
    dump = Dump(5, [ThreadStack("MainThread", True, [("f", "a.py", 3)], False)], 0)
    told = "95a464756d70059194aa4d61696e546872656164c39193a166a4612e707903c200a0"
    assert wire.encode_message(dump).hex() == told
    assert wire.decode_reply(bytes.fromhex(told)) == dump


def test_what_can_be_asked_for_is_a_closed_list() -> None:
    assert get_args(Request) == (Subscribe, Leave, AskStacks)


@pytest.mark.parametrize(
    "asked", [["burst", 3], ["memory"], ["rate", 9], ["exec", "id"], ["stack"], [], "stacks", 3]
)
def test_any_other_command_is_refused(asked: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        wire.decode_request(msgspec.msgpack.encode(asked))


def test_a_newer_version_may_append_fields() -> None:
    assert wire.decode_reply(bytes.fromhex("94a3627965a765786974696e6703a3")[:-1] + b"\x2a") == Bye(
        "exiting", 3
    )


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(frame: bytes) -> None:
    for decode in (wire.decode_reply, wire.decode_request, wire.decode_hello):
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
