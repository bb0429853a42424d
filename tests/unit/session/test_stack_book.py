"""Where the main thread is, and how it came there."""

from tests.unit.session.making import S
from tui.observations import StackCount, StacksSeen
from tui.session.stack_book import StackBook

HANG = (
    "<module> (train.py:120)",
    "main (train.py:90)",
    "epoch (train.py:40)",
    "__next__ (torch/utils/data/dataloader.py:733)",
    "_next_data (torch/utils/data/dataloader.py:1488)",
    "_get_data (torch/utils/data/dataloader.py:1450)",
    "_try_get_data (torch/utils/data/dataloader.py:1286)",
    "get (queue.py:180)",
    "wait (threading.py:359)",
)


def chunk(t_ns: int, *stacks: tuple[tuple[str, ...], int]) -> StacksSeen:
    counts = tuple(
        StackCount(role="main", pid=1, thread="MainThread", frames=frames, count=count)
        for frames, count in stacks
    )
    return StacksSeen(t_ns=t_ns, started_ns=t_ns - S, samples=20, stacks=counts)


def test_the_way_is_the_users_frames_and_the_innermost_that_they_call() -> None:
    book = StackBook()
    book.seen(chunk(S, (HANG, 20)))
    assert book.main_way(2 * S) == (*HANG[:3], HANG[5], HANG[6])
    assert book.main_frame(2 * S) == HANG[6]


def test_deep_code_of_the_users_is_cut_at_its_outer_end() -> None:
    deep = tuple(f"f{depth} (model.py:{depth})" for depth in range(9))
    book = StackBook()
    book.seen(chunk(S, ((*deep, "linear (torch/nn/functional.py:9)"), 20)))
    assert book.main_way(2 * S) == (*deep[-3:], "linear (torch/nn/functional.py:9)")


def test_it_is_the_stack_that_was_seen_most_and_lately() -> None:
    book = StackBook()
    assert book.main_way(S) == ()
    book.seen(chunk(S, (("a (x.py:1)",), 3), (("b (x.py:2)",), 9)))
    assert book.main_way(2 * S) == ("b (x.py:2)",)
    assert book.main_way(60 * S) == (), "nobody knows where it is now"
