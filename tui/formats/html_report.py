"""The report as a page: one file that needs no network, for whoever was not watching."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

from ..model.snapshot import Snapshot
from ..steps import Step
from ..verdict.findings import Finding
from ..wording import numbers
from ..wording.ledger import ledger_words
from ..wording.steps import NAMES, drawn_phases, rare_words
from ..wording.throughput import numerics_words, throughput_words
from ..wording.words import (
    abstains,
    account,
    entry,
    gain_interval_of,
    name_of,
    sure_words,
    time_of_day,
    word_of,
)
from . import html
from .report import PAST_ROWS, event_line, note_line, report_lines

TEXT_WIDTH: Final = 90
COLOURS: Final = {
    "data": "#cf6679",
    "loader start-up": "#e0a3ad",
    "forward": "#3b82f6",
    "backward": "#7c5cd6",
    "optimizer": "#2a9d8f",
    "evaluation": "#b8860b",
    "checkpoint": "#d9822b",
    "compile": "#c05fa8",
}
"""Of the phases; every other is grey."""
GREY: Final = "#8b949e"
LOST: Final = ("#cf6679", "#d9822b", "#b8860b", "#7c5cd6", "#3b82f6", "#2a9d8f")
DRAWN: Final = 1e300
"""Beyond, a value of a run that diverged is drawn as this: differences and sums stay numbers."""

Curves = Mapping[str, Sequence[tuple[int, float]]]


def report_page(
    snapshot: Snapshot, steps: Sequence[Step] = (), curves: Curves = MappingProxyType({})
) -> str:
    """The whole page; with the run's `steps` also how long they took over time, and with `curves`
    what it noted of itself, by name: (perf_counter_ns, value)."""
    return html.page(
        f"gpuwatch: {snapshot.script or snapshot.pid}",
        (
            f"<h1>{html.text(snapshot.script or '?')}</h1>",
            html.paragraph(_whose(snapshot), "dim"),
            *_verdict(snapshot),
            *_lost(snapshot),
            *_phases(snapshot),
            *_noted(snapshot),
            *_over_time(steps),
            *_curves(curves),
            *_gpu(snapshot),
            *_past(snapshot),
            *_events(snapshot),
            html.heading("Everything"),
            "<details><summary>The report as text</summary><pre>",
            html.text("\n".join(report_lines(snapshot, TEXT_WIDTH))),
            "</pre></details>",
        ),
    )


def _whose(snapshot: Snapshot) -> str:
    at = datetime.fromtimestamp(snapshot.t_unix)
    parts = [f"pid {snapshot.pid}"]
    if (hello := snapshot.hello) is not None:
        parts.append(hello.host)
        if hello.rank is not None and hello.world_size is not None:
            parts.append(f"rank {hello.rank} of {hello.world_size}")
        parts += [f"Python {hello.python}", *([f"torch {hello.torch}"] if hello.torch else [])]
    parts += dict.fromkeys(gpu.name for gpu in snapshot.gpus)
    parts.append(f"watched for {numbers.duration(snapshot.attached_s)} until {at:%Y-%m-%d %H:%M}")
    if snapshot.status.ended is not None:
        parts.append(f"training {snapshot.status.ended}")
    return " · ".join(parts)


def _verdict(snapshot: Snapshot) -> list[str]:
    verdict = snapshot.verdict
    finding = verdict.finding
    head = word_of(finding)
    if not abstains(finding):
        head += f" · {finding.severity} · {sure_words(verdict.confidence)}"
    kind = html.attribute(finding.severity)
    parts = [
        f'<div class="verdict {kind}">{html.paragraph(head, "name")}',
        html.paragraph(finding.headline),
        _reasons(finding),
        "</div>",
    ]
    for other in verdict.contributors:
        parts.append(html.paragraph(f"Also: {other.headline}", "name"))
        parts.append(_reasons(other))
    if verdict.notes:
        parts += [html.heading("Notes"), html.listed(map(note_line, verdict.notes))]
    return parts


def _reasons(finding: Finding) -> str:
    rows = html.listed(f"{one.text} [{one.source}]" for one in finding.evidence)
    if not finding.advice:
        return rows
    gain = gain_interval_of(finding)
    first = f"{finding.advice[0]} · {gain}" if gain else finding.advice[0]
    return rows + html.paragraph("Next", "name") + html.listed([first, *finding.advice[1:]])


def _lost(snapshot: Snapshot) -> list[str]:
    """Time lost by cause, of all the time that was judged."""
    whole_ns = sum(held.ns for held in snapshot.summary)
    lost = [held for held in snapshot.summary if held.cost_ns and held.cost_ns >= 0.005 * whole_ns]
    if not lost or not whole_ns:
        return []
    lost.sort(key=lambda held: -(held.cost_ns or 0))
    parts = [
        html.Part(name_of(one.kind, one.sub), (one.cost_ns or 0) / whole_ns, colour)
        for one, colour in zip(lost, LOST, strict=False)
    ]
    rest = max(0.0, 1 - sum(part.share for part in parts))
    return [
        html.heading(f"Time lost by cause, of {numbers.duration(whole_ns / 1e9)}"),
        html.bar([*parts, html.Part("the rest", rest, GREY)], "time lost by cause"),
    ]


def _phases(snapshot: Snapshot) -> list[str]:
    stats = snapshot.steps
    if stats is None:
        return []
    drawn = [phase for phase in drawn_phases(snapshot) if phase.share > 0]
    on_gpu = {one.name: one for one in snapshot.gpu_phases.phases} if snapshot.gpu_phases else {}
    names = [NAMES.get(phase.name, phase.name) for phase in drawn]
    bar = html.bar(
        [
            html.Part(name, phase.share, COLOURS.get(phase.name, GREY))
            for name, phase in zip(names, drawn, strict=True)
        ],
        "phases of a step",
    )
    rows = []
    for name, phase in zip(names, drawn, strict=True):
        gpu = on_gpu.get(phase.name)
        on_its_clock = html.Cell("" if gpu is None else numbers.milliseconds(gpu.mean_ms))
        rows.append(
            (
                html.Cell(name),
                html.Cell(numbers.milliseconds(phase.mean_ms), "number"),
                html.Cell(numbers.percent(phase.share)),
                *([on_its_clock] if on_gpu else []),
                html.Cell(rare_words(phase)),
            )
        )
    head = ("phase", "per step", "share", *(["on the GPU's clock"] if on_gpu else []), "")
    pace = [numbers.steps_in_time(stats.steps_s)]
    if stats.samples_s is not None:
        pace.append(f"{numbers.digits(stats.samples_s)} samples/s")
    pace += [
        f"p50 {numbers.milliseconds(stats.p50_ms)}",
        f"p95 {numbers.milliseconds(stats.p95_ms)}",
        f"max {numbers.milliseconds(stats.max_ms)}",
        f"the last {numbers.count(stats.in_window)} of {numbers.count(stats.total)} steps",
    ]
    return [
        html.heading("Where a step's time goes"),
        bar,
        html.table(head, rows),
        html.paragraph(" · ".join(pace), "dim"),
    ]


def _noted(snapshot: Snapshot) -> list[str]:
    parts = []
    if snapshot.throughput is not None and (words := throughput_words(snapshot.throughput)):
        parts += [html.heading("What it gets done"), html.listed(words)]
    if snapshot.numerics is not None:
        parts += [html.heading("Its numbers"), html.listed(numerics_words(snapshot.numerics))]
    return parts


def _over_time(steps: Sequence[Step]) -> list[str]:
    if len(steps) < 2:
        return []
    first_ns = steps[0].start_ns
    times = [
        ((step.end_ns - first_ns) / 1e9, (step.end_ns - step.start_ns) / 1e6 / step.count)
        for step in steps
    ]
    line = html.Line(html.thinned(times), COLOURS["forward"])
    top = numbers.milliseconds(html.height_of([line]))
    ends = ("0 s", numbers.duration(times[-1][0]))
    return [
        html.heading("Step time over the run"),
        html.chart([line], "step time over the run", ends, top),
        html.paragraph("mean and range; single steps may be longer than is drawn", "dim"),
    ]


def _curves(curves: Curves) -> list[str]:
    """Each from its lowest to its highest: a chart from 0 up would flatten a loss."""
    parts = []
    for name, points in curves.items():
        if len(points) < 2:
            continue
        values = [max(-DRAWN, min(DRAWN, value)) for _, value in points]
        low, first_ns = min(values), points[0][0]
        times_s = ((t_ns - first_ns) / 1e9 for t_ns, _ in points)
        drawn = [(at_s, value - low) for at_s, value in zip(times_s, values, strict=True)]
        line = html.Line(html.thinned(drawn), COLOURS["backward"])
        top = low + html.height_of([line])
        ends = (f"bottom: {low:.4g}", numbers.duration(drawn[-1][0]))
        parts += [
            html.heading(f"{name} over the run"),
            html.chart([line], f"{name} over the run", ends, f"{top:.4g}", bottom=False),
        ]
    return parts


def _gpu(snapshot: Snapshot) -> list[str]:
    if snapshot.ledger is None:
        return []
    return [
        html.heading("Where the GPU's time goes"),
        html.listed(ledger_words(snapshot.ledger)),
        html.paragraph(f"measured by {snapshot.ledger.source}", "dim"),
    ]


def _past(snapshot: Snapshot) -> list[str]:
    whole = account(snapshot.summary)
    verdicts = snapshot.timeline.verdicts
    rows = [entry(one) for one in verdicts[-PAST_ROWS:]] if len(verdicts) > 1 else []
    shown = [row for row in (whole, *rows) if row]
    return [html.heading("Verdicts so far"), html.listed(shown)] if shown else []


def _events(snapshot: Snapshot) -> list[str]:
    rows = [
        f"{time_of_day(snapshot, one.t_ns)} {event_line(one)}"
        for one in snapshot.events
        if one.kind != "recording"  # where the report itself came from
    ]
    return [html.heading("Events"), html.listed(rows)] if rows else []
