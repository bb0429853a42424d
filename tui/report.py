"""The report: everything that the overview says, as lines of text."""

import textwrap
from collections.abc import Iterable
from typing import Final

from probe.wire.messages import Loader
from tui.observations import GpuUse
from tui.snapshot import MemoryView, Snapshot, StepStats
from tui.verdict.findings import Evidence, Finding, Note, Verdict
from tui.verdict.window import FrameShare, Stacks
from tui.wording import numbers
from tui.wording.gpu import allocator_words, clock_words, does_words, memory_words, state_words
from tui.wording.past import account, entry
from tui.wording.words import WORDS, abstains, gain_of

LABEL: Final = 9
"""Columns of the labels on the left."""
LEAST_WIDTH: Final = 40
STACK_ROWS: Final = 3
EVENT_ROWS: Final = 8
PAST_ROWS: Final = 6
PHASE_WORDS: Final = {"data": "data wait"}


def report_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The whole report, in lines of at most `width` columns (but for words that are longer)."""
    width = max(LEAST_WIDTH, width)
    lines = [*_header(snapshot, width), ""]
    lines += verdict_lines(snapshot.verdict, width)
    lines.append("")
    lines += _past(snapshot, width)
    if snapshot.steps is not None:
        lines += _steps(snapshot.steps, width)
    lines += _use(snapshot, width)
    lines += _memory(snapshot.memory, width)
    lines += _rows("loader", map(_loader, snapshot.loaders), width)
    if snapshot.stacks is not None:
        lines += _stacks(snapshot.stacks, width)
    lines += _events(snapshot, width)
    lines += _rows("missing", snapshot.status.missing, width)
    return lines


def verdict_lines(verdict: Verdict, width: int) -> list[str]:
    """The verdict with its evidence, what to do next, what else was found, and the notes."""
    finding = verdict.finding
    head = WORDS[finding.kind]
    if not abstains(finding):
        said = [
            finding.severity,
            f"{verdict.confidence_word} confidence ({verdict.confidence:.2f})",
        ]
        if verdict.since_step is not None:
            said.append(f"since step {numbers.count(verdict.since_step)}")
        head += "   " + " · ".join(said)
    lines = _wrapped("", head, width) + _wrapped("  ", finding.headline, width)
    for evidence in finding.evidence:
        lines += _wrapped("    ", _evidence(evidence), width)
    lines += _next(finding, width)
    also = [f"{WORDS[other.kind]}: {other.headline}" for other in verdict.contributors]
    lines += _rows("  ALSO", also, width)
    return lines + _rows("  NOTE", map(note_line, verdict.notes), width)


def note_line(note: Note) -> str:
    """ "anomaly detection was left on: … (it slows the backward, 34% of every step)   [event]"."""
    cost = f" ({note.cost})" if note.cost else ""
    return f"{note.text}{cost}   [{note.source}]"


def phase_shares(steps: StepStats) -> list[str]:
    """ "data wait 57%", in the order of a step; what takes no time is left out."""
    return [
        f"{PHASE_WORDS.get(phase.name, phase.name)} {numbers.percent(phase.share)}"
        for phase in steps.phases
        if phase.share > 0
    ]


def _header(snapshot: Snapshot, width: int) -> list[str]:
    status = snapshot.status
    said = [f"gpuwatch   {snapshot.script or '?'}   pid {snapshot.pid}"]
    hello = snapshot.hello
    if hello is not None and hello.rank is not None and hello.world_size is not None:
        said.append(f"rank {hello.rank}/{hello.world_size}")
    said.append(f"attached {numbers.duration(snapshot.attached_s)}")
    said.append(status.mode)
    if status.cost_share is not None:
        cost = 100 * status.cost_share
        said.append(f"cost {cost:.2f}%" if cost >= 0.005 else "cost <0.01%")
    if status.lost_messages:
        said.append(f"{numbers.count(status.lost_messages)} messages lost")
    if status.lost_marks:
        said.append(f"{numbers.count(status.lost_marks)} marks lost")
    if status.ended is not None:
        said.append(f"the process {status.ended}")
    elif status.state != "live":
        said.append(status.state)
    return _wrapped("", " · ".join(said), width)


def _evidence(evidence: Evidence) -> str:
    return f"{evidence.text}   [{evidence.source}]"


def _next(finding: Finding, width: int) -> list[str]:
    if not finding.advice:
        return []
    gain = gain_of(finding)
    first = f"{finding.advice[0]}   {gain}" if gain else finding.advice[0]
    return _rows("  NEXT", [first, *finding.advice[1:]], width)


def _steps(steps: StepStats, width: int) -> list[str]:
    said = [f"{numbers.count(steps.total)} {'inference ' if steps.inference else ''}steps"]
    said.append(f"{numbers.digits(steps.steps_s)} steps/s")
    if steps.samples_s is not None:
        said.append(f"{numbers.digits(steps.samples_s)} samples/s")
    said.append(f"p50 {numbers.milliseconds(steps.p50_ms)}")
    said.append(f"p95 {numbers.milliseconds(steps.p95_ms)}")
    said.append(f"max {numbers.milliseconds(steps.max_ms)}")
    said.append(f"over {numbers.count(steps.in_window)} steps, {numbers.span(steps.window_s)}")
    phases = [
        f"{PHASE_WORDS.get(phase.name, phase.name)} {numbers.milliseconds(phase.mean_ms)} "
        f"{numbers.percent(phase.share)}"
        for phase in steps.phases
        if phase.share > 0
    ]
    return _rows("steps", [" · ".join(said)], width) + _rows("phases", [" · ".join(phases)], width)


def _use(snapshot: Snapshot, width: int) -> list[str]:
    rows: list[str] = []
    sawtooth = snapshot.sawtooth
    if sawtooth is not None and sawtooth.samples:
        values = [sample.value for sample in sawtooth.samples]
        mean = sum(values) / len(values)
        rows.append(f"{sawtooth.title} mean {mean:.0f}   [{sawtooth.source}]")
        if sawtooth.note:
            rows.append(sawtooth.note)
    rows += [_gpu(snapshot, gpu) for gpu in snapshot.gpus]
    if snapshot.gpu_phases is not None:
        rows.append(f"on the GPU's clock: {' · '.join(clock_words(snapshot.gpu_phases))}   [event]")
    if snapshot.gpu_memory:
        newest = snapshot.gpu_memory[-1]
        rows.append(f"its allocator: {' · '.join(allocator_words(newest))}   [hook]")
    return _rows("use", rows, width)


def _gpu(snapshot: Snapshot, gpu: GpuUse) -> str:
    said = [word for one in snapshot.activity if one.index == gpu.index for word in does_words(one)]
    said += state_words(gpu)
    said += [f"held down: {reason}" for reason in gpu.throttle_reasons]
    said += [f"memory {' · '.join(memory_words(gpu))}"]
    return f"GPU {gpu.index} {gpu.name}: " + " · ".join(said)


def _memory(memory: MemoryView, width: int) -> list[str]:
    if memory.host_rss_bytes is None:
        return []
    said = [f"process {numbers.size(memory.host_rss_bytes)}"]
    if memory.workers_bytes is not None:
        said.append(f"workers {numbers.size(memory.workers_bytes)}")
    if memory.available_bytes is not None and memory.total_bytes is not None:
        total = numbers.size(memory.total_bytes)
        said.append(f"{numbers.size(memory.available_bytes)} of {total} available")
    if memory.slope_bytes_per_100_steps is not None:
        said.append(numbers.growth(memory.slope_bytes_per_100_steps))
    if memory.growing:
        said.append("growing")
    return _rows("memory", [" · ".join(said)], width)


def _loader(loader: Loader) -> str:
    said = [f"{loader.dataset or loader.kind}"]
    if loader.num_workers is not None:
        said.append(f"num_workers {loader.num_workers}")
    if loader.prefetch_factor is not None:
        said.append(f"prefetch_factor {loader.prefetch_factor}")
    if loader.batch_size is not None:
        said.append(f"batch size {loader.batch_size}")
    if loader.pin_memory:
        said.append("pinned")
    if loader.evaluation:
        said.append("evaluation")
    return " · ".join(said)


def _stacks(stacks: Stacks, width: int) -> list[str]:
    rows = _role("main", stacks.main) + _role("workers", stacks.workers)
    return _rows("stacks", rows, width)


def _role(role: str, places: tuple[FrameShare, ...]) -> list[str]:
    return [
        f"{role} {numbers.percent(place.share)} {place.frame}"
        + (f" ← {place.caller}" if place.caller else "")
        for place in places[:STACK_ROWS]
    ]


def _past(snapshot: Snapshot, width: int) -> list[str]:
    """The account of the run's time, and what was said, where that changed."""
    whole = account(snapshot.summary)
    said = snapshot.timeline.said
    rows = [entry(one) for one in said[-PAST_ROWS:]] if len(said) > 1 else []
    return _rows("past", [whole, *rows] if whole else [], width)


def _events(snapshot: Snapshot, width: int) -> list[str]:
    rows = [
        (f"step {numbers.count(event.step)}: " if event.step is not None else "") + event.text
        for event in snapshot.events[-EVENT_ROWS:]
    ]
    return _rows("events", rows, width)


def _rows(label: str, rows: Iterable[str], width: int) -> list[str]:
    """Rows beside one label."""
    lines: list[str] = []
    for row in rows:
        lines += _wrapped(label.ljust(LABEL), row, width)
        label = ""
    return lines


def _wrapped(indent: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=" " * max(2, len(indent)),
        break_long_words=False,
        break_on_hyphens=False,
    )
