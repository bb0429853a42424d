"""What people use today, as rules over the same recording."""

from collections.abc import Iterator, Sequence
from typing import Final

from evaluation.verdict_track import Judgement
from gpuwatch.tui.steps import Step

LOG_STEPS: Final = 10
"""torchtitan's log_freq: `data_loading(%)` is a mean over so many steps."""
DATA_BOUND: Final = 0.10
"""Share of the host's time in `next(loader)` from which a loader is called the bottleneck."""
MOST_SPEEDUP: Final = 100.0

NVIDIA_SMI_S: Final = 10.0
"""`nvidia-smi` is looked at for about so long."""
UTILIZATION_LOW: Final = 30.0
UTILIZATION_HIGH: Final = 90.0
"""Below the first "the loader", above the second "compute-bound"."""
SAWTOOTH: Final = 30.0
"""Points between the readings of those seconds: regular gaps are the loader's."""


def host_wait_share(steps: Sequence[Step], began_ns: int) -> Iterator[Judgement]:
    """A verdict each ten steps: torchtitan's `data_loading(%)`, and 1 / (1 - share) as forecast."""
    begun = 0
    wait_ns = wall_ns = count = 0
    for step in steps:
        wait_ns += step.data_ns + step.startup_ns
        wall_ns += step.end_ns - step.start_ns
        count += step.count
        if count - begun < LOG_STEPS:
            continue
        share = wait_ns / max(1, wall_ns)
        bound = share >= DATA_BOUND
        yield Judgement(
            at_s=max(0, step.end_ns - began_ns) / 1e9,
            step=step.number,
            kind="input" if bound else "compute",
            share=share,
            speedup=min(MOST_SPEEDUP, 1 / max(1e-9, 1 - share)) if bound else None,
            speedup_is="estimate" if bound else None,
        )
        begun, wait_ns, wall_ns = count, 0, 0


def nvidia_smi(
    readings: Sequence[tuple[int, float]], steps: Sequence[Step], began_ns: int
) -> Iterator[Judgement]:
    """A verdict a reading, (time, utilisation in percent), over those of the last ten seconds."""
    done = 0
    at = 0
    for index, (t_ns, _) in enumerate(readings):
        while at < len(steps) and steps[at].end_ns <= t_ns:
            done = steps[at].number
            at += 1
        recent = [use for then, use in readings[: index + 1] if t_ns - then < NVIDIA_SMI_S * 1e9]
        mean = sum(recent) / len(recent)
        swings = max(recent) - min(recent) >= SAWTOOTH
        busy = mean >= UTILIZATION_HIGH or (mean >= UTILIZATION_LOW and not swings)
        kind = "compute" if busy else "input"
        yield Judgement(at_s=max(0, t_ns - began_ns) / 1e9, step=done, kind=kind)
