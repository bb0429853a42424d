"""Objects of the process, looked for while its threads make tuples."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.probe import all_objects
from gpuwatch.probe.all_objects import all_of, types_of_all


class Sought:
    pass


class Other(Sought):
    pass


def test_each_object_of_exactly_these_types_is_found() -> None:
    held = [Sought(), Other(), Sought()]
    assert {id(one) for one in all_of({Sought})} == {id(held[0]), id(held[2])}
    assert len(all_of({Sought, Other})) == 3
    counted = Counter(types_of_all())
    assert (counted[Sought], counted[Other]) == (2, 1)


class Hashed(type):
    """A metaclass with a hash of its own, as SymPy's."""

    asked = 0

    def __hash__(cls) -> int:
        Hashed.asked += 1
        return 7


class WithHash(metaclass=Hashed):
    pass


def test_no_code_of_the_programs_runs_meanwhile() -> None:
    held = WithHash()
    Hashed.asked = 0
    assert all_of((Sought, WithHash)) == [held]
    assert WithHash in list(types_of_all())
    assert Hashed.asked == 0


@pytest.fixture
def switches_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switches_often")
@pytest.mark.parametrize("look", [types_of_all, lambda: all_of({Sought})], ids=["types", "all"])
def test_no_tuple_that_a_thread_makes_is_held_meanwhile(look: Callable[[], Any]) -> None:
    """`tuple(...)` of a generator raised SystemError in a training's loader, which killed it: the
    probe had asked for all objects on its own thread."""
    ended, raised, made = threading.Event(), list[BaseException](), 0

    def makes_tuples() -> None:
        nonlocal made
        try:
            while not ended.is_set():
                assert len(tuple([each] for each in range(40))) == 40
                made += 1
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=makes_tuples)
    thread.start()
    for _ in range(40):
        look()
    ended.set()
    thread.join()
    assert raised == []
    assert made > 0


def test_nothing_else_of_the_probe_asks_for_all_objects() -> None:
    files = Path(all_objects.__file__).parent.rglob("*.py")
    asking = {one.name for one in files if "get_objects" in one.read_text()}
    assert asking == {"all_objects.py"}
