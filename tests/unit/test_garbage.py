"""The search for garbage is rare, and what was imported is left out of it."""

import gc
import weakref

from tui.garbage import NEW_OBJECTS, search_seldom


class Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def test_new_cycles_are_still_found_and_what_was_there_is_left_alone() -> None:
    before = gc.get_threshold()
    old = weakref.ref(Knot())
    try:
        search_seldom()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] == NEW_OBJECTS
        new = weakref.ref(Knot())
        gc.collect()
        assert new() is None
        assert old() is not None
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
        gc.collect()
