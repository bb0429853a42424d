"""The report: the verdict now and before, and everything else that the overview says, as text."""

from typing import Final

from ..model.link import LinkStatus
from ..model.snapshot import Event, Snapshot, Status
from ..verdict.findings import Evidence, Finding, Note, Verdict
from ..wording import numbers
from ..wording.words import (
    abstains,
    account,
    contributor_name,
    entry,
    gain_interval_of,
    sure_words,
    time_of_day,
    word_of,
)
from .report_layout import labelled, wrapped
from .report_machine import memory_lines, process_lines, use_lines
from .report_run import loader_lines, noted_lines, sampled_lines, stack_lines, step_lines

LEAST_WIDTH: Final = 40
PAST_ROWS: Final = 6
EVENT_ROWS: Final = 8
STALE_S: Final = 1.0
"""Messages come four times per second: only an older one is worth a word."""
SECOND_NS: Final = 1_000_000_000
"""A past verdict that held for less is the newest one, which stands above."""


def report_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The whole report, in lines of at most `width` columns (but for words that are longer)."""
    width = max(LEAST_WIDTH, width)
    return [
        *wrapped("", " · ".join(_header(snapshot)), width),
        "",
        *verdict_lines(snapshot.verdict, width, snapshot.t_ns),
        "",
        *past_lines(snapshot, width),
        *step_lines(snapshot, width),
        *noted_lines(snapshot, width),
        *sampled_lines(snapshot, width),
        *use_lines(snapshot, width),
        *memory_lines(snapshot, width),
        *loader_lines(snapshot, width),
        *stack_lines(snapshot, width),
        *process_lines(snapshot, width),
        *labelled("events", _events(snapshot), width),
        *labelled("missing", [one.text for one in snapshot.status.missing], width),
    ]


def _header(snapshot: Snapshot) -> list[str]:
    facts = [f"gpuwatch   {snapshot.script or '?'}   pid {snapshot.pid}"]
    hello = snapshot.hello
    if hello is not None and hello.rank is not None and hello.world_size is not None:
        facts.append(f"rank {hello.rank}/{hello.world_size}")
    facts.append(f"attached {numbers.duration(snapshot.attached_s)}")
    return [*facts, *_status(snapshot.status)]


def _status(status: Status) -> list[str]:
    """What watching costs, what was lost, how fresh it is, how training ended."""
    facts: list[str] = [status.mode]
    if status.ended is not None:
        facts.append(f"training {status.ended}")
    elif status.state != "live":
        facts.append(status.state)
    if status.cost_share is not None:
        cost = 100 * status.cost_share
        facts.append(f"cost {cost:.2f}%" if cost >= 0.005 else "cost <0.01%")
    if status.monitor_cpu_percent is not None:
        facts.append(f"monitor {status.monitor_cpu_percent:.0f}%")
    if status.lost_messages:
        facts.append(f"{numbers.count(status.lost_messages)} messages lost")
    if status.lost_marks:
        facts.append(f"{numbers.count(status.lost_marks)} marks lost")
    if status.unended_phases:
        facts.append(f"{numbers.count(status.unended_phases)} phases entered and not left")
    if status.recording is not None:
        facts.append(f"recording {status.recording}")
    if status.replay is not None:
        facts.append(f"replay {status.replay}")
    if status.link is not None:
        facts += link_words(status.link)
    if status.freshness_s is not None and status.ended is None and status.freshness_s >= STALE_S:
        facts.append(f"last message {numbers.duration(status.freshness_s)} ago")
    return facts


def link_words(link: LinkStatus) -> list[str]:
    """ "on node7", "round trip 152 ms", "its clock is 3 ms ahead (± 76 ms)", "1.2 kB/s"."""
    words = [f"on {link.place}"]
    if link.lost_s is not None:
        words.append(f"link lost {numbers.duration(link.lost_s)} ago: {link.why}")
    if link.round_trip_ms is not None:
        words.append(f"round trip {numbers.milliseconds(link.round_trip_ms)}")
    if link.ahead_ms is not None and link.uncertain_ms is not None:
        side = "ahead" if link.ahead_ms >= 0 else "behind"
        uncertain = numbers.milliseconds(link.uncertain_ms)
        words.append(
            f"its clock is {numbers.milliseconds(abs(link.ahead_ms))} {side} (± {uncertain})"
        )
    if link.bytes_s is not None:
        words.append(f"{link.bytes_s / 1e3:.1f} kB/s")
    if link.left_out:
        words.append(f"{numbers.count(link.left_out)} rows left out: the link is too slow")
    return words


def verdict_lines(verdict: Verdict, width: int, now_ns: int | None = None) -> list[str]:
    """The verdict with its evidence, what to do next, what else was found, and the notes; with
    `now_ns` also for how long it has held."""
    finding = verdict.finding
    head = word_of(finding)
    if not abstains(finding):
        facts = [finding.severity, sure_words(verdict.confidence)]
        if now_ns is not None and verdict.since_ns is not None:
            facts.append(f"for {numbers.duration((now_ns - verdict.since_ns) / 1e9)}")
        if verdict.since_step is not None:
            facts.append(f"since step {numbers.count(verdict.since_step)}")
        head += "   " + " · ".join(facts)
    lines = wrapped("", head, width) + wrapped("  ", finding.headline, width)
    lines += _reasons(finding, width, "    ", "  NEXT")
    for other in verdict.contributors:
        lines += labelled("  ALSO", [f"{contributor_name(other)}: {other.headline}"], width)
        lines += _reasons(other, width, " " * 11, "")
    return lines + labelled("  NOTE", map(note_line, verdict.notes), width)


def note_line(note: Note) -> str:
    """ "anomaly detection was left on: … (it slows the backward, 34% of every step)   [event]"."""
    cost = f" ({note.cost})" if note.cost else ""
    return f"{note.text}{cost}   [{note.source}]"


def _reasons(finding: Finding, width: int, indent: str, label: str) -> list[str]:
    """Evidence, then advice: below a label, or without one behind arrows."""
    lines: list[str] = []
    for evidence in finding.evidence:
        lines += wrapped(indent, _evidence(evidence), width)
    if not finding.advice:
        return lines
    gain = gain_interval_of(finding)
    first = f"{finding.advice[0]}   {gain}" if gain else finding.advice[0]
    if label:
        return lines + labelled(label, [first, *finding.advice[1:]], width)
    for advice in (first, *finding.advice[1:]):
        lines += wrapped(indent, f"→ {advice}", width)
    return lines


def _evidence(evidence: Evidence) -> str:
    return f"{evidence.text}   [{evidence.source}]"


def past_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The run's time by verdict, and its past verdicts where there were several."""
    whole = account(snapshot.summary)
    verdicts = snapshot.timeline.verdicts
    long = [one for one in verdicts if one.until_ns - one.since_ns >= SECOND_NS]
    rows = [entry(one) for one in long[-PAST_ROWS:]] if len(verdicts) > 1 else []
    return labelled("past", [row for row in (whole, *rows) if row], width)


def _events(snapshot: Snapshot) -> list[str]:
    rows: list[str] = []
    for event in snapshot.events[-EVENT_ROWS:]:
        ago = numbers.duration((snapshot.t_ns - event.t_ns) / 1e9)
        rows.append(f"{time_of_day(snapshot, event.t_ns)} {event_line(event)}, {ago} ago")
    return rows


def event_line(event: Event) -> str:
    """ "step 18,000: checkpoint 4.1 s"."""
    return (f"step {numbers.count(event.step)}: " if event.step is not None else "") + event.text
