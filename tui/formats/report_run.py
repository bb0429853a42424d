"""What the verdict says, now and before: with its evidence, what to do, and what else was found."""

from typing import Final

from ..model.snapshot import PhaseStats, Snapshot, StepStats
from ..verdict.findings import Evidence, Finding, Note, Verdict
from ..wording import numbers
from ..wording.gpu import clock_words
from ..wording.steps import rare_words
from ..wording.words import WORDS, abstains, account, entry, gain_of
from .report_lines import joined, labelled, wrapped

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
    said = snapshot.timeline.verdicts
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


# The window's steps: how fast, how steady, and where their time goes on both clocks.

PHASE_WORDS: Final = {"data": "data wait"}


def step_lines(snapshot: Snapshot, width: int) -> list[str]:
    """Pace, a row for each phase that takes time, and the waits as the GPU felt them."""
    steps = snapshot.steps
    if steps is None:
        return []
    lines = labelled("steps", [_pace(steps)], width)
    on_gpu = {one.name: one for one in snapshot.gpu_phases.phases} if snapshot.gpu_phases else {}
    spent = [phase for phase in steps.phases if phase.share > 0 or phase.name in on_gpu]
    lines += labelled("phases", [_phase(phase, on_gpu.get(phase.name)) for phase in spent], width)
    if snapshot.gpu_phases is not None:
        clock = " · ".join(clock_words(snapshot.gpu_phases))
        lines += labelled("", [f"on the GPU's clock: {clock}   [event]"], width)
    return lines


def phase_shares(steps: StepStats) -> list[str]:
    """ "data wait 57%", in the order of a step; what takes no time is left out."""
    return [
        f"{_name(phase)} {numbers.percent(phase.share)}"
        for phase in steps.phases
        if phase.share > 0
    ]


def _pace(steps: StepStats) -> str:
    return joined(
        (
            f"{numbers.count(steps.total)} {'inference ' if steps.inference else ''}steps",
            f"{numbers.digits(steps.steps_s)} steps/s",
            "" if steps.samples_s is None else f"{numbers.digits(steps.samples_s)} samples/s",
            f"p50 {numbers.milliseconds(steps.p50_ms)}",
            f"p95 {numbers.milliseconds(steps.p95_ms)}",
            f"max {numbers.milliseconds(steps.max_ms)}",
            f"over {numbers.count(steps.in_window)} steps, {numbers.span(steps.window_s)}",
            f"of means of {steps.merged} steps" if steps.merged > 1 else "",
        )
    )


def _phase(phase: PhaseStats, on_gpu: PhaseStats | None) -> str:
    """ "data wait 706 ms a step, 57% · p50 690 ms · p95 980 ms · max 1,402 ms · on the GPU 41 ms",
    "checkpoint 90 ms a step, 74% · every 10 steps, 903 ms each · max 947 ms"."""
    mean = f"{numbers.milliseconds(phase.mean_ms)} a step"
    said = [f"{_name(phase)} {mean}, {numbers.percent(phase.share)}"]
    spread, rare = phase.spread, rare_words(phase)
    if rare:
        said.append(rare)
    elif spread is not None:
        said.append(f"p50 {numbers.milliseconds(spread.p50_ms)}")
        said.append(f"p95 {numbers.milliseconds(spread.p95_ms)}")
    if spread is not None:
        said.append(f"max {numbers.milliseconds(spread.max_ms)}")
    if on_gpu is not None:
        said.append(f"on the GPU {numbers.milliseconds(on_gpu.mean_ms)}")
    return " · ".join(said)


def _name(phase: PhaseStats) -> str:
    return PHASE_WORDS.get(phase.name, phase.name)
