"""Rows of a verdict below its headline: evidence, what to do, smaller causes, notes."""

from collections.abc import Sequence
from typing import Final

from ..verdict.findings import Evidence, Finding, Note
from ..wording.words import contributor_name, gain_interval_of, gain_of, role_of
from .text import Row, Span, clip, elided, ends, within

INDENT = 10
"""Cells before an evidence line's text, below the label "   NEXT   "."""
NARROW, NARROW_INDENT = 60, 8
"""Below this width sources give way to the text, and labels take fewer cells."""
GAIN_GAP: Final = 3
"""Cells before a gain: with two it read as a part of the sentence that goes on below it."""
_STOP: Final = "▲ STOP"
_MORE: Final = "▲ MORE"
URGENT_LINES: Final = 2
"""Of a name that is long, on a narrow screen."""


def urgent_rows(notes: Sequence[Note], width: int) -> list[Row]:
    """Those of the notes that are worth more than the verdict, whole."""
    indent = _indent(width)
    out: list[Row] = []
    for note in notes:
        if note.urgent:
            role = "critical" if note.gain is None else "warning"
            label = Span(f" {urgent_label(note):<{indent - 1}}", role)
            lines = within(note.text, width - indent - 1, URGENT_LINES)
            out += _below_each_other(label, [Span(line, role) for line in lines])
    return out


def urgent_label(note: Note) -> str:
    """What is gained by it is more than by the verdict's advice; without a gain, the run is lost
    time."""
    return _STOP if note.gain is None else _MORE


def note_rows(notes: Sequence[Note], width: int, height: int) -> list[Row]:
    """As many as there is room for; the last says how many more there are."""
    shown = notes[:height]
    out = [_note(note, width) for note in shown[:-1]]
    if shown:
        hidden = len(notes) - len(shown)
        out.append(_note(shown[-1], width, f" +{hidden} more" if hidden else ""))
    return out


def _note(note: Note, width: int, more: str = "") -> Row:
    label = _label("note", width)
    room = width - len(label.text) - len(more) - 1
    cost = note.cost or ""
    if len(note.text) + len(cost) + 2 > room:
        cost = ""
    text = clip(note.text, room - len(cost) - (2 if cost else 0))
    return ends((label, Span(text, "dim")), (Span(f"{cost}{more} ", "dim"),), width, gap=1)


def evidence_rows(finding: Finding, most: int, width: int) -> list[Row]:
    """What the verdict rests on, each number with its source. Where the training is before there is
    a verdict is no reason for one."""
    word = "NOW" if finding.kind == "warming-up" else "WHY"
    shown = finding.evidence[:most]
    return [_evidence(word if i == 0 else "", e, width) for i, e in enumerate(shown)]


def _evidence(word: str, evidence: Evidence, width: int) -> Row:
    label = _label(word, width) if width >= NARROW else Span("   ")
    tag = Span(f"[{evidence.source}] ", "dim")
    room = width - len(label.text) - 1
    if len(evidence.text) <= room - len(tag.text) - 1 or width >= NARROW:
        room -= len(tag.text) + 1
        return ends((label, Span(within(evidence.text, room)[0])), (tag,), width, gap=1)
    return (label, Span(within(evidence.text, room)[0]))


def next_rows(finding: Finding, width: int, lines: int, whole: bool = True) -> list[Row]:
    """What to do, and what it would gain, over as many of `lines` as it needs; with its
    parentheses, if `whole`."""
    if not finding.advice:
        return []
    gain = gain_of(finding)
    label = _label("NEXT", width, "key")
    room = width - len(label.text) - 1
    advice = without_gain(finding.advice[0], gain)
    if not whole:
        advice = elided(advice)
    if width < NARROW:
        gain = gain.removesuffix(" faster")
    beside = len(gain) + GAIN_GAP if gain else 1
    text = within(advice, room - beside, max(1, lines))
    if width >= NARROW and len(text) == 1:
        longer = gain_interval_of(finding)
        gain = longer if len(text[0]) + len(longer) + 2 <= room else gain
    tail = Span(f"{gain} ", role_of(finding)) if gain else Span(" ")
    blank = Span(" " * len(label.text))
    return [
        ends((label, Span(text[0], "strong")), (tail,), width, gap=1),
        *((blank, Span(more, "strong")) for more in text[1:]),
    ]


def without_gain(advice: str, gain: str) -> str:
    """Without the number that stands beside it already: ", about 5.7x" of "~5.7x faster"."""
    number = gain.removeprefix("~").removesuffix(" faster")
    return advice.replace(f", about {number}", "", 1) if number else advice


def also_row(finding: Finding, width: int) -> Row:
    """A smaller cause."""
    label = _label("also", width, role_of(finding))
    gain = gain_of(finding)
    tail = Span(f"{gain} " if gain else " ", "dim")
    room = width - len(label.text) - len(tail.text) - 1
    text = f"{contributor_name(finding)}: {finding.headline}"
    return ends((label, Span(within(text, room)[0])), (tail,), width, gap=1)


def labelled_rows(word: str, text: str, width: int, role: str, lines: int) -> list[Row]:
    """Anything else, over at most so many lines."""
    label = _label(word, width)
    wrapped = within(text, width - len(label.text) - 1, lines)
    return _below_each_other(label, [Span(line, role) for line in wrapped])


def _below_each_other(label: Span, lines: Sequence[Span]) -> list[Row]:
    blank = Span(" " * len(label.text))
    return [(label if i == 0 else blank, line) for i, line in enumerate(lines)]


def _label(word: str, width: int, role: str = "dim") -> Span:
    return Span(f"   {word:<{_indent(width) - 3}}", role)


def _indent(width: int) -> int:
    return INDENT if width >= NARROW else NARROW_INDENT
