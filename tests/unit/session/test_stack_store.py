"""Where the main thread is, and how it came there."""

import pytest

from gpuwatch.tui.model.observations import StackCount, StacksSeen
from gpuwatch.tui.session.stacks import StackStore
from tests.unit.session.making import MS, S

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
    store = StackStore()
    store.seen(chunk(S, (HANG, 20)))
    assert store.where(2 * S, None).way == (*HANG[:3], HANG[5], HANG[6])
    assert store.where(2 * S, None).frame == HANG[6]


def test_deep_code_of_the_users_is_cut_at_its_outer_end() -> None:
    deep = tuple(f"f{depth} (model.py:{depth})" for depth in range(9))
    store = StackStore()
    store.seen(chunk(S, ((*deep, "linear (torch/nn/functional.py:9)"), 20)))
    assert store.where(2 * S, None).way == (*deep[-3:], "linear (torch/nn/functional.py:9)")


def test_it_is_the_stack_that_was_seen_most_and_lately() -> None:
    store = StackStore()
    assert store.where(S, None).way == ()
    store.seen(chunk(S, (("a (x.py:1)",), 3), (("b (x.py:2)",), 9)))
    assert store.where(2 * S, None).way == ("b (x.py:2)",)
    assert store.where(60 * S, None).way == (), "nobody knows where it is now"


def worker(pid: int, count: int, *frames: str) -> StackCount:
    loop = "_worker_loop (torch/utils/data/_utils/worker.py:342)"
    return StackCount(role="worker", pid=pid, thread="", frames=(loop, *frames), count=count)


HANGS = (
    "fetch (torch/utils/data/_utils/fetch.py:54)",
    "__getitem__ (photographs.py:30)",
    "answer (stalled.py:77)",
    "wait (multiprocessing/connection.py:930)",
    "select (selectors.py:415)",
)
IDLES = ("get (multiprocessing/queues.py:113)", "poll (multiprocessing/connection.py:257)")


def test_workers_stand_where_the_newest_look_found_each_of_them() -> None:
    stacks = (
        worker(7, 20, *IDLES),
        worker(5, 12, *HANGS),
        worker(5, 8, "decode (PIL/ImageFile.py:300)"),
        worker(6, 20, *HANGS),
    )
    store = StackStore()
    store.seen(StacksSeen(t_ns=S, started_ns=0, samples=20, stacks=(worker(5, 20, *IDLES),)))
    store.seen(StacksSeen(t_ns=2 * S, started_ns=S, samples=20, stacks=stacks))
    making, idle = store.where(3 * S, None).workers
    assert (making.pids, making.wait_for_work) == ((5, 6), False)
    assert making.way == ("__getitem__ (photographs.py:30)", "answer (stalled.py:77)")
    assert (idle.pids, idle.wait_for_work) == ((7,), True)
    assert store.where(60 * S, None).workers == (), "nobody knows where they are now"


def of_worker(t_ns: int, pid: int, among: tuple[int, ...]) -> StacksSeen:
    """One worker in its turn."""
    stacks = (worker(pid, 19, *HANGS),)
    return StacksSeen(t_ns=t_ns, started_ns=t_ns - S, samples=0, stacks=stacks, among=among)


def test_a_turn_of_one_worker_shows_nothing_of_the_others_nor_of_the_main_thread() -> None:
    store = StackStore()
    store.seen(chunk(S, (HANG, 20)))
    store.seen(of_worker(2 * S, 5, (5, 6, 7)))
    frame, _, _, workers, _ = store.where(3 * S, None)
    assert frame == HANG[6], "the newest look at the main thread is the chunk before"
    assert workers == (), "where the other two are nobody knows"
    store.seen(of_worker(4 * S, 5, (5,)))
    assert store.where(5 * S, None).workers[0].pids == (5,), "there is no other"


def test_what_was_seen_holds_until_something_moves() -> None:
    store = StackStore()
    stacks = (*chunk(0, (HANG, 20)).stacks, worker(5, 20, *HANGS))
    store.seen(StacksSeen(t_ns=9 * S, started_ns=7 * S, samples=20, stacks=stacks))
    store.seen(of_worker(12 * S, 5, (5, 6)))
    still = store.where(50 * S, 6 * S)
    assert (still.frame, still.workers[0].pids) == (HANG[6], (5,))
    moved = store.where(50 * S, 8 * S)
    assert (moved.frame, moved.way, moved.workers) == (None, (), ())


def test_of_a_run_that_moves_it_is_known_from_one_chunk_to_the_next() -> None:
    store = StackStore()
    store.seen(chunk(20 * S, (HANG, 19)))
    reported = [store.where(now_s * S, now_s * S - S).frame for now_s in range(20, 41)]
    store.seen(chunk(40 * S, (HANG, 19)))
    reported.append(store.where(41 * S, 40 * S).frame)
    assert set(reported) == {HANG[6]}, "chunks are 20 s apart where they are dear"


@pytest.mark.parametrize(("marked_ms", "known"), [(19_400, True), (19_600, False), (21_000, False)])
def test_where_nothing_moves_what_was_seen_before_the_last_mark_shows_nothing(
    marked_ms: int, known: bool
) -> None:
    """The chunk is of 19 s to 20 s."""
    store = StackStore()
    stacks = (*chunk(0, (HANG, 19)).stacks, worker(5, 19, *HANGS))
    store.seen(StacksSeen(t_ns=20 * S, started_ns=19 * S, samples=19, stacks=stacks))
    stalled = store.where(31 * S, marked_ms * MS)
    assert (stalled.frame is not None, bool(stalled.workers)) == (known, known)
