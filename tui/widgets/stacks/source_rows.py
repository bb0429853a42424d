"""Source lines around a place, as rows."""

from collections.abc import Sequence

from tui.source_text import SourceText
from tui.widgets.spans import Row, Span, clip, row, rule

TAB = 4


def source_rows(
    source: SourceText | None, width: int, height: int, line: str = ""
) -> Sequence[Row]:
    """The heading and as many lines around the place as fit; None: it is being read. `line` is the
    place's text as the program ran it, where that is known."""
    if source is None:
        return [rule("Source", (), width), row("   reading", "dim")]
    if source.why_not:
        return [rule("Source", (), width), row(f"   {clip(source.why_not, width - 4)}", "dim")]
    room = height - 1
    at = source.line - source.first
    changed = bool(line) and not source.lines[at].strip().startswith(line)
    note = "changed since it ran" if changed else "as it is now"
    head = rule(f"{clip_left(source.path, width - len(note) - 18)}:{source.line}", [note], width)
    top = max(0, min(at - room // 2, len(source.lines) - room))
    digits = len(str(source.first + len(source.lines)))
    shown = enumerate(source.lines[top : top + room], source.first + top)
    marked = None if changed else source.line
    return [head, *(_line(number, text, number == marked, digits) for number, text in shown)]


def _line(number: int, text: str, marked: bool, digits: int) -> Row:
    return (
        Span("▸" if marked else " ", "focus"),
        Span(f"{number:>{digits}}  ", "dim"),
        Span(text.expandtabs(TAB), "strong" if marked else "text"),
    )


def clip_left(text: str, width: int) -> str:
    """The end of a path, which says more than its beginning."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"
