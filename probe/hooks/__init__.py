"""One file a hook point. Each has `attach(recorder) -> Detach`: putting back the very objects that
were there, or saying which of them somebody has patched over since."""

from collections.abc import Callable
from typing import Any, TypeVar

from ..wire import UNCOUNTED

Detach = Callable[[], tuple[str, ...]]
"""Undo a hook; returns the names it had to leave because another patch lies on top of ours."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def uncounted(function: _Function) -> _Function:
    """The function as one that stands between a caller and what it calls: a warning of torch's, or
    of a user's generator, points at the caller and not at our file."""
    code: Any = function.__code__
    if not code.co_filename.endswith(UNCOUNTED):
        function.__code__ = code.replace(co_filename=code.co_filename + UNCOUNTED)
    return function


def replace(
    original: Callable[..., Any], ours: Callable[..., Any], places: list[tuple[Any, str]]
) -> Detach:
    """Set `ours` at each (owner, attribute) of `places` that holds `original` now.

    The undo restores a place only while it still holds ours: a patch that somebody laid on top
    stays, calls through ours, and ours then does nothing of its own.
    """
    uncounted(ours)
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
