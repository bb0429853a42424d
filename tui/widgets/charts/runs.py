"""Rows that are composed cell by cell."""

from collections.abc import Iterable

from tui.widgets.spans import Row, Span


def runs_of(cells: Iterable[Span]) -> Row:
    """The cells with neighbours of one role as one piece: every piece costs bytes of colour. A
    blank has no colour of its own."""
    out: list[Span] = []
    for text, role in cells:
        if out and (out[-1].role == role or not text.strip()):
            out[-1] = Span(out[-1].text + text, out[-1].role)
        else:
            out.append(Span(text, role))
    return tuple(out)
