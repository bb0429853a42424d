"""The verdict's first line, or two: the one thing that is on every screen, however small."""

from tui.snapshot import Snapshot
from tui.verdict.findings import Finding
from tui.widgets.spans import Row, Span, clip, ends, length, wrap
from tui.widgets.view import shown_at_ns
from tui.wording.numbers import duration
from tui.wording.words import WORDS, abstains, glyph_of, role_of

LEGIBLE = 12
"""A clause clipped to less than this says nothing."""


def headline_rows(snapshot: Snapshot, width: int, height: int) -> list[Row]:
    """Glyph, word, severity, confidence, age and the clause: in one row or, if need be, in two."""
    finding = snapshot.verdict.finding
    role = role_of(finding)
    word = (Span(f" {glyph_of(finding)} ", role), Span(WORDS[finding.kind], role))
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
    sure = snapshot.verdict.confidence_word
    return [
        f"   {finding.severity} · {sure} confidence" + (f" · for {age}" if age else ""),
        f"  {finding.severity} · {sure}" + (f" · {age}" if age else ""),
        f"  {finding.severity}",
        "",
    ]
