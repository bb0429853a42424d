"""The moments of stacks, in few bits and back."""

from hypothesis import given
from hypothesis import strategies as some

from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.recording.moment_bits import MomentBits, gathered, scattered


def stack(moments: int, count: int, pid: int = 1) -> StackCount:
    return StackCount(role="main", pid=pid, thread="t", frames=("f",), count=count, moments=moments)


def test_the_last_stack_of_a_thread_and_the_counts_cost_nothing() -> None:
    stacks = [stack(0b0011, 2), stack(0b0111, 3, pid=2), stack(0b0100, 1), stack(0b1000, 1)]
    told = MomentBits(4, packing=True).through(stacks)
    assert [one.count for one in told] == [0, 0, 0, 0]
    assert [one.moments for one in told] == [0b1100, 0b1000, 0b10, 0]


@given(
    some.lists(
        some.tuples(some.integers(0, (1 << 22) - 1), some.integers(0, 40), some.integers(1, 3)),
        max_size=12,
    ),
    some.integers(1, 20),
)
def test_whatever_was_seen_comes_back(rows: list[tuple[int, int, int]], moments: int) -> None:
    stacks = tuple(stack(bits, count, pid) for bits, count, pid in rows)
    told = MomentBits(moments, packing=True).through(stacks)
    assert MomentBits(moments, packing=False).through(told) == stacks


def test_bits_at_their_places() -> None:
    assert gathered(0b1001, 0b1101) == 0b101
    assert scattered(0b101, 0b1101) == 0b1001
