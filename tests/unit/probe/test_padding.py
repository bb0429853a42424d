"""What the probe sees of padding: what is proven to be a mask, counted, and never changed."""

from collections import UserDict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from gpuwatch.probe.loaders import look_at
from gpuwatch.probe.padding import A_SUM, MOST_ELEMENTS, padding_of

LENGTHS = [5, 3, 8, 1]


class Rows(NamedTuple):
    input_ids: torch.Tensor
    attention_mask: torch.Tensor


class Oddly(tuple[Any, ...]):
    _fields: Any = ([], "attention_mask")


def mask_of(lengths: list[int], length: int, left: bool = False) -> torch.Tensor:
    mask = torch.zeros(len(lengths), length, dtype=torch.int64)
    for row, kept in zip(mask, lengths, strict=True):
        row[length - kept if left else 0 :][:kept] = 1
    return mask


def ids_of(mask: torch.Tensor, pad: int = 0) -> torch.Tensor:
    ids = torch.arange(mask.numel()).reshape(mask.shape) + pad + 2
    return ids.masked_fill(mask == 0, pad)


MASK = mask_of(LENGTHS, 10)
IDS = ids_of(MASK)
SEEN = (4, 10, 17, 8, False)


@pytest.mark.parametrize(
    "batch",
    [
        {"input_ids": IDS, "attention_mask": MASK},
        UserDict({"input_ids": IDS, "attention_mask": MASK}),
        ({"input_ids": IDS, "attention_mask": MASK}, torch.zeros(4)),
        [torch.zeros(4), ({"attention_mask": MASK},)],
        Rows(IDS, MASK),
        SimpleNamespace(input_ids=IDS, attention_mask=MASK),
        Oddly((IDS, MASK)),
    ],
    ids=["dict", "BatchEncoding", "with labels", "nested", "named tuple", "attribute", "odd names"],
)
def test_a_mask_is_found_by_its_name(batch: Any) -> None:
    assert padding_of(batch, torch) == SEEN


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.int64])
def test_masks_of_all_types_are_counted(dtype: torch.dtype) -> None:
    assert padding_of({"attention_mask": MASK.to(dtype)}, torch) == SEEN


@pytest.mark.parametrize("pad", [0, 1, 50_256])
@pytest.mark.parametrize("left", [False, True])
def test_a_mask_without_a_name_is_proven_by_the_ids_that_it_hides(pad: int, left: bool) -> None:
    mask = mask_of(LENGTHS, 10, left)
    ids = ids_of(mask, pad)
    labels = torch.tensor([0, 1, 1, 0])
    assert padding_of([ids, mask, labels], torch) == SEEN
    segments = torch.zeros_like(mask)
    assert padding_of((ids, segments, mask), torch) == SEEN
    assert padding_of([ids, segments, labels], torch) is None


class Guarded:
    """Its attributes are nobody's business."""

    def __init__(self) -> None:
        self.attention_mask = MASK

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("looked at")


class Slotted:
    __slots__ = ("attention_mask",)


EMPTIED = MASK.clone()
EMPTIED.untyped_storage().resize_(0)

PICTURE = torch.tensor([[0, 7, 9, 0], [0, 0, 5, 6]])


@pytest.mark.parametrize(
    "batch",
    [
        {"attention_mask": MASK.float()},
        {"attention_mask": MASK * 2},
        {"attention_mask": -MASK},
        {"attention_mask": MASK[0]},
        {"attention_mask": MASK[:, None]},
        {"attention_mask": MASK.to_sparse()},
        {"attention_mask": MASK.to("meta")},
        {"attention_mask": None},
        {"mask": MASK, "input_ids": IDS},
        {"input_ids": IDS},
        [PICTURE, (PICTURE != 0).long()],
        [MASK, MASK.clone()],
        [IDS.float(), MASK],
        MASK,
        Guarded(),
        Slotted(),
        {"attention_mask": EMPTIED},
        "text",
        None,
    ],
    ids=[
        *("floats", "twos", "below 0", "one row", "of each pair", "sparse", "no memory", "nothing"),
        *("another name", "no mask", "an outline", "features", "no ids", "alone"),
        *("a property", "slots", "let go", "text", "None"),
    ],
)
def test_what_is_no_mask_shows_nothing(batch: Any) -> None:
    assert padding_of(batch, torch) is None


def test_a_batch_without_padding_shows_that() -> None:
    assert padding_of({"attention_mask": torch.ones(3, 6, dtype=torch.int64)}, torch) == (
        3,
        6,
        18,
        6,
        False,
    )


LONG = mask_of([5, 3, 18, 1, 12], 20)
TABLE = torch.tensor([[3, 5], [1, 4], [2, 2], [7, 1]]).repeat(1, 10)


@pytest.mark.parametrize("pad", [0, 1, 50_256])
@pytest.mark.parametrize("left", [False, True])
def test_without_a_mask_the_ids_show_what_fills_the_rows_up(pad: int, left: bool) -> None:
    ids = ids_of(LONG.flip(1) if left else LONG, pad)
    labels = torch.tensor([0, 1, 1, 0, 1])
    seen = (5, 20, 39, 18, True)
    for batch in ([ids, labels], (labels, ids), {"words": ids, "y": labels}, ids):
        assert padding_of(batch, torch) == seen


@pytest.mark.parametrize(
    "ids",
    [
        ids_of(LONG)[:3],
        ids_of(LONG)[:, :15],
        ids_of(torch.ones_like(LONG)),
        ids_of(mask_of([18, 20, 20, 18, 20], 20)),
        ids_of(LONG).masked_fill(torch.arange(20) == 0, 0),
        TABLE,
        torch.stack([TABLE, TABLE]),
        ids_of(LONG).float(),
        ids_of(LONG, -100),
        LONG,
    ],
    ids=[
        *("few rows", "short", "no padding", "two lengths", "also elsewhere"),
        *("features", "of each pair", "floats", "targets", "bits"),
    ],
)
def test_ids_that_may_be_no_texts_show_nothing(ids: torch.Tensor) -> None:
    assert padding_of([ids], torch) is None


def test_texts_may_be_columns() -> None:
    """As `pad_sequence` puts them together, unless it is told otherwise."""
    source = ids_of(mask_of([5, 3, 18, 1, 12] * 4, 20), 1).t().contiguous()
    target = ids_of(mask_of([5, 3, 16, 1, 12] * 4, 16), 1).t().contiguous()
    assert padding_of((source, target), torch) == (20, 20, 4 * 39, 18, True)
    assert padding_of((source[:, :15],), torch) is None, "too few to tell"
    assert padding_of((source[:8],), torch) is None, "short"
    features = torch.randint(0, 3, (64, 20), generator=torch.Generator().manual_seed(1))
    assert padding_of((features,), torch) is None


def recordings(rows: int) -> torch.Tensor:
    return torch.randint(0, 256, (rows, 3, 8, 16), dtype=torch.uint8)


@pytest.mark.parametrize(
    "beside",
    [
        torch.randn(5, 1, 64, 300),
        recordings(5),
        {"image": recordings(5).float()},
        ({"image": recordings(5).float()}, "a name"),
        list(recordings(5)),
        [{"image": one} for one in recordings(5)],
        pack_sequence([torch.arange(3), torch.arange(2)]),
        [torch.randn(5, 3).numpy()] * 5,
        torch.randn(5, 3).to_sparse(),
        UserDict({"image": recordings(5)}),
        [[[[recordings(5)]]]],
        [[0.5] * 300] * 5,
    ],
    ids=[
        *("sound", "bytes", "by name", "by name in a tuple", "a list", "a list by name"),
        *("packed", "arrays", "sparse", "another container", "far down", "numbers"),
    ],
)
def test_ids_beside_what_the_net_may_compute_on_are_what_is_to_be_learned(beside: Any) -> None:
    """The letters of a recording, a picture's caption, the tags of words that are packed."""
    ids = ids_of(LONG)
    assert padding_of((beside, ids), torch) is None
    assert padding_of({"x": beside, "words": ids}, torch) is None


@pytest.mark.parametrize(
    "beside",
    [
        torch.randn(5),
        ["a text"] * 5,
        ["a text"] * 50,
        [1, 2.5, None, True, "x"],
        ids_of(LONG)[:, :16],
        {"weights": torch.randn(5), "name": "a"},
        (torch.randn(5), torch.arange(5)),
        [[1, 0, 1, 1, 0, 1, 1, 1, 1, 0]] * 5,
    ],
    ids=["numbers", "texts", "many texts", "plain", "smaller", "by name", "a tuple", "marks"],
)
def test_ids_beside_something_smaller_are_what_the_net_computes_on(beside: Any) -> None:
    ids = ids_of(LONG)
    seen = (5, 20, 39, 18, True)
    assert padding_of((beside, ids), torch) == seen
    assert padding_of({"words": ids, "x": beside}, torch) == seen


def test_of_tables_of_one_size_the_one_that_holds_most_is_the_text() -> None:
    """A prompt filled up to the length of the text that begins with it: 87 % was called padding of
    80 %."""
    prompt = ids_of(mask_of([2, 1, 5, 1, 3], 20))
    for batch in ({"query": prompt, "input": ids_of(LONG)}, [ids_of(LONG), prompt]):
        assert padding_of(batch, torch) == (5, 20, 39, 18, True)
    full = torch.arange(100).view(5, 20) + 2
    assert padding_of({"prompt": prompt, "input": full}, torch) is None


def test_of_more_parts_than_are_looked_at_nothing_is_claimed() -> None:
    ids = ids_of(LONG)
    assert padding_of([ids, *[torch.randn(5)] * 7], torch) is not None
    assert padding_of([ids, *[torch.randn(5)] * 8], torch) is None


@pytest.mark.parametrize("shape", [(13, 7_000), (200, 40), (5_000, 16), (4, 8_000), (9, 20_000)])
def test_of_any_shape_no_more_is_looked_at_than_torch_takes_with_one_thread(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    whole: Callable[..., Any] = torch.Tensor.sum

    def counting(tensor: torch.Tensor, *args: Any) -> Any:
        compared.append(tensor.numel())
        return whole(tensor, *args)

    monkeypatch.setattr(torch.Tensor, "sum", counting)
    rows, length = shape
    padding_of([ids_of(mask_of([1 + at % length for at in range(rows)], length))], torch)
    assert max(compared, default=0) <= A_SUM


def test_of_many_ids_some_rows_are_looked_at() -> None:
    lengths = [1 + at % 500 for at in range(300)]
    seen = padding_of([ids_of(mask_of(lengths, 512))], torch)
    assert seen is not None
    assert seen[0] * 512 <= A_SUM
    assert seen[2] / seen[0] == pytest.approx(sum(lengths) / 300, rel=0.2)


def test_a_large_mask_is_summed_in_parts_that_torch_does_not_spread_over_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summed: list[int] = []
    whole: Callable[..., Any] = torch.Tensor.sum

    def counting(tensor: torch.Tensor, *args: Any) -> Any:
        summed.append(tensor.numel())
        return whole(tensor, *args)

    monkeypatch.setattr(torch.Tensor, "sum", counting)
    mask = torch.ones(200, 512, dtype=torch.int64)
    assert padding_of({"attention_mask": mask}, torch) == (200, 512, 200 * 512, 512, False)
    assert sum(summed) == 200 * 512
    assert max(summed) <= A_SUM
    huge = torch.ones(2_000, 512, dtype=torch.bool)
    seen = padding_of({"attention_mask": huge}, torch)
    assert seen is not None
    rows, length, kept, longest, _ = seen
    assert MOST_ELEMENTS // 2 <= rows * length <= MOST_ELEMENTS
    assert (kept, longest) == (rows * length, 512)


def test_a_batch_is_as_it_was() -> None:
    mask, ids = MASK.clone(), IDS.clone()
    versions = mask._version, ids._version
    assert padding_of([ids, mask], torch) == SEEN
    assert torch.equal(mask, MASK)
    assert torch.equal(ids, IDS)
    assert (mask._version, ids._version) == versions


def test_within_a_transform_nothing_is_looked_at() -> None:
    seen: list[object] = []

    def loss(weight: torch.Tensor) -> torch.Tensor:
        seen.append(look_at({"attention_mask": MASK}))
        return (weight * weight).sum()

    torch.func.grad(loss)(torch.ones(3))
    assert seen == [(4, 1, 320, "cpu", None, None, None, ())]
    assert look_at({"attention_mask": MASK}) == (4, 1, 320, "cpu", None, None, SEEN, ())


def test_a_torch_without_that_name_is_not_looked_at() -> None:
    without: Any = SimpleNamespace(_C=SimpleNamespace(_functorch=SimpleNamespace()))
    assert padding_of({"attention_mask": MASK}, without) is None
