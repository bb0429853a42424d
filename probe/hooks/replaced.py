"""Replace a function in every place that holds it, and put the very same object back."""

from collections.abc import Callable
from typing import Any

from . import Detach


def replace(
    original: Callable[..., Any], ours: Callable[..., Any], places: list[tuple[Any, str]]
) -> Detach:
    """Set `ours` at each (owner, attribute) of `places` that holds `original` now.

    The undo restores a place only while it still holds ours: a patch that somebody laid on top
    stays, calls through ours, and ours then does nothing of its own.
    """
    taken = [(owner, name) for owner, name in places if vars(owner).get(name) is original]
    for owner, name in taken:
        setattr(owner, name, ours)

    def detach() -> tuple[str, ...]:
        left = []
        for owner, name in taken:
            if vars(owner).get(name) is ours:
                setattr(owner, name, original)
            else:
                left.append(f"{getattr(owner, '__name__', owner)}.{name}")
        return tuple(left)

    return detach
