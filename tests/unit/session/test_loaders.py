"""Which workers feed the training."""

from msgspec import structs

from gpuwatch.tui.messages import Loader
from gpuwatch.tui.model.observations import StackCount, StacksSeen
from gpuwatch.tui.session.dispatch import IDLE_SAMPLES, MOST_PADDING, LoaderStore
from gpuwatch.tui.steps import Padding

WAITS = ("_worker_loop (torch/utils/data/_utils/worker.py:1)", "Queue.get (multiprocessing/q.py:2)")
MAKES = ("_worker_loop (torch/utils/data/_utils/worker.py:1)", "fetch (torch/utils/data/f.py:2)")


def loader(key: int, *pids: int, evaluation: bool = False, epoch: int = 1) -> Loader:
    return Loader(
        key=key,
        kind="_MultiProcessingDataLoaderIter",
        num_workers=len(pids),
        prefetch_factor=2,
        pin_memory=False,
        persistent_workers=False,
        batch_size=8,
        batches=100,
        worker_pids=pids,
        dataset="Pictures",
        iterations=epoch,
        evaluation=evaluation,
    )


def sampled(**busy: int) -> StacksSeen:
    """Workers `w7=3`: pid 7 was busy in three of its samples."""
    stacks = []
    for name, makes in busy.items():
        one = StackCount(
            role="worker",
            pid=int(name[1:]),
            thread="",
            frames=WAITS,
            count=IDLE_SAMPLES - makes,
        )
        stacks += [one, structs.replace(one, frames=MAKES, count=makes)][: 2 if makes else 1]
    return StacksSeen(t_ns=2, started_ns=1, samples=IDLE_SAMPLES, stacks=tuple(stacks))


def test_workers_of_a_look_at_the_held_out_set_before_the_first_step_do_not_feed_the_training() -> (
    None
):
    store = LoaderStore()
    for one in (loader(1, 10, 11), loader(2, 20, 21)):
        store.update(one)
    chunks = [sampled(w10=0, w11=0, w20=9, w21=0)]
    assert store.beside_training(chunks) == {10, 11}
    assert store.beside_training([]) == frozenset()


def test_two_loaders_of_one_training_both_feed_it() -> None:
    store = LoaderStore()
    for one in (loader(1, 10, 11), loader(2, 20, 21)):
        store.update(one)
    assert store.beside_training([sampled(w10=1, w11=2, w20=9, w21=8)]) == frozenset()


def test_workers_of_earlier_evaluations_are_apart_too() -> None:
    store = LoaderStore()
    store.update(loader(1, 10, 11))
    store.update(loader(2, 20, 21))
    store.update(loader(1, 12, 13, evaluation=True, epoch=2))
    assert store.beside_training([]) == {10, 11, 12, 13}


def test_padding_is_that_of_the_training_loaders_newest_batches() -> None:
    store = LoaderStore()
    for one in (loader(1), loader(2, evaluation=True)):
        store.update(one)
    for at in range(MOST_PADDING + 10):
        store.masked(Padding(at, 1, 8, 128, 200 + at, 60))
        store.masked(Padding(at, 2, 8, 64, 500, 64))
        store.masked(Padding(at, 3, 8, 64, 500, 64))
    kept = [one.kept for one in store.padding()]
    assert kept == list(range(210, 210 + MOST_PADDING))
    assert LoaderStore().padding() == ()


def test_a_first_evaluation_that_leaves_gradients_on_is_not_taken_for_the_training() -> None:
    """NCF tests its net without `no_grad`: "num_workers 0 → 1, the training thread loads every
    batch itself", of a training with four workers."""
    store = LoaderStore()
    store.update(structs.replace(loader(1, 10, 11), trains=True))
    store.update(loader(2))
    assert [one.key for one in store.training()] == [1, 2]
    store.update(structs.replace(loader(2), trains=True))
    assert [one.key for one in store.training()] == [2, 1], "the next part of a training"
