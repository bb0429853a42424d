"""What the batches that were looked at show of their loader."""

from collections.abc import Sequence

import pytest

from gpuwatch.tui.messages import BatchSeen
from gpuwatch.tui.sources.marks.loaders import DescribedLoaders
from tests.unit.verdict.windows import loader


def batch(size: int) -> BatchSeen:
    """On the host, of so many bytes."""
    return BatchSeen(samples=2, tensors=1, bytes=size, device="cpu", pinned=None)


@pytest.mark.parametrize(
    ("sizes", "varies"),
    [
        ([100, 101, 100, 102, 103], True),
        ([100, 101, 102], None),
        ([100] * 7, None),
        ([100] * 7 + [40], False),
        ([100, 200, 300] * 3, False),
        ([100, 101, 102, 103] + [100] * 8, False),
    ],
    ids=["pictures", "three so far", "few", "an epoch's last", "three lengths", "no longer"],
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
