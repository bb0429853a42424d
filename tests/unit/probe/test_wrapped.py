"""`probe.wrap` stands in for what it wraps: each operation as on the object itself."""

import copy
import gc
import pickle
import sys
import warnings
import weakref
from collections import UserDict, UserList
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import probe

FILE = __file__


class Pipeline:
    """A foreign one: attributes, a context, a length that changes."""

    def __init__(self) -> None:
        self.epoch = 0
        self.is_open = False
        self._iterator = "its own name"

    def __iter__(self) -> Iterator[int]:
        return iter(range(3))

    def __len__(self) -> int:
        return self.epoch

    def __enter__(self) -> "Pipeline":
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> bool:
        self.is_open = False
        return True

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


def generator() -> Iterator[int]:
    yield from range(3)


OBJECTS: dict[str, Callable[[], Any]] = {
    "a list": lambda: [3, 1, 2],
    "an empty list": list,
    "a tuple": lambda: (3, 1),
    "a string": lambda: "abc",
    "a generator": generator,
    "a dictionary": lambda: {"a": 1},
    "a UserList": lambda: UserList([1, 2]),
    "a UserDict": lambda: UserDict(a=1),
    "a range": lambda: range(4),
    "a set": lambda: {1, 2},
    "an array": lambda: np.arange(3),
    "a pipeline": Pipeline,
    "a loader": lambda: DataLoader([1, 2, 3], batch_size=2),  # type: ignore[arg-type]
}
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "len": len,
    "in": lambda it: 1 in it,
    "a number": lambda it: it[0],
    "a slice": lambda it: it[:2],
    "a key": lambda it: it["a"],
    "reversed": lambda it: list(reversed(it)),
    "repr": lambda it: repr(it).split(" at 0x")[0],
    "str": lambda it: str(it).split(" at 0x")[0],
    "==": lambda it: it == it,
    "== a list": lambda it: it == [3, 1, 2],
    "<": lambda it: it < [9],
    "+": lambda it: it + [9],  # noqa: RUF005
    "[0] +": lambda it: [0] + it,  # noqa: RUF005
    "-": lambda it: it - {1},
    "^": lambda it: it ^ {1, 3},
    "/": lambda it: list(it / 2),
    "2 *": lambda it: list(2 * it),
    "hash": lambda it: hash(it) and None,
    "call": lambda it: it(),
    "with": lambda it: it.__enter__() is not None,
    "callable": callable,
    "length hint": lambda it: it.__length_hint__(),
    "isinstance": lambda it: (isinstance(it, list), isinstance(it, Pipeline)),
    "items": list,
    "an attribute that is not there": lambda it: it.nothing_of_that_name,
    "dir": lambda it: len(dir(it)) > 10,
}


def outcome(operation: Callable[[Any], Any], on: Any) -> tuple[str, Any]:
    try:
        result = operation(on)
    except Exception as error:
        return type(error).__name__, str(error).replace("Wrapped", type(on).__name__)
    return "done", str(result) if isinstance(result, (list, np.ndarray)) else result


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_that_of_the_object(name: str, what: str) -> None:
    bare, wrapped = OBJECTS[what](), probe.wrap(OBJECTS[what]())
    expected, seen = outcome(OPERATIONS[name], bare), outcome(OPERATIONS[name], wrapped)
    if expected[0] == "TypeError":
        assert seen[0] == "TypeError"
    elif name == "dir" or (isinstance(expected[1], str) and "object" in expected[1]):
        assert seen[0] == expected[0]
    else:
        assert seen == expected


def test_what_changes_in_place_stays_wrapped() -> None:
    inner, both = [1], {1}
    listed: Any = probe.wrap(inner)
    united: Any = probe.wrap(both)
    held = listed, united
    listed += [2]
    united |= {2}
    assert (inner, both) == ([1, 2], {1, 2})
    assert (listed is held[0], united is held[1]) == (True, True)


def test_attributes_are_set_and_deleted_on_the_object() -> None:
    pipeline = Pipeline()
    wrapped: Any = probe.wrap(pipeline)
    wrapped.epoch = 7
    assert (pipeline.epoch, len(wrapped), wrapped._iterator) == (7, 7, "its own name")
    wrapped.more = 1
    del wrapped.more
    assert not hasattr(pipeline, "more")
    wrapped.set_epoch(2)
    assert pipeline.epoch == 2


def test_items_of_a_mapping_are_set_and_deleted() -> None:
    inner = [1, 2, 3]
    wrapped: Any = probe.wrap(inner)
    wrapped[0] = 9
    del wrapped[1]
    assert inner == [9, 3]
    with pytest.raises(TypeError):
        probe.wrap(generator())[0] = 1


def test_a_context_stays_wrapped_and_keeps_its_handling_of_exceptions() -> None:
    pipeline = Pipeline()
    wrapped: Any = probe.wrap(pipeline)
    entered, states = wrapped.__enter__(), [pipeline.is_open]
    assert type(entered) is type(wrapped)
    assert wrapped.__exit__(ValueError, ValueError("which it swallows"), None) is True
    assert [*states, pipeline.is_open] == [True, False]
    with wrapped as entered:
        assert type(entered) is type(wrapped)


def test_an_iterator_is_its_own() -> None:
    wrapped = probe.wrap(generator())
    assert iter(wrapped) is wrapped
    assert (next(wrapped), *wrapped) == (0, 1, 2)
    listed = probe.wrap([1, 2])
    assert iter(listed) is not iter(listed)
    assert [list(listed), list(listed)] == [[1, 2], [1, 2]]
    assert iter(iter(listed)) is not None
    with pytest.raises(TypeError):
        len(iter(listed))


def test_a_pickle_is_of_the_object_and_a_copy_is_wrapped() -> None:
    pipeline = Pipeline()
    pipeline.epoch = 5
    wrapped = probe.wrap(pipeline)
    unpickled = pickle.loads(pickle.dumps(wrapped))
    assert (type(unpickled), unpickled.epoch) == (Pipeline, 5)
    copies: list[Any] = [copy.copy(wrapped), copy.deepcopy(wrapped)]
    for made in copies:
        assert type(made) is type(wrapped)
        assert made.epoch == 5
        made.epoch = 6
    assert pipeline.epoch == 5
    with pytest.raises(TypeError, match="generator"):
        pickle.dumps(probe.wrap(generator()))


def test_a_warning_of_the_pipelines_points_at_the_loop() -> None:
    def warns() -> Iterator[int]:
        warnings.warn("look here", stacklevel=2)
        yield 1

    class Warns(Pipeline):
        def __len__(self) -> int:
            warnings.warn("look here", stacklevel=2)
            return 1

    probe.install()
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in probe.wrap(warns()):
                here = sys._getframe().f_lineno - 1
            assert [(one.filename, one.lineno) for one in seen] == [(FILE, here)]
            len(probe.wrap(Warns()))
            assert seen[-1].filename == FILE
    finally:
        probe.uninstall()


def test_a_type_that_a_program_makes_and_drops_is_not_kept() -> None:
    def an_epoch() -> "weakref.ref[type]":
        class Batches(list[int]):
            pass

        assert list(probe.wrap(Batches([1, 2]))) == [1, 2]
        return weakref.ref(Batches)

    kind = an_epoch()
    gc.collect()
    assert kind() is None
