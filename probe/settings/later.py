"""Parts that are known at once, or as soon as what was asked of a device has arrived."""

from collections.abc import Callable

from .device_reads import Answers

Part = float | Callable[[Answers], float]
"""0 to 1; or what makes it of what arrives."""


def value_of(part: Part, answers: Answers | None) -> float:
    """`answers` may be None where no part is known later."""
    if not callable(part):
        return part
    assert answers is not None
    return part(answers)


def combined(function: Callable[..., float], *parts: Part) -> Part:
    """What a function makes of parts, as soon as all are known."""
    if any(map(callable, parts)):
        return _Combined(function, parts)
    return function(*parts)


class _Combined:
    """It remembers what it has given, for the answers of one look: in a net with residual blocks
    each part is asked by two others, and those by four."""

    __slots__ = ("_function", "_known", "_parts")

    def __init__(self, function: Callable[..., float], parts: tuple[Part, ...]) -> None:
        self._function = function
        self._parts = parts
        self._known: float | None = None

    def __call__(self, answers: Answers) -> float:
        if self._known is None:
            self._known = self._function(*(value_of(one, answers) for one in self._parts))
        return self._known
