"""The window's steps: how fast, how steady, and where their time goes on both clocks."""

from typing import Final

from tui.report.lines import joined, labelled
from tui.snapshot import Phase, Snapshot, StepStats
from tui.wording import numbers
from tui.wording.gpu import clock_words
from tui.wording.steps import rare_words

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


def _phase(phase: Phase, on_gpu: Phase | None) -> str:
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


def _name(phase: Phase) -> str:
    return PHASE_WORDS.get(phase.name, phase.name)
