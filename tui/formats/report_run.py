"""What the run does: its steps, stack samples and loaders."""

from collections import Counter
from typing import Final

from ..messages import Loader
from ..model.snapshot import PhaseStats, Snapshot, StepStats
from ..model.stack_trees import StacksOf
from ..verdict.stack_samples import FrameShare, Stacks
from ..wording import numbers
from ..wording.gpu import clock_words
from ..wording.ledger import ledger_words
from ..wording.steps import (
    NAMES,
    WORTH,
    about,
    drawn_phases,
    rare_words,
    samples_words,
    share_interval_words,
    share_words,
    step_words,
)
from ..wording.throughput import numerics_words, throughput_words
from .report_layout import joined, labelled

STACK_ROWS: Final = 6
DUMP_FRAMES: Final = 6


def step_lines(snapshot: Snapshot, width: int) -> list[str]:
    """Pace, a row for each phase that takes time, and data waits on the GPU's clock."""
    steps = snapshot.steps
    if steps is None:
        return []
    lines = labelled("steps", [_pace(steps)], width)
    on_gpu = {one.name: one for one in snapshot.gpu_phases.phases} if snapshot.gpu_phases else {}
    drawn = drawn_phases(snapshot)
    spent = [phase for phase in drawn if phase.share > 0 or phase.name in on_gpu]
    lines += labelled("phases", [_phase(phase, on_gpu.get(phase.name)) for phase in spent], width)
    if snapshot.gpu_phases is not None:
        clock = " · ".join(clock_words(snapshot.gpu_phases))
        lines += labelled("", [f"on the GPU's clock: {clock}   [event]"], width)
    if snapshot.ledger is not None:
        words = " · ".join(ledger_words(snapshot.ledger))
        lines += labelled("GPU time", [f"{words}   [{snapshot.ledger.source}]"], width)
    return lines


def noted_lines(snapshot: Snapshot, width: int) -> list[str]:
    """What the run gets done, where more than samples is known, and its own numbers."""
    lines: list[str] = []
    found = snapshot.throughput
    if found is not None and (found.tokens_s or found.flops_step or found.samples_joule):
        lines += labelled("output", throughput_words(found), width)
    if snapshot.numerics is not None:
        lines += labelled("numbers", numerics_words(snapshot.numerics), width)
    return lines


def phase_shares(snapshot: Snapshot) -> list[str]:
    """ "data wait 57%", "GPU wait ~20%", in the order of a step; phases without time are left
    out."""
    return [
        f"{_name(phase)} {about(phase)}{numbers.percent(phase.share)}"
        for phase in drawn_phases(snapshot)
        if phase.share > 0
    ]


def _pace(steps: StepStats) -> str:
    return joined(
        (
            f"{numbers.count(steps.total)} {'inference ' if steps.inference else ''}steps",
            numbers.steps_in_time(steps.steps_s),
            "" if steps.samples_s is None else f"{numbers.digits(steps.samples_s)} samples/s",
            f"p50 {numbers.milliseconds(steps.p50_ms)}",
            f"p95 {numbers.milliseconds(steps.p95_ms)}",
            f"max {numbers.milliseconds(steps.max_ms)}",
            f"over {numbers.count(steps.in_window)} steps, {numbers.span(steps.window_s)}",
            f"as means of {steps.merged} steps" if steps.merged > 1 else "",
        )
    )


def _phase(phase: PhaseStats, on_gpu: PhaseStats | None) -> str:
    """ "data wait 706 ms per step, 57% · p50 690 ms · p95 980 ms · max 1.4 s · on the GPU 41 ms",
    "checkpoint 90 ms per step, 74% · every 10 steps, 903 ms each · max 947 ms"."""
    mean = f"{about(phase)}{numbers.milliseconds(phase.mean_ms)} per step"
    facts = [f"{_name(phase)} {mean}, {about(phase)}{numbers.percent(phase.share)}"]
    spread, rare = phase.spread, rare_words(phase)
    if rare:
        facts.append(rare)
    elif spread is not None:
        facts.append(f"p50 {numbers.milliseconds(spread.p50_ms)}")
        facts.append(f"p95 {numbers.milliseconds(spread.p95_ms)}")
    if spread is not None:
        facts.append(f"max {numbers.milliseconds(spread.max_ms)}")
    if on_gpu is not None:
        facts.append(f"on the GPU {numbers.milliseconds(on_gpu.mean_ms)}")
    return " · ".join(facts)


def _name(phase: PhaseStats) -> str:
    return NAMES.get(phase.name, phase.name)


def sampled_lines(snapshot: Snapshot, width: int) -> list[str]:
    """Estimates from samples of the main thread, for a run without a probe."""
    sampled = snapshot.sampled
    if sampled is None or not sampled.samples:
        return []
    rows = [f"of {samples_words(sampled)}: {' · '.join(share_words(sampled))}   [py-spy]"]
    rows += [
        f"{NAMES.get(name, name)} {share_interval_words(sampled, name)} (90% interval)"
        for name, share in sampled.shares.items()
        if name == "data" and share.mean >= WORTH
    ]
    return labelled("sampled", [*rows, step_words(sampled)], width)


def loader_lines(snapshot: Snapshot, width: int) -> list[str]:
    """A line per configuration: a script may make the same loader again each epoch."""
    alike = Counter(map(_loader, snapshot.loaders))
    rows = [text if times == 1 else f"{text} · x{times}" for text, times in alike.items()]
    return labelled("loader", rows, width)


def _loader(loader: Loader) -> str:
    settings = {
        "num_workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor,
        "batch size": loader.batch_size,
    }
    return joined(
        (
            f"{loader.dataset or loader.kind}",
            *(f"{name} {value}" for name, value in settings.items() if value is not None),
            "pinned" if loader.pin_memory else "",
            "evaluation" if loader.evaluation else "",
        )
    )


def stack_lines(snapshot: Snapshot, width: int) -> list[str]:
    """All samples, and those while the GPU was idle or the step waited for data."""
    lines: list[str] = []
    if snapshot.stacks is not None:
        lines += labelled("stacks", _places(snapshot.stacks, "all samples"), width)
    trees = snapshot.trees
    if trees is not None and trees.sorted_by == "dump":
        lines += labelled("stacks", _by_probe(trees.all), width)
    elif trees is not None and trees.sorted_by != "none" and trees.idle.samples:
        on_gpu = trees.sorted_by == "gpu"
        when = "while the GPU is idle" if on_gpu else "while the step waits for data"
        lines += labelled("" if lines else "stacks", _places(trees.idle.summary, when), width)
    return lines


def _by_probe(seen: StacksOf) -> list[str]:
    """Whole stacks: the run stands still, and any thread may hold what the others wait for."""
    rows = ["where each thread is, dumped once by the probe   [probe]"]
    return rows + [f"{one.role} {' → '.join(one.frames[-DUMP_FRAMES:])}" for one in seen.merged]


def _places(stacks: Stacks, when: str) -> list[str]:
    counts = f"main {numbers.count(stacks.main_samples)}"
    if stacks.worker_samples:
        counts += f" · workers {numbers.count(stacks.worker_samples)}"
    rows = [f"{when}: {counts}   [py-spy]"]
    rows += _role("main", stacks.main) + _role("workers", stacks.workers)
    idle = stacks.worker_idle_share
    return rows if idle is None else [*rows, f"workers idle {numbers.percent(idle)}"]


def _role(role: str, places: tuple[FrameShare, ...]) -> list[str]:
    return [
        f"{role} {numbers.percent(place.share)} {place.frame}"
        + (f" ← {place.caller}" if place.caller else "")
        for place in places[:STACK_ROWS]
    ]
