"""py-spy's trace, read back into samples with their times."""

import pytest
from msgspec import DecodeError

from gpuwatch.tui.sources.py_spy import read_trace, standing_at, with_unseen
from tests.unit.sources.traces import process, thread, trace

MAIN = [process(10), thread(10)]
WORKER = [process(10), process(12), thread(12)]
WAIT = ("wait", "/x/train.py", 3)
SPIN = ("spin", "/x/train.py", 5)
LOAD = ("load", "/x/data.py", 7)


def test_a_stack_is_reported_when_it_changes_and_not_when_it_stays() -> None:
    samples = [
        (at_us, 10, 0xA, [*MAIN, frame])
        for at_us, frame in ((40_000, WAIT), (130_000, WAIT), (210_000, SPIN), (350_000, WAIT))
    ]
    read = read_trace(trace(samples, 500_000))
    assert read.moments_us == (40_000, 210_000, 350_000)
    assert read.ended_us == 500_000
    (main,) = read.threads
    assert main.at_us == (40_000, 210_000, 350_000)
    assert [stack[-1] for stack in main.stacks] == [WAIT, SPIN, WAIT]


def test_a_forked_worker_at_the_same_address_is_distinguished() -> None:
    samples = []
    for at_us, frame in ((40_000, WAIT), (130_000, WAIT), (210_000, SPIN)):
        samples.append((at_us, 10, 0xA, [*MAIN, frame]))
        samples.append((at_us + 90, 12, 0xA, [*WORKER, LOAD]))
    read = read_trace(trace(samples, 500_000))
    assert read.moments_us == (40_000, 130_000, 210_000)
    main, worker = read.threads
    assert [stack[-1] for stack in main.stacks] == [WAIT, WAIT, SPIN]
    assert [stack[-1] for stack in worker.stacks] == [LOAD] * 3
    assert worker.stacks[0][:3] == tuple(WORKER)


def test_two_at_the_same_microsecond_are_two() -> None:
    samples = [
        (40_000, 10, 0xA, [*MAIN, WAIT, SPIN]),
        (40_000, 12, 0xA, [*WORKER, LOAD]),
        (40_000, 10, 0xB, [process(10), thread(11, "pin"), SPIN]),
    ]
    read = read_trace(trace(samples, 90_000))
    assert read.moments_us == (40_000,)
    assert [stack[-1] for one in read.threads for stack in one.stacks] == [SPIN, LOAD, SPIN]


def test_a_frame_that_only_returns_is_a_change() -> None:
    samples = [(40_000, 10, 0xA, [*MAIN, WAIT, SPIN]), (90_000, 10, 0xA, [*MAIN, WAIT])]
    (main,) = read_trace(trace(samples, 200_000)).threads
    assert main.stacks[-1] == (*MAIN, WAIT)


def test_nothing_but_a_trace_is_read() -> None:
    assert read_trace(b"[]").moments_us == ()
    with pytest.raises(DecodeError):
        read_trace(b"[{")


def test_unseen_moments_lie_where_nothing_had_changed() -> None:
    # Up to 100 us before the next change: the sample after a change is the one that saw it.
    assert with_unseen([0, 1_000], 1_200, 5, 100) == (0, 300, 600, 1_000, 1_100)
    assert with_unseen([0, 1_000], 3_000, 4, 100) == (0, 450, 1_000, 2_000)


def test_there_are_as_many_moments_as_samples() -> None:
    for seen in ([5], [5, 6, 7], [0, 10, 400, 410]):
        moments = with_unseen(seen, 600, 19, 100)
        assert len(moments) == 19
        assert set(seen) <= set(moments)
        assert list(moments) == sorted(moments)
    assert with_unseen([1, 2, 3], 9, 2, 100) == (1, 2, 3)
    assert with_unseen([], 9, 19, 100) == ()


def test_the_standing_stack() -> None:
    assert [standing_at((10, 20), at) for at in (9, 10, 19, 20, 99)] == [None, 0, 0, 1, 1]
