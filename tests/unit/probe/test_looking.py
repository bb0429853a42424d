"""Looking at batches, parameters and losses runs no code of the user's."""

import asyncio
from collections import OrderedDict, UserDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, WeightedRandomSampler

from gpuwatch.probe import loaders, wrapped
from gpuwatch.probe.deep.memory_facts import types_now
from gpuwatch.probe.loaders import look_at
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.settings.sampler import SettingsSampler
from gpuwatch.probe.wire.marks import BACKWARD_ENTER, OPTIMIZER_ENTER

SEEN: list[str] = []


class Counted(torch.Tensor):
    """Its state goes on with everything that is asked of it, as that of a random one would."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(func.__name__)
        known: Any = super()
        return known.__torch_function__(func, types, args, kwargs or {})


class Dispatched(torch.Tensor):
    @classmethod
    def __torch_dispatch__(  # type: ignore[override, unused-ignore]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        SEEN.append(str(func))
        return func(*args, **(kwargs or {}))


class Watching(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Dispatching(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def nothing_seen() -> Iterator[None]:
    SEEN.clear()
    yield
    assert SEEN == []


PLAIN = (4, 1, 80, "cpu", None, None, None)


def seen(batch: Any) -> Any:
    """Without how long its lists are."""
    found = look_at(batch)
    return found and found[:-1]


def test_a_subclass_is_looked_at_past_its_own_functions() -> None:
    batch = torch.zeros(4, 5).as_subclass(Counted)
    SEEN.clear()
    assert seen([batch]) == PLAIN


def test_a_subclass_with_a_dispatch_of_its_own_is_left_alone() -> None:
    batch = torch.Tensor._make_subclass(Dispatched, torch.zeros(4, 5))
    SEEN.clear()
    assert seen([batch]) is None


def test_bytes_are_added_up_past_a_subclass_s_own_functions() -> None:
    """The window of memory asked each tensor that is alive: a thousand calls of the program's."""
    counted = torch.Tensor._make_subclass(Counted, torch.zeros(4, 5))
    dispatched = torch.Tensor._make_subclass(Dispatched, torch.zeros(4, 5))
    SEEN.clear()
    with Watching():
        types = types_now()
    count, size = types[f"{__name__}.Counted"]
    assert size == 80 * count > 0
    assert types[f"{__name__}.Dispatched"][1] == 0
    del counted, dispatched


def test_a_function_mode_sees_nothing() -> None:
    batch = torch.zeros(4, 5)
    with Watching():
        found = seen(batch)
    assert found == PLAIN
    with torch.device("cpu"):
        assert seen(batch) == PLAIN, "what set_default_device puts on for good"


def test_under_a_dispatch_mode_nothing_is_looked_at() -> None:
    batch = torch.zeros(4, 5)
    mode: Any = Dispatching
    with mode():
        found = look_at(batch)
    assert found is None


class Row(NamedTuple):
    x: torch.Tensor
    y: int


class Lazy(Mapping[str, torch.Tensor]):
    def __getitem__(self, name: str) -> torch.Tensor:
        SEEN.append(name)
        return torch.zeros(4, 5)

    def __iter__(self) -> Iterator[str]:
        SEEN.append("iter")
        return iter("x")

    def __len__(self) -> int:
        return 1


class LazyDict(dict[str, Any]):
    def values(self) -> Any:
        SEEN.append("values")
        return super().values()


class LazyList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        SEEN.append("iter")
        return super().__iter__()


class Odd:
    def __getattribute__(self, name: str) -> Any:
        SEEN.append(name)
        return dict


@pytest.mark.parametrize(
    ("wrap", "found"),
    [
        (lambda x: Row(x, 3), True),
        (lambda x: OrderedDict(x=x), True),
        (lambda x: UserDict(x=x), True),
        (lambda x: LazyDict(x=x), True),
        (lambda x: LazyList([x]), True),
        (lambda x: Lazy(), False),
        (lambda x: Odd(), False),
    ],
)
def test_containers_are_looked_into_past_what_a_subclass_makes_of_them(
    wrap: Any, found: bool
) -> None:
    batch = wrap(torch.zeros(4, 5))
    SEEN.clear()
    assert seen(batch) == (PLAIN if found else None)


def test_an_optimizer_and_a_backward_are_looked_at_past_their_functions() -> None:
    weight = torch.nn.Parameter(torch.ones(3).as_subclass(Counted))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    loss = (weight * 2).sum()
    faults: list[Exception] = []
    sampler = SettingsSampler(Recorder(lambda _: True, faults.append))
    SEEN.clear()
    with Watching():
        sampler.at(OPTIMIZER_ENTER, optimizer)
        sampler.at(BACKWARD_ENTER, (loss,))
    assert faults == []
    assert sampler.reading["parameters"] == 1


def test_a_batch_is_looked_into_as_far_as_it_is_plain() -> None:
    x = torch.zeros(4, 5)
    assert seen({"a": [x, {"b": x}], "c": "text"}) == (4, 2, 160, "cpu", None, None, None)
    assert seen([torch.tensor(3.0), x]) == (4, 2, 84, "cpu", None, None, None)
    assert seen("text") is None
    assert seen([torch.zeros(4, 5, dtype=torch.int64), x]) == (4, 2, 240, "cpu", None, None, None)
    assert seen([x] * 1000) == (4, 64, 64 * 80, "cpu", None, None, None)


def test_nobody_is_asked_for_pinned_memory_while_no_accelerator_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The question alone makes a context on the first device, and no fork's child can use it any
    more."""
    asked: list[torch.Tensor] = []

    def is_pinned(tensor: torch.Tensor) -> bool:
        asked.append(tensor)
        return False

    monkeypatch.setattr(torch.Tensor, "is_pinned", is_pinned)
    assert seen(torch.zeros(4, 5)) == PLAIN
    assert not asked
    monkeypatch.setattr(loaders, "uses_accelerator", lambda: True)
    assert seen(torch.zeros(4, 5)) == (*PLAIN[:4], False, None, None)
    assert asked


class OfTheProgram(Exception):
    """Raised by its code in C, which leaves no frame."""


def raising_in_c(error: Exception) -> Callable[[], int]:
    future: asyncio.Future[int] = asyncio.Future(loop=asyncio.new_event_loop())
    future.set_exception(error)
    return future.result


def test_a_length_in_c_that_fails_in_its_own_way_is_not_known() -> None:
    class Sampler:
        __len__ = raising_in_c(OfTheProgram("made anew in each epoch"))

        @property
        def batch_size(self) -> int:
            raise RuntimeError("not before the first batch")

    class Iterator:
        _index_sampler = Sampler()
        _num_workers = Sampler

    row = loaders.describe_iterator(Iterator())
    assert row[2] is row[6] is row[7] is None
    assert wrapped._describe(Sampler())[0][7] is None


@pytest.mark.parametrize("is_accelerated", [False, True])
@pytest.mark.parametrize(
    ("made", "samples"),
    [
        (lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]), 2),
        (lambda: torch.nested.nested_tensor([torch.arange(3), torch.arange(5)]), 2),
        (lambda: torch.eye(4).to_sparse(), 4),
        (lambda: torch.eye(4).to_sparse_csr(), 4),
        (lambda: torch.eye(4).to_mkldnn(), 4),
        (lambda: torch.eye(4, device="meta"), 4),
        (lambda: torch.empty(0), 0),
    ],
)
@pytest.mark.filterwarnings("ignore:.*prototype stage", "ignore:.*beta state")
def test_a_batch_of_any_layout(
    monkeypatch: pytest.MonkeyPatch,
    made: Callable[[], torch.Tensor],
    samples: int,
    is_accelerated: bool,
) -> None:
    monkeypatch.setattr(loaders, "uses_accelerator", lambda: is_accelerated)
    found = look_at([made()])
    assert found is not None
    assert found[0] == samples


class Drawing(torch.utils.data.Sampler[list[int]]):
    """Batches of as many samples as fit, drawn anew; to count them it draws them too."""

    def __iter__(self) -> Iterator[list[int]]:
        SEEN.append("iter")
        yield from ([int(torch.randint(9, ()))] for _ in range(4))

    def __len__(self) -> int:
        SEEN.append("len")
        return sum(1 for _ in self)


ROWS: Any = list(range(9))


class Streamed(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from ROWS


@pytest.mark.parametrize(
    ("loader", "batches"),
    [
        (DataLoader(ROWS, batch_size=2), 5),
        (DataLoader(ROWS, batch_size=2, shuffle=True, drop_last=True), 4),
        (DataLoader(ROWS, batch_size=None), 9),
        (DataLoader(ROWS, 2, sampler=DistributedSampler(ROWS, num_replicas=3, rank=0)), 2),
        (DataLoader(ROWS, batch_sampler=[[0, 1], [2]]), 2),
        (DataLoader(ROWS, 2, sampler=WeightedRandomSampler([1.0] * 6, 6)), 3),
        (DataLoader(ROWS, batch_sampler=Drawing()), None),
        (DataLoader(ROWS, 2, sampler=Drawing()), None),
        (DataLoader(Streamed(), batch_size=2), None),
    ],
)
def test_the_length_of_a_sampler_of_the_users_is_not_asked_for(
    loader: DataLoader[Any], batches: int | None
) -> None:
    """It drew from the run's random numbers, and each loss behind it was another."""
    row = loaders.describe_iterator(iter(loader))
    assert row[7] == batches
    assert row[1] == ("stream" if loader._dataset_kind == 1 else "_SingleProcessDataLoaderIter")
    assert wrapped._describe(Drawing())[0][7] is None
    assert wrapped._describe(ROWS)[0][7] == 9


def test_lists_and_tuples_are_as_long_as_they_are_past_what_a_subclass_makes_of_them() -> None:
    class Endless(list[Any]):
        def __len__(self) -> int:
            SEEN.append("len")
            return 99

    picture = torch.zeros(3, 5, 4)
    for batch, lengths in (
        (picture, ()),
        ([picture] * 8, (8,)),
        (tuple(zip(*[(picture, {"boxes": picture})] * 8, strict=True)), (2, 8)),
        ({"images": [picture] * 8, "names": ("a", "b")}, (2, 8)),
        (Endless([picture] * 8), (8,)),
    ):
        found = look_at(batch)
        assert found is not None
        assert found[-1] == lengths


def table(*largest: int) -> torch.Tensor:
    """Columns of as many categories each, of 512 samples."""
    row = torch.arange(512)
    return torch.stack([row * 7919 % (most + 1) for most in largest], 1)


WORDS = table(*[30_000] * 64)


@pytest.mark.parametrize(
    ("batch", "tokens"),
    [
        ([WORDS], 512 * 64),
        ([torch.ones_like(WORDS), WORDS], 512 * 64),
        ([WORDS[1:2], torch.zeros(3)], 64),
        ([WORDS.to("meta")], 512 * 64),
        ([table(900, 5_000), torch.zeros(512)], None),
        ([table(*[3, 10, 30_000, 2_000, 20, 600, 12_000, 5] * 3), torch.zeros(512)], None),
        ([WORDS % 2, torch.zeros(512, 3, 8, 8)], None),
        ([WORDS.double()], None),
    ],
    ids=[
        *("a text", "behind its mask", "one row", "on a device", "user and item"),
        *("categories", "targets of several labels", "features"),
    ],
)
def test_a_table_is_no_text(batch: Any, tokens: int | None) -> None:
    found = look_at(batch)
    assert found is not None
    assert found[5] == tokens
