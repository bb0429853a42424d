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
        return lambda answers: function(*(value_of(one, answers) for one in parts))
    return function(*parts)
