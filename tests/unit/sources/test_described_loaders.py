"""What the batches that were looked at show of their loader."""

from collections.abc import Sequence

import pytest
from msgspec import structs

from gpuwatch.tui.messages import BatchSeen
from gpuwatch.tui.sources.marks.loaders import MOST_LOADERS, DescribedLoaders
from tests.unit.verdict.windows import loader


def batch(size: int) -> BatchSeen:
    """On the host, of so many bytes."""
    return BatchSeen(samples=2, tensors=1, bytes=size, device="cpu", pinned=None)


@pytest.mark.parametrize(
    ("sizes", "varies"),
    [
        (range(100, 190, 10), True),
        (range(100, 180, 10), None),
        ([100] * 15, None),
        ([100] * 15 + [40], False),
        ([64, 128, 192, 256, 320, 384, 448, 512] * 2, False),
        (range(100_000, 101_600, 100), False),
        ([*range(100, 190, 10), *[100] * 16], False),
    ],
    ids=[
        *("pictures", "eight so far", "few", "an epoch's last", "multiples of 64"),
        *("some boxes more", "no longer"),
    ],
)
def test_batches_of_ever_new_sizes_differ(sizes: Sequence[int], varies: bool | None) -> None:
    described = DescribedLoaders()
    first = loader(2)
    described.iterated(7, first)
    for at, size in enumerate(sizes):
        described.seen(7, at, batch(size))
    (known,) = described.all()
    assert known.varies is varies
    described.iterated(8, first)
    (known,) = described.all()
    assert known.varies is varies, "the next epoch's are alike"
    described.iterated(9, structs.replace(first, batch_size=1))
    (known,) = described.all()
    assert known.varies is None, "another loader, at the same address"


@pytest.mark.parametrize(
    ("workers", "persistent", "starts"), [(2, False, True), (2, True, False), (0, False, False)]
)
def test_an_iterator_starts_workers_unless_they_persist(
    workers: int, persistent: bool, starts: bool
) -> None:
    described = DescribedLoaders()
    described.iterated(7, structs.replace(loader(workers), persistent_workers=persistent))
    assert described.starts_workers(7) is starts
    assert not described.starts_workers(8)


def test_of_the_loader_that_was_left_out_for_newer_ones_nothing_is_known() -> None:
    """Its key, an address, may be another one's by then."""
    described = DescribedLoaders()
    teachers = structs.replace(loader(0), key=1)
    described.iterated(1, teachers)
    described.goes_on(1)
    assert described.feeds_training(1)
    for key in range(2, 2 + MOST_LOADERS):
        described.iterated(key, structs.replace(loader(0), key=key))
    described.iterated(1, teachers)
    assert not described.feeds_training(1)


def test_a_loader_trains_once_a_backward_has_followed_its_batch() -> None:
    described = DescribedLoaders()
    described.iterated(7, loader(2))
    assert not described.all()[0].trains
    described.serves(7, evaluation=True)
    assert not described.all()[0].trains
    described.serves(7, evaluation=False)
    assert described.all()[0].trains
    described.iterated(8, loader(2))
    assert described.all()[0].trains, "in its next epoch too"


@pytest.mark.parametrize(("known", "batches"), [(None, 3), (7, 7)])
def test_the_first_whole_epoch_counts_the_batches_where_nothing_else_does(
    known: int | None, batches: int
) -> None:
    described = DescribedLoaders()
    described.fetched(7)
    described.ended(7)  # its beginning was not seen
    for epoch in range(2):
        described.iterated(7, structs.replace(loader(2), batches=known))
        assert described.all()[0].batches == (batches if epoch else known)
        described.fetched(7)
        described.fetched(7, 2)
        described.ended(7)
    assert described.all()[0].batches == batches
    described.iterated(8, structs.replace(loader(2), key=2, batches=None))
    described.fetched(8)
    described.missed()
    described.ended(8)
    assert described.all()[1].batches is None


@pytest.mark.parametrize(
    ("batch_size", "first", "lengths", "samples"),
    [
        (8, 8, (2,), 8),
        (8, 3, (2, 8), 8),
        (8, 21, (8,), 8),
        (8, 5, (2,), 5),
        (8, 4096, (), 8),
        (1, 64, (2,), 64),
        (1, 3, (1, 2), 1),
        (None, 64, (2,), 64),
        (8, None, (), None),
    ],
    ids=[
        *("plain", "pictures of their own sizes", "texts of their own lengths"),
        *("an epoch's last", "packed", "batches of the dataset's own", "one picture"),
        *("nobody knows how many are put together", "no tensor has a dimension"),
    ],
)
def test_samples_are_no_more_than_the_loader_puts_together(
    batch_size: int | None, first: int | None, lengths: tuple[int, ...], samples: int | None
) -> None:
    described = DescribedLoaders()
    described.iterated(7, structs.replace(loader(2), batch_size=batch_size))
    assert described.samples_in(7, BatchSeen(first, 1, 80, "cpu", None, lengths=lengths)) == samples


def test_another_loader_at_the_same_address_begins_anew() -> None:
    """Train and held-out loaders that functions make for each epoch: the held-out one trained."""
    described = DescribedLoaders()
    described.iterated(7, loader(2))
    described.serves(7, evaluation=False)
    described.goes_on(7)
    described.seen(7, 0, batch(100))
    held_out = structs.replace(loader(2), dataset="HeldOut", batch_size=32)
    described.iterated(7, held_out)
    assert described.all() == [held_out]
    assert not described.feeds_training(7)
