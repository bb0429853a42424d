"""The verdict: what holds the run back, on what evidence, and what to do next."""

from collections.abc import Sequence
from typing import Final

from ..model.snapshot import Snapshot
from ..verdict.findings import Finding
from ..wording.numbers import count, duration, span
from ..wording.words import (
    ABSTAINS,
    abstains,
    contributor_name,
    gain_of,
    glyph_of,
    lasted,
    lost_words,
    name_of,
    role_of,
    sure_words,
    word_of,
)
from .finding_rows import (
    NARROW,
    URGENT_LINES,
    also_row,
    evidence_rows,
    labelled_rows,
    next_rows,
    note_rows,
    urgent_label,
    urgent_rows,
    without_gain,
)
from .header import ended_line
from .panel import Panel, View, shown_at_ns
from .text import (
    EMPTY,
    Row,
    Span,
    cell_len,
    clip,
    ends,
    length,
    rule,
    wrap,
)

# The verdict's first line, or two: the one thing that is on every screen, however small.

LEGIBLE = 12
"""A clause clipped to less than this says nothing."""


def headline_rows(snapshot: Snapshot, width: int, height: int) -> list[Row]:
    """Glyph, word, severity, confidence, age and the clause: in one row or, if need be, in two."""
    finding = snapshot.verdict.finding
    role = role_of(finding)
    word = (Span(f" {glyph_of(finding)} ", role), Span(word_of(finding), role))
    clause = (Span(finding.headline, "strong"), Span(" "))
    firsts = [(*word, Span(quality, "dim")) for quality in _qualities(snapshot, finding)]
    # Of two rows the other is for what to do: that is worth more than how bad and how sure.
    for first in firsts if height <= 2 else firsts[:2]:
        if length(first) + length(clause) + 2 <= width:
            if length(first) == length(word):
                return [(*word, Span("   "), *clause)]
            return [ends(first, clause, width)]
    for first in firsts:
        if height >= 2 and length(first) <= width:
            lines = wrap(finding.headline, width - 4, min(2, height - 1))
            return [first, *((Span("   "), Span(line, "strong")) for line in lines)]
    room = width - length(word) - 2
    if room < LEGIBLE:
        return [word]
    return [(*word, Span("  "), Span(clip(finding.headline, room), "strong"))]


def _qualities(snapshot: Snapshot, finding: Finding) -> list[str]:
    """How bad, how sure, for how long: the fullest first, nothing last."""
    if abstains(finding):
        return [""]
    since = snapshot.verdict.since_ns
    age = "" if since is None else duration((shown_at_ns(snapshot) - since) / 1e9)
    sure = sure_words(snapshot.verdict.confidence)
    return [
        f"   {finding.severity} · {sure}" + (f" · for {age}" if age else ""),
        f"  {finding.severity} · {sure}" + (f" · {age}" if age else ""),
        f"  {finding.severity}",
        "",
    ]


MOST_PARTING: Final = 3
"""Rows of the verdict, and of what to do next, in a narrow terminal."""
PARTING_INDENT: Final = 7
"""Below "  NEXT "."""


def parting_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The verdict, then NEXT and the time lost by cause: what stays in the terminal, `width` cells
    wide, once the screen is left. While there is no verdict only what is urgent."""
    finding, notes = snapshot.verdict.finding, snapshot.verdict.notes
    urgent = [f"{urgent_label(note)}  {note.text}" for note in notes if note.urgent]
    lines = [line for text in urgent for line in _broken(text, "", width)]
    if abstains(finding):
        return lines
    quality = " ".join(_qualities(snapshot, finding)[0].split())
    first = f"{glyph_of(finding)} {word_of(finding)}  {quality}  {finding.headline}"
    lines = [*_broken(first, "", width), *lines]
    second = []
    if finding.advice:
        gain = gain_of(finding)
        advice = without_gain(finding.advice[0], gain)
        second.append(f"NEXT {advice}{f'  {gain}' if gain else ''}")
    second.append(lost_words(snapshot.summary))
    if words := " · ".join(filter(None, second)):
        lines += _broken(words, "  ", width)
    return lines


def _broken(text: str, indent: str, width: int) -> list[str]:
    """In rows that fit; those after the first lie further in."""
    rows = wrap(text, max(NARROW, width) - PARTING_INDENT, MOST_PARTING)
    further = " " * PARTING_INDENT
    return [f"{indent if not at else further}{row}" for at, row in enumerate(rows)]


# Earlier verdicts, as a note beside the verdict's heading.

BEFORE = "before: "


def past_note(snapshot: Snapshot, width: int) -> str:
    """ "before: compute 2h10m → host 9m00s", the oldest left out where there is no room; "" where
    there was no other verdict."""
    history = [
        f"{name_of(one.kind, one.sub)} {lasted(one)}"
        for one in snapshot.timeline.verdicts[:-1]
        if one.kind not in ABSTAINS
    ]
    while history and cell_len(BEFORE + " → ".join(history)) > width:
        del history[0]
    return BEFORE + " → ".join(history) if history else ""


TINY = 40
ROOMY = 100
"""From here on the heading has room for earlier verdicts."""
HEADING = 24
"""Cells of it that are the panel's name and its rule."""
EVIDENCE = 3
KEPT_EVIDENCE = 2
"""Lines of it that NEXT does not push out: the panel grows before."""
GREAT: Final = 1 / 3
"""Of the first cause's share: what another one takes then is worth a row."""
MOST_GREAT: Final = 2
MOST_ACTION = 12
"""Lines of NEXT: no advice is as long."""
HEADED = 6
"""From this many rows on the panel has a heading, unless NEXT needs the row."""
NOTED = 6
"""From this many rows on the last one is kept for a note, where there is one."""
SIDE_BY_SIDE = 72
"""From this many cells each, findings stand side by side."""


class VerdictPanel(Panel):
    """From one row (the headline alone) to all findings side by side."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Headline, then next action and evidence as far as there is room."""
        if height < HEADED or height <= least_rows(view, width, brief=False):
            return verdict_rows(view, width, height)
        head = rule("Verdict", _notes(view.snapshot, width), width, self.has_focus)
        others = view.snapshot.verdict.contributors
        if height >= 8 and _is_split(view, width):
            left = _left_half(width)
            mine = verdict_rows(view, left, height - 1, alone=False)
            theirs = _contributors(others, width - left - 2, height - 1)
            return [head, *_beside(mine, theirs, left, height - 1)]
        return [head, *verdict_rows(view, width, height - 1)]


def least_rows(view: View, width: int, brief: bool) -> int:
    """Rows without which NEXT would be cut: it, the headline, what is urgent, and above the
    overview two lines of evidence and great causes. `brief`: beside another view. 0 below forty
    cells."""
    if width < TINY:
        return 0
    finding = view.snapshot.verdict.finding
    if _is_split(view, width) and not brief:
        width = _left_half(width)
    action = len(next_rows(finding, width, MOST_ACTION, whole=not brief))
    kept = 0 if brief or width < NARROW else min(KEPT_EVIDENCE, len(finding.evidence))
    ended, urgent = int(view.ended), len(urgent_rows(view.snapshot.verdict.notes, width))
    if brief and ended + 1 + action <= 2:
        return 2 + urgent
    if not brief:
        kept += len(great_causes(view.snapshot))
    headline = len(headline_rows(view.snapshot, width, HEADED))
    return ended + headline + urgent + kept + action


def _is_split(view: View, width: int) -> bool:
    """There is more than one finding, and room for two beside each other."""
    return bool(view.snapshot.verdict.contributors) and width >= 2 * SIDE_BY_SIDE


def _left_half(width: int) -> int:
    return width // 2 - 1


def _notes(snapshot: Snapshot, width: int) -> list[str]:
    """What the verdict rests on, and before it earlier verdicts, where there is room."""
    notes = _window_notes(snapshot)
    room = width - HEADING - sum(len(note) + 3 for note in notes)
    before = past_note(snapshot, room) if width >= ROOMY else ""
    return [before, *notes] if before else notes


def _window_notes(snapshot: Snapshot) -> list[str]:
    steps = snapshot.steps
    if steps is None or not steps.in_window:
        return []
    return [f"last {span(steps.window_s)}", f"{count(steps.in_window)} steps"]


def verdict_rows(view: View, width: int, height: int, alone: bool = True) -> list[Row]:
    """The verdict in `height` rows. The headline is always there, then what is urgent, then comes
    what to do."""
    if width < TINY:
        return _tiny_rows(view, width, height)
    verdict = view.snapshot.verdict
    finding = verdict.finding
    urgent = urgent_rows(verdict.notes, width)[: max(0, height - 1)]
    notes = [note for note in verdict.notes if not note.urgent]
    out = [ended_line(view, width)] if view.ended and height > 1 + len(urgent) else []
    out += headline_rows(view.snapshot, width, height - len(out) - len(urgent))
    out += urgent
    room = height - len(out)
    if room <= 0:
        return out[:height]
    great = great_causes(view.snapshot) if alone else ()
    also = (*great, *(one for one in verdict.contributors if alone and one not in great))
    action = next_rows(finding, width, room)
    free = room - EVIDENCE - len(also) - len(notes) - len(action)
    kept = 1 if notes and height >= NOTED else 0
    spare = room - len(action)
    if great:  # worth more than the last numbers of the first cause
        first = min(1, spare) if width >= NARROW else 0
        spare = max(first, spare - len(great) - kept)
    out += evidence_rows(finding, min(EVIDENCE, spare), width)
    out += action
    least = len(out) + len(great)
    out += [also_row(f, width) for f in also]
    for text in finding.advice[1:] if free > 0 else finding.advice[1:2]:
        then = labelled_rows("then", text, width, "text", max(1, free))
        out += then
        free -= len(then)
    out = out[: max(least, height - kept)]
    out += note_rows(notes, width, height - len(out))
    free = height - len(out) - len(verdict.missing)
    for missing in verdict.missing:
        lines_of_it = labelled_rows("n/a", missing.text, width, "dim", max(1, 1 + free))
        out += lines_of_it
        free -= len(lines_of_it) - 1
    return out[:height]


def great_causes(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Other causes that no screen is to leave out: those that take a third as long as the first,
    and memory that ends the run soon."""
    first, soon = snapshot.verdict.finding.share, _full_soon(snapshot)
    great = [
        one
        for at, one in enumerate(snapshot.verdict.contributors)
        if (soon and not at and one.kind == "memory-growth")
        or (first is not None and one.share is not None and one.share >= GREAT * first)
    ]
    return tuple(great[:MOST_GREAT])


def _full_soon(snapshot: Snapshot) -> bool:
    """Some memory that grows is full within the hour."""
    left = [trend.left for trend in snapshot.trends if trend.finding is not None]
    return any(one is not None and one.within_an_hour for one in left)


def _tiny_rows(view: View, width: int, height: int) -> list[Row]:
    """Below forty cells: the word, the clause, what to do, and why, broken into lines."""
    finding = view.snapshot.verdict.finding
    urgent = [note.text for note in view.snapshot.verdict.notes if note.urgent]
    kept = URGENT_LINES if urgent else 0
    out: list[Row] = headline_rows(view.snapshot, width, max(1, height - kept))
    for text in urgent[: height - len(out)]:
        lines = wrap(text, width - 2, height - len(out))
        out += [(Span("▲ " if i == 0 else "  ", "critical"), Span(t)) for i, t in enumerate(lines)]
    if finding.advice and len(out) < height:
        lines = wrap(finding.advice[0], width - 2, height - len(out))
        out += [(Span("→ " if i == 0 else "  ", "key"), Span(t)) for i, t in enumerate(lines)]
    for evidence in finding.evidence:
        lines = wrap(evidence.text, width - 2, max(1, height - len(out)))
        out += [(Span("· " if i == 0 else "  ", "dim"), Span(t)) for i, t in enumerate(lines)]
    return out[:height]


def _contributors(findings: Sequence[Finding], width: int, height: int) -> list[Row]:
    out: list[Row] = []
    for finding in findings:
        if height - len(out) < 2:
            break
        if out:
            out.append(EMPTY)
        role = role_of(finding)
        head = (Span(f" {glyph_of(finding)} also: {contributor_name(finding)}", role),)
        clause = clip(finding.headline, width - length(head) - 3)
        out.append(ends(head, (Span(clause, "strong"), Span(" ")), width))
        out += evidence_rows(finding, EVIDENCE, width)
        out += next_rows(finding, width, height - len(out))
    return out[:height]


def _beside(left: list[Row], right: list[Row], width: int, height: int) -> list[Row]:
    out: list[Row] = []
    for y in range(height):
        mine = left[y] if y < len(left) else EMPTY
        theirs = right[y] if y < len(right) else EMPTY
        gap = max(0, width - length(mine)) + 2
        out.append((*mine, Span(" " * gap), *theirs))
    return out
