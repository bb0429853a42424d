"""The screen and the picker as commands open them, and how a monitor's process collects garbage.

With `remote`'s picker of another host the only place from which the command line reaches textual.
"""

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..terminal import Appearance

if TYPE_CHECKING:
    from ..model.provider import TimeTravelProvider
    from ..screens.switching import Make

NEW_OBJECTS: Final = 10_000
"""Between two collections of the youngest generation."""
SEARCHES: Final = (5, 4)
"""Of the newer before one of the older: with Python's own ten of ten, garbage that outlives its
first search lies there for minutes."""


def search_seldom() -> None:
    """From now on. For it more garbage is held: 92 MB were resident and not 87 after 25 minutes of
    a run with two frames a second and another view every ten seconds."""
    gc.set_threshold(NEW_OBJECTS, *SEARCHES)


def leave_out_what_is_there() -> None:
    """From now on no search goes through the objects that are there by now: they stay. A last one
    does, so that no garbage is among them: 43 to 54 ms of CPU time in a screen that attaches, which
    the first frame need not wait for."""
    gc.collect()
    gc.freeze()


def why_no_screen() -> str | None:
    """Why the screen cannot be shown here; None where it can."""
    from ..terminal import why_no_screen as why

    return why()


def show_screen(
    provider: "TimeTravelProvider",
    appearance: Appearance,
    other: "Make | None" = None,
    signs: "Callable[[], str] | None" = None,
) -> int:
    """Open the screen; `other` watches another process, `signs` is for `run_screen`."""
    from ..app import run_screen

    search_seldom()
    return run_screen(provider, appearance, other, settled=leave_out_what_is_there, signs=signs)


def choose(appearance: Appearance) -> int | None:
    """Let a person choose a process; None who left."""
    from ..discovery.candidates import find_candidates
    from ..screens.picker import pick

    return pick(find_candidates, appearance)
