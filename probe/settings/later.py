"""Parts that are known at once, or as soon as what was asked of a device has arrived."""

from collections.abc import Callable, Sequence

from .device_reads import Answers
from .graph_rows import Layer, Rows, largest_of

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


def rows_spared(
    found: Sequence[tuple[Part, Layer]], whole: int
) -> Rows | Callable[[Answers], Rows | None] | None:
    """Of layers, each with the part of its rows that is needed, as `largest_of`: now, or as soon as
    all parts are known."""

    def known(answers: Answers | None) -> Rows | None:
        return largest_of([(1.0 - value_of(part, answers), one) for part, one in found], whole)

    return known if any(callable(part) for part, _ in found) else known(None)


class _Combined:
    """It remembers what it has given, for the answers of one look: in a net with residual blocks
    each part is asked by two others, and those by four."""

    __slots__ = ("_function", "_known", "_parts")

    def __init__(self, function: Callable[..., float], parts: tuple[Part, ...]) -> None:
        self._function = function
        self._parts = parts
        self._known: float | None = None

    def __call__(self, answers: Answers) -> float:
        """Without a call in a call: a loop over time makes parts of parts, some hundred deep."""
        waiting = [self]
        while waiting:
            one = waiting[-1]
            below = [part for part in one._parts if isinstance(part, _Combined)]
            if unknown := [part for part in below if part._known is None]:
                waiting += unknown
                continue
            waiting.pop()
            if one._known is None:
                one._known = one._function(*(one._value_of(part, answers) for part in one._parts))
        return self._known or 0.0

    @staticmethod
    def _value_of(part: Part, answers: Answers) -> float:
        known = part._known if isinstance(part, _Combined) else None
        return value_of(part, answers) if known is None else known
