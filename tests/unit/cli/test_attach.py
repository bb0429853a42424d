"""The search for garbage is rare, and what was imported is left out of it."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from gpuwatch.tui.cli.screen import NEW_OBJECTS, SEARCHES, leave_out_what_is_there, search_seldom


class Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _searched_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    gc.disable()  # a search of its own would find what a test leaves lying
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*before)
    gc.collect()


def test_a_search_begins_after_many_new_objects() -> None:
    search_seldom()
    assert gc.get_threshold() == (NEW_OBJECTS, *SEARCHES)


def test_what_was_there_is_left_out_and_new_cycles_are_still_found() -> None:
    kept = Knot()
    old = weakref.ref(kept)
    leave_out_what_is_there()
    del kept
    new = weakref.ref(Knot())
    gc.collect()
    assert new() is None
    assert old() is not None


def test_garbage_that_is_there_is_not_kept() -> None:
    garbage = weakref.ref(Knot())
    leave_out_what_is_there()
    assert garbage() is None
