"""How much of a batch is padding, by its attention mask or its ids: host tensors, only ever read.

A mask is what carries that name. In a batch without names (a TensorDataset's) it is the tensor of
the shape of the ids that is 0 exactly where these are all one id, the padding's. Without a mask it
is an id that ends the rows, or begins them, and is nowhere else in them; or the columns, where a
text lies in each.

A look at a mask takes 3 to 9 us of int64 with warm caches and 15 to 35 us with cold ones (16 x 128
to 128 x 512, two cores), at ids without a mask 45 to 65 us, or 40 us where they show no padding;
to tell a text from a table of categories takes another 55 us. No sum is as large as what torch
spreads over threads.
"""

import math
from collections import Counter, UserDict
from collections.abc import Iterator
from functools import reduce
from itertools import islice
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

NAME: Final = "attention_mask"
WHOLE: Final = frozenset(
    {"torch.bool", "torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.int64"}
)
A_SUM: Final = 32_767
"""Elements: from 32,768 on torch sums with several threads, which it would start for this."""
MOST_ELEMENTS: Final = 4 * A_SUM
"""Of a mask: of more rows than hold so many, some that lie evenly among them."""
PROVEN: Final = 2_048
"""Elements of which it is seen that they are 0 or 1; of all others only what they add up to."""
TOKENS: Final = frozenset({"torch.int64", "torch.int32", "torch.int16"})
"""Types of ids. `uint8` is an image's."""
MOST_NAMELESS: Final = 8
"""Parts of a batch without names that are looked at."""
PLAIN: Final = (bool, int, float, str, bytes)
"""Beside tensors, what a net does not compute on."""

FEWEST_ROWS: Final = 4
"""Rows of ids without a mask from which padding is judged."""
MOST_ROWS: Final = 32
"""That are looked at."""
FEWEST_IDS: Final = 16
"""Positions of a row from which it may be a text."""
FEWEST_LENGTHS: Final = 3
"""Different lengths among the rows: texts vary in length, a table of features does not."""
WORD_ROWS: Final = 8
"""In which words are told from categories."""
SMALL_COLUMNS: Final = 0.25
SMALL: Final = 100
"""Part of the columns in which all ids are below a hundredth of the largest: those of a table have
each its own number of categories. Words of one vocabulary, of four rows or more, seldom are."""

PaddingSeen = tuple[int, int, int, int, bool]
"""The fields of `messages.PaddingSeen`: rows that were looked at, positions of each, how many of
all of them are no padding, how many of the row that has most, and whether the ids alone show it."""


def padding_of(batch: Any, torch: Any) -> PaddingSeen | None:
    """None where nothing proves a mask. Called past overrides and outside of dispatch modes; within
    a transform of `torch.func`, which would see the sums, nothing is looked at."""
    if _is_transformed(torch):
        return None
    mask = next(_named(batch, torch, 2), None)
    if mask is None:
        mask = _nameless(batch, torch)
    return _by_ids(batch, torch) if mask is None else _count(mask, torch)


def tokens_of(tensors: list[Any], torch: Any) -> int | None:
    """Elements of a batch's first tensor where it may be a text, or the mask of one beside it.
    Called as `padding_of` is."""
    first = tensors[0]
    if first.is_nested or first.dim() != 2 or first.size(1) < FEWEST_IDS:
        return None
    for one in tensors:
        if not one.is_nested and one.shape == first.shape and _may_be_text(one, torch):
            return int(first.numel())
    return None


def _may_be_text(ids: Any, torch: Any) -> bool:
    """Of what lies on a device its shape alone tells."""
    if str(ids.dtype) not in TOKENS:
        return False
    readable = _is_table(ids, torch) and not _is_transformed(torch)
    return not readable or _is_of_words(_part_of(ids), torch)


def _is_transformed(torch: Any) -> bool:
    """Within a transform of `torch.func`, or that is unknown."""
    functorch: Any = getattr(torch._C, "_functorch", None)
    transform: Any = getattr(functorch, "peek_interpreter_stack", None)
    return transform is None or transform() is not None


def _is_of_words(ids: Any, torch: Any) -> bool:
    """Of one vocabulary, and no bits."""
    rows = ids[:WORD_ROWS].unbind()  # a reduction of columns takes ten times as long
    low, high = reduce(torch.minimum, rows), reduce(torch.maximum, rows)
    largest = high.max().tolist()
    varied = high[high != low]
    if largest <= 1 or ids.size(0) < FEWEST_ROWS:
        return bool(largest > 1)
    small = (varied < largest // SMALL).sum().tolist()
    return bool(small <= SMALL_COLUMNS * len(varied))


def _count(mask: Any, torch: Any) -> PaddingSeen | None:
    rows, length = mask.shape
    every = -(-rows * length // MOST_ELEMENTS)
    part = mask[::every] if every > 1 else mask
    if not _is_of_bits(part, torch):
        return None
    at_once = max(1, A_SUM // length)
    kept: list[int] = []
    for first in range(0, len(part), at_once):
        kept += part[first : first + at_once].sum(1).tolist()
    if min(kept) < 0 or max(kept) > length:
        return None
    return len(kept), length, sum(kept), max(kept), False


def _is_of_bits(part: Any, torch: Any) -> bool:
    if part.dtype == torch.bool:
        return True
    low, high = torch.aminmax(part[: max(1, PROVEN // part.size(1)), :PROVEN])
    return bool(low.tolist() >= 0 and high.tolist() <= 1)  # as numbers: no kernels to compare them


def _is_table(tensor: Any, torch: Any) -> bool:
    """Whole numbers of a row for each sample, on the host; nothing of a tensor's subclass."""
    return bool(
        type(tensor) is torch.Tensor
        and tensor.dim() == 2
        and tensor.device.type == "cpu"
        and str(tensor.dtype) in WHOLE
        and tensor.layout is torch.strided
        and not tensor.is_nested  # whose rows differ in length
        and tensor.size(0) > 0
        and 1 < tensor.size(1) <= A_SUM
        and tensor.untyped_storage().nbytes() > 0
    )


# -- by name ------------------------------------------------------------------------------------


def _named(batch: Any, torch: Any, depth: int) -> Iterator[Any]:
    """No code of a user's runs: what a container holds is read past what a subclass makes of it."""
    kind = type(batch)
    fields = vars(kind).get("_fields") if issubclass(kind, tuple) else None
    mask: Any = None
    if isinstance(fields, tuple):
        named = zip(fields, tuple.__iter__(batch), strict=False)
        mask = next((one for name, one in named if type(name) is str and name == NAME), None)
    elif issubclass(kind, (tuple, list)):
        if depth:  # (dict, labels)
            own = tuple if issubclass(kind, tuple) else list
            for item in islice(own.__iter__(batch), MOST_NAMELESS):
                yield from _named(item, torch, depth - 1)
    elif issubclass(kind, dict):
        mask = dict.get(batch, NAME)
    elif issubclass(kind, UserDict):  # a BatchEncoding of transformers
        held = object.__getattribute__(batch, "__dict__").get("data")
        mask = dict.get(held, NAME) if isinstance(held, dict) else None
    else:
        mask = _attribute(batch)
    if _is_table(mask, torch):
        yield mask


def _attribute(batch: Any) -> Any:
    bases = type(batch).__mro__
    own = next((vars(base)["__dict__"] for base in bases if "__dict__" in vars(base)), None)
    if type(own) not in (GetSetDescriptorType, MemberDescriptorType):
        return None  # there is none, or a property of the user's
    slot: Any = own
    held = slot.__get__(batch)
    return dict.get(held, NAME) if isinstance(held, dict) else None


# -- without names ------------------------------------------------------------------------------


def _nameless(batch: Any, torch: Any) -> Any:
    """Of tensors of one shape the mask, proven by the ids that it hides."""
    kind = type(batch)
    if kind is not tuple and kind is not list:
        return None
    tables = [one for one in batch[:MOST_NAMELESS] if _is_table(one, torch)]
    for ids in tables:
        for mask in tables if str(ids.dtype) in TOKENS else ():
            if mask is not ids and mask.shape == ids.shape and _hides(mask, ids, torch):
                return mask
    return None


def _hides(mask: Any, ids: Any, torch: Any) -> bool:
    """At one end of each row it is 0, and there the ids are all the padding's, which they are
    nowhere else. A picture's outline is no such thing, nor is a row of features."""
    rows = max(1, PROVEN // ids.size(1))
    mask, ids = mask[:rows, :A_SUM], ids[:rows, :A_SUM]
    if not _is_of_bits(mask, torch) or not bool((ids > 1).any()):
        return False
    hidden = mask == 0
    if bool((hidden[:, 1:] != hidden[:, :-1]).sum(1).max() > 1):
        return False
    for end in (-1, 0):
        padded = hidden[:, end].nonzero()
        if len(padded):
            return bool(torch.equal(hidden, ids == ids[int(padded[0]), end]))
    return False


# -- without a mask -----------------------------------------------------------------------------


def _by_ids(batch: Any, torch: Any) -> PaddingSeen | None:
    """Of the largest table of ids. Beside a larger tensor, as a recording or a picture is, they are
    what is to be learned, and the net does not compute on them; beside what is no tensor (texts
    that are packed, say) nothing is known of what it computes on."""
    kind = type(batch)
    if kind is dict:
        items = list(batch.values())
    elif kind is tuple or kind is list:
        items = batch
    else:
        items = [batch]
    if len(items) > MOST_NAMELESS:
        return None
    tables = [one for one in items if _is_table(one, torch)]
    texts = [one for one in tables if str(one.dtype) in TOKENS and one.size(1) >= FEWEST_IDS]
    numel = max((one.numel() for one in texts), default=0)
    largest = [one for one in texts if one.numel() == numel]
    if not largest or _elements(items, torch, largest[0].size(0), 1) > numel:
        return None
    seen = []
    for ids in largest:
        part = _part_of(ids)
        found = _count_ids(part)
        if found is None and FEWEST_IDS <= ids.size(0) <= A_SUM:
            found = _count_ids(_part_of(ids.t()))  # a text may be a column: (time, batch)
        if found is not None:
            seen.append(found)
        elif not _is_no_text(part):
            return None  # a text that fills its rows, beside a prompt that does not
    return max(seen, key=lambda one: one[2], default=None)  # a prompt beside the whole text


def _part_of(ids: Any) -> Any:
    every = max(-(-ids.numel() // A_SUM), -(-ids.size(0) // MOST_ROWS))
    return ids[::every][: A_SUM // ids.size(1)]


def _elements(one: Any, torch: Any, rows: int, depth: int) -> float:
    """Of the largest tensor in a part of a batch, by its shape; infinity where something else may
    hold what the net computes on, and of what lies deeper. A list of as many as there are rows is
    one of samples."""
    kind = type(one)
    if kind is torch.Tensor:
        return math.inf if one.layout is not torch.strided or one.is_nested else one.numel()
    if one is None or kind in PLAIN:
        return 0
    if kind is list and one and all(type(each) in PLAIN for each in islice(one, MOST_NAMELESS)):
        return len(one)  # a mark for each word, say
    if depth < 0 or (kind is not dict and kind is not tuple and kind is not list):
        return math.inf
    parts = list(islice(one.values() if kind is dict else one, MOST_NAMELESS))
    sizes = [_elements(part, torch, rows, depth - 1) for part in parts]
    if kind is list and len(one) == rows and depth < 1:
        return sum(sizes) * rows / max(1, len(sizes))
    return max(sizes, default=0) if len(parts) == len(one) or not any(sizes) else math.inf


def _is_no_text(ids: Any) -> bool:
    """Bits, as a mask and types of tokens are; or targets, of which -100 is not learnt."""
    low, high = ids.aminmax()
    return bool(high.tolist() <= 1 or low.tolist() < 0)


def _count_ids(ids: Any) -> PaddingSeen | None:
    rows, length = ids.shape
    if rows < FEWEST_ROWS or ids.max().tolist() <= 1:
        return None  # too few to tell, or bits: a mask of what is learned
    for end in (-1, 0):
        edge = ids[:, end].tolist()
        pad, rows_with = Counter(edge).most_common(1)[0]
        if rows_with * 4 < rows or pad < 0:
            continue  # most rows are full; or these are targets, of which -100 is not learnt
        hidden = ids == pad
        changes = (hidden[:, 1:] != hidden[:, :-1]).sum(1).tolist()
        kept = (length - hidden.sum(1)).tolist()
        # A row is all padding, or none of it, or changes once: behind its text, or before it.
        whole = [
            changed == 0 or (changed == 1 and one == pad)
            for changed, one in zip(changes, edge, strict=True)
        ]
        if all(whole) and len(set(kept)) >= FEWEST_LENGTHS:
            return rows, length, sum(kept), max(kept), True
    return None
