"""What is looked at in a loader: its configuration once an epoch, its queue, a batch now and then.

Everything read here is private to torch and may be missing: then it is None, and nobody guesses.
"""

import itertools
import operator
import sys
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .circuit_breaker import is_by_handler
from .figures import uses_accelerator
from .wire.marks import FETCH_ENTER, word_of

if TYPE_CHECKING:
    from .padding import PaddingSeen

T = TypeVar("T")
Seen = TypeVar("Seen")

MOST_TENSORS: Final = 64
"""Of a batch that is looked at: of a list of thousands its first."""
KNOWN_ITERATORS: Final = 64
"""Iterators remembered as described; beyond that all are described again, which is harmless."""
SAMPLERS: Final = (
    *("SequentialSampler", "RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler"),
    "DistributedSampler",
)
"""Of torch, by what they are called in it: their length takes no draw."""
ITERABLE: Final = 1
"""torch's number for a dataset that is so."""

LoaderRow = tuple[
    int, str, int | None, int | None, bool, bool, int | None, int | None, tuple[int, ...], str
]
"""key, kind, workers, prefetch factor, pin memory, persistent, batch size, batches, pids, dataset:
the first fields of `messages.Loader`."""

Description = tuple[LoaderRow, bool]
"""A loader, and whether gradients are on where its iterator is first fetched from."""


_Outline = tuple[int | None, int, int, str | None, bool | None]
BatchSeen = tuple[
    int | None, int, int, str | None, bool | None, int | None, "PaddingSeen | None", tuple[int, ...]
]
"""What a batch looks like, the fields of `messages.BatchSeen`: first dimension of its first tensor
that has one; tensors; bytes; of its first tensor the device's type, and whether it lies in pinned
memory (None where it is not on the CPU, and while no accelerator is used); its tokens, where it may
be a text; what the batch's attention mask shows; of it and what it holds, where these are lists or
tuples, how long they are."""
PADDING: Final = 6
"""Where of these its mask is."""


class LoaderWatch:
    """Which iterators have been described. Keeps identities only, never the objects."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}
        """Iterators described since they were made or reset, with the word of their fetches."""
        self.queued: set[int] = set()
        """Those of them whose batches come through a queue."""

    def restarted(self, iterator: Any) -> int:
        """An iterator begins (again): describe it before its next fetch. Returns its identity."""
        self.known.pop(id(iterator), None)
        self.queued.discard(id(iterator))
        return id(iterator)

    def describe(self, iterator: Any) -> Description:
        """The configuration of an iterator's loader, for a LOADER mark."""
        if len(self.known) >= KNOWN_ITERATORS:
            self.known.clear()
            self.queued.clear()
        self.known[id(iterator)] = word_of(FETCH_ENTER, id(iterator))
        if hasattr(iterator, "_data_queue"):
            self.queued.add(id(iterator))
        return describe_iterator(iterator), bool(sys.modules["torch"].is_grad_enabled())


def describe_iterator(iterator: Any) -> LoaderRow:
    """The configuration that an iterator of torch's DataLoader carries."""
    sampler = _named(iterator, "_index_sampler")
    is_stream = getattr(iterator, "_dataset_kind", None) == ITERABLE
    dataset = _named(iterator, "_dataset")
    workers = getattr(iterator, "_workers", ())
    return (
        id(sampler),
        "stream" if is_stream else type(iterator).__name__,
        _whole(getattr(iterator, "_num_workers", None)),
        _whole(getattr(iterator, "_prefetch_factor", None)),
        bool(getattr(iterator, "_pin_memory", False)),
        bool(getattr(iterator, "_persistent_workers", False)),
        _whole(_named(sampler, "batch_size")),
        known_length(sampler),
        tuple(worker.pid for worker in workers),
        type(dataset).__name__,
    )


def known_length(one: Any) -> int | None:
    """Of what Python or torch itself counts; None of all others. A sampler of the user's may have
    to draw an epoch's batches to know how many they are, with the run's own random numbers. torch's
    samplers ask a dataset, as they do in each epoch without us."""
    kind: Any = type(one)
    own: Any = sys.modules.get("torch.utils.data")
    try:
        if kind in (list, tuple, range):
            return len(one)
        count = None if own is None else getattr(kind, "__len__", None)
        if count is None:
            return None
        if count is own.BatchSampler.__len__:
            return None if known_length(one.sampler) is None else len(one)
        if any(count is getattr(own, name).__len__ for name in SAMPLERS):
            return len(one)
    except Exception as error:
        if is_by_handler(error):
            raise
    return None


def _named(one: Any, name: str) -> Any:
    """An attribute of an object of the user's, of which it may make a property that fails."""
    try:
        return getattr(one, name, None)
    except Exception as error:
        if is_by_handler(error):
            raise
        return None


def _whole(number: Any) -> int | None:
    """A number of the user's as one of Python's own, which alone the codec takes."""
    try:
        return operator.index(number)
    except Exception as error:
        if is_by_handler(error):
            raise
        return None


def ready_batches(iterator: Any) -> int | None:
    """Batches that the training thread could take without waiting; None where nobody knows.

    `mp.Queue.qsize` is not there on macOS; `empty()` would cost 5 us.
    """
    tasks = getattr(iterator, "_task_info", None)
    if tasks is None:
        return None
    try:
        waiting: int = iterator._data_queue.qsize()
    except (NotImplementedError, AttributeError):
        return None
    return waiting + sum(len(task) == 2 for task in tasks.values())


def look_at(batch: Any) -> BatchSeen | None:
    """A batch as it came out of its loader; None where no tensor is near by.

    No code of a user's runs for it: not that of a tensor's subclass (`__torch_function__`, with a
    state of its own) or a mode, not that of a container's. Under a dispatch mode, which cannot be
    passed by and would see `is_pinned`, nothing is looked at.
    """
    torch = sys.modules.get("torch")
    if torch is None or is_dispatched(torch):
        return None
    tensors = list(itertools.islice(_tensors(batch, torch, 3), MOST_TENSORS))
    if not tensors:
        return None
    # By the training thread, which cannot fork meanwhile.
    from .padding import padding_of, tokens_of

    def look(held: list[Any]) -> BatchSeen:
        return (*_seen(held), tokens_of(held, torch), padding_of(batch, torch), _lengths(batch))

    return past_overrides(torch, look, tensors)


def past_overrides(torch: Any, look: Callable[[T], Seen], what: T) -> Seen:
    """Look at something with `__torch_function__` off. A signal's handler may raise between its
    going off and the `with`, which then does not put it on again."""
    was_on = torch._C._is_torch_function_enabled()
    off = torch._C.DisableTorchFunction()
    try:
        with off:
            return look(what)
    except BaseException:
        if was_on and not torch._C._is_torch_function_enabled():
            off.__exit__(None, None, None)
        raise


def _seen(tensors: list[Any]) -> _Outline:
    first = tensors[0]
    return (
        next((int(tensor.size(0)) for tensor in tensors if tensor.dim()), None),
        len(tensors),
        sum(tensor.numel() * tensor.element_size() for tensor in tensors),
        first.device.type,
        _is_pinned(first) if first.device.type == "cpu" else None,
    )


def _is_pinned(tensor: Any) -> bool | None:
    """None while the program uses no accelerator: the question alone would begin to (a context of
    hundreds of MB on the first device, and no fork's child could use it any more; pytorch#128988,
    #144687)."""
    if not uses_accelerator():
        return None
    try:
        return bool(tensor.is_pinned())
    except RuntimeError:
        return None  # of a layout that has no storage


def is_dispatched(torch: Any) -> bool:
    """Whether a dispatch mode is on in this thread, or that is unknown."""
    try:
        return bool(torch._C._len_torch_dispatch_stack())
    except AttributeError:
        return True


def runs_no_code(kind: Any, torch: Any) -> bool:
    """A class of tensors that has no `__torch_dispatch__` of its own, which even a tensor's size
    may be asked of."""
    own = kind.__torch_dispatch__
    return own is torch.Tensor.__torch_dispatch__ or own is torch._C._disabled_torch_dispatch_impl


def _lengths(batch: Any) -> tuple[int, ...]:
    """Of a batch and what it holds, where these are lists or tuples: one of samples, or of what
    each sample has, is as long as the loader puts together."""
    found: set[int] = set()
    for one in (batch, *itertools.islice(_items(batch), MOST_TENSORS)):
        if issubclass(type(one), tuple):
            found.add(tuple.__len__(one))
        elif issubclass(type(one), list):
            found.add(list.__len__(one))
    return tuple(sorted(found))


def _tensors(batch: Any, torch: Any, depth: int) -> Iterator[Any]:
    """The tensors of a batch, as far as plain containers hold them."""
    kind = type(batch)
    if issubclass(kind, torch.Tensor):
        if runs_no_code(kind, torch):
            yield batch
    elif depth:
        for item in itertools.islice(_items(batch), MOST_TENSORS):
            yield from _tensors(item, torch, depth - 1)


def _items(batch: Any) -> Iterable[Any]:
    """What a plain container holds, past what a subclass makes of it: an attribute of a user's
    class could do anything."""
    kind = type(batch)
    if issubclass(kind, dict):
        return dict.values(batch)
    if issubclass(kind, UserDict):  # a BatchEncoding of transformers
        held = object.__getattribute__(batch, "__dict__").get("data")
        return dict.values(held) if isinstance(held, dict) else ()
    if issubclass(kind, tuple):
        return tuple.__iter__(batch)
    return list.__iter__(batch) if issubclass(kind, list) else ()
