"""Causes that hide each other: removing any one of them gives what removing both would."""

from collections.abc import Sequence
from dataclasses import replace

from tui.verdict import policy
from tui.verdict.findings import Finding, Kind
from tui.verdict.forecast.gain import replayed
from tui.verdict.window import Window


def either_of(top: Finding, others: Sequence[Finding], window: Window) -> tuple[Kind, ...]:
    """The kinds among `others` of which each alone, as `top` alone, gives 70 % of what both give.
    Their gains are the same time, seen twice: never to be added."""
    known = replayed(window) if others else None
    alone = None if known is None else known.left((top.kind,))
    if known is None or alone is None:
        return ()
    found: list[Kind] = []
    for other in others:
        theirs = known.left((other.kind,))
        both = known.left((top.kind, other.kind))
        if theirs is None or both is None:
            continue
        joint = 1.0 - both
        if joint > policy.ENTER_SHARE and 1.0 - max(alone, theirs) >= policy.JOINT * joint:
            found.append(other.kind)
    return tuple(found)


def with_the_other_way(
    top: Finding, others: Sequence[Finding], either: tuple[Kind, ...]
) -> Finding:
    """`top` with what else would do, said right after its own first action."""
    ways = [
        f"or instead: {other.advice[0]} (either fix gives it, both hardly more)"
        for other in others
        if other.kind in either and other.advice and not _same(top, other)
    ]
    return replace(top, advice=(*top.advice[:1], *ways, *top.advice[1:]))


def _same(top: Finding, other: Finding) -> bool:
    """Both are mended by the same action: launches that are the optimizer's."""
    return bool(top.advice) and top.advice[0] in other.advice[0]
