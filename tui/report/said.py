"""What the verdict says, now and before: with its evidence, what to do, and what else was found."""

from typing import Final

from tui.report.lines import labelled, wrapped
from tui.snapshot import Snapshot
from tui.verdict.findings import Evidence, Finding, Note, Verdict
from tui.wording import numbers
from tui.wording.past import account, entry
from tui.wording.words import WORDS, abstains, gain_of

PAST_ROWS: Final = 6
SECOND_NS: Final = 1_000_000_000
"""What has been said for less is the newest verdict, which stands above."""


def verdict_lines(verdict: Verdict, width: int, now_ns: int | None = None) -> list[str]:
    """The verdict with its evidence, what to do next, what else was found, and the notes; with
    `now_ns` also for how long it has held."""
    finding = verdict.finding
    head = WORDS[finding.kind]
    if not abstains(finding):
        said = [
            finding.severity,
            f"{verdict.confidence_word} confidence ({verdict.confidence:.2f})",
        ]
        if now_ns is not None and verdict.since_ns is not None:
            said.append(f"for {numbers.duration((now_ns - verdict.since_ns) / 1e9)}")
        if verdict.since_step is not None:
            said.append(f"since step {numbers.count(verdict.since_step)}")
        head += "   " + " · ".join(said)
    lines = wrapped("", head, width) + wrapped("  ", finding.headline, width)
    lines += _reasons(finding, width, "    ", "  NEXT")
    for other in verdict.contributors:
        head = f"{WORDS[other.kind]} ({other.severity}): {other.headline}"
        lines += labelled("  ALSO", [head], width)
        lines += _reasons(other, width, " " * 11, "")
    return lines + labelled("  NOTE", map(note_line, verdict.notes), width)


def note_line(note: Note) -> str:
    """ "anomaly detection was left on: … (it slows the backward, 34% of every step)   [event]"."""
    cost = f" ({note.cost})" if note.cost else ""
    return f"{note.text}{cost}   [{note.source}]"


def past_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The account of the run's time, and what was said, where that changed."""
    whole = account(snapshot.summary)
    said = snapshot.timeline.said
    long = [one for one in said if one.until_ns - one.since_ns >= SECOND_NS]
    rows = [entry(one) for one in long[-PAST_ROWS:]] if len(said) > 1 else []
    return labelled("past", [row for row in (whole, *rows) if row], width)


def _reasons(finding: Finding, width: int, indent: str, label: str) -> list[str]:
    """Evidence, then advice; without a label of its own that is told by an arrow."""
    lines: list[str] = []
    for evidence in finding.evidence:
        lines += wrapped(indent, _evidence(evidence), width)
    if not finding.advice:
        return lines
    gain = gain_of(finding)
    first = f"{finding.advice[0]}   {gain}" if gain else finding.advice[0]
    if label:
        return lines + labelled(label, [first, *finding.advice[1:]], width)
    for advice in (first, *finding.advice[1:]):
        lines += wrapped(indent, f"→ {advice}", width)
    return lines


def _evidence(evidence: Evidence) -> str:
    return f"{evidence.text}   [{evidence.source}]"
