"""Sets of time: spans that do not overlap, in order."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

Span = tuple[int, int]
"""From and to, ns."""


def union(spans: Iterable[Span]) -> list[Span]:
    """Spans that overlap or touch become one."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def minus(whole: Sequence[Span], part: Sequence[Span]) -> list[Span]:
    """Of a union what lies outside of another."""
    out: list[Span] = []
    at = 0
    for start, end in whole:
        while at < len(part) and part[at][1] <= start:
            at += 1
        reached, other = start, at
        while other < len(part) and part[other][0] < end:
            if part[other][0] > reached:
                out.append((reached, part[other][0]))
            reached = max(reached, part[other][1])
            other += 1
        if reached < end:
            out.append((reached, end))
    return out


def common(a: Sequence[Span], b: Sequence[Span]) -> list[Span]:
    """What two unions share."""
    return minus(a, minus(a, b))


def within(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Of a union what lies in a span."""
    at = bisect_left(spans, start, key=lambda span: span[1])
    out: list[Span] = []
    while at < len(spans) and spans[at][0] < end:
        low, high = max(start, spans[at][0]), min(end, spans[at][1])
        if high > low:
            out.append((low, high))
        at += 1
    return out


def length(spans: Iterable[Span]) -> int:
    """All of them together, ns."""
    return sum(end - start for start, end in spans)
