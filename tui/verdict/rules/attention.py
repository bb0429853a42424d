"""Attention that is planned anew: cuDNN's kernels, for each shape that it has not seen."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...steps import Step
from ..busy_parts import in_half_type
from ..code_places import BETWEEN, main_places, share_held, within
from ..findings import Evidence, Finding
from ..forecast.interval import at_least, interval_of
from ..format import ms, times
from ..pauses import warm_recent
from ..place_names import function_of, place_evidence
from ..scoring import speedup_of
from ..stack_samples import FrameShare
from ..step_time import wall_of
from ..thresholds.gpu import LOOP_SHARE
from ..thresholds.hysteresis import MOST_EVIDENCE
from ..window import StepWindow

HOPPER: Final = 90
"""From this compute capability on PyTorch prefers cuDNN's attention for half types."""
SDPA_CALL: Final = re.compile(r"\bscaled_dot_product_attention\(")
SDPA_FRAMES: Final = ("sdpa_attention_forward", "multi_head_attention_forward")
"""Transformers' and PyTorch's own around that call, which leaves no frame."""
STANDS_OUT: Final = 1.5
"""The mean step over that which a quarter of the steps keep below: steps of known shapes. A
classifier on texts of all lengths (BERT in bf16, H200): 137 ms and 32 ms, 4.3 to 5.0 times, and
4.98x without cuDNN's attention; steps of planned shapes alone differ by their lengths."""
FEWEST_SAMPLES: Final = 8
"""In the call, beside as many or fewer elsewhere in the forward."""


def planned_anew(found: Finding, window: StepWindow) -> Finding:
    """The finding about launches, where most of the host's time outside the backward is in the call
    of attention, though it is one call of many in a layer. What its plans cost show the steps that
    need none, where there are such; else at the least what the call itself holds."""
    settings = window.settings
    if settings is None or (settings.capability or 0) < HOPPER:
        return found
    if (
        not in_half_type(settings) and not settings.scaler
    ):  # an autocast that a library sets within its own calls
        return found
    issuing = within(main_places(window), BETWEEN)
    attending = [place for place in issuing if _attends(place)]
    held = share_held(attending)
    seen = 0 if window.stacks is None else held * window.stacks.main_samples
    if seen < FEWEST_SAMPLES or held < LOOP_SHARE * share_held(issuing):
        return found
    evidence = [place_evidence(attending[0], "main-thread")]
    known_ns, mean_ns = _known_and_mean_ns(window.steps)
    known_before_ns, mean_before_ns = _known_and_mean_ns(warm_recent(window) or window.steps)
    if mean_before_ns >= STANDS_OUT * known_before_ns > mean_ns:
        return found  # by now all lengths are planned: what samples show of it is over
    if mean_ns >= STANDS_OUT * known_ns:
        text = f"a quarter of the steps take {ms(known_ns)} or less, and {ms(mean_ns)} in the mean"
        evidence.append(Evidence(text, "hook", mean_ns / 1e6, "ms"))
        speedup = mean_ns / known_ns
        gives, forecast = f"about {times(speedup)}", interval_of("launch", speedup)
    else:
        speedup = speedup_of(held)
        gives, forecast = f"{times(speedup)} or more", at_least(speedup)
    advice = (
        f"torch.backends.cuda.enable_cudnn_sdp(False), {gives}: cuDNN plans its attention anew for "
        "each new shape, PyTorch's own kernels do not",
        "pad batches to a few lengths: each is planned once",
    )
    return replace(
        found,
        headline="attention is planned anew for each new shape, and the GPU waits for it",
        evidence=(*evidence, *found.evidence)[:MOST_EVIDENCE],
        advice=(*advice, *found.advice),
        speedup=speedup,
        speedup_is="estimate",
        forecast=forecast,
    )


def _known_and_mean_ns(rows: Sequence[Step]) -> tuple[float, float]:
    """What a quarter of the steps keep below, and the mean step."""
    taken = sorted(wall_of(row) / row.count for row in rows)
    return taken[len(taken) // 4], sum(map(wall_of, rows)) / sum(row.count for row in rows)


def _attends(place: FrameShare) -> bool:
    return function_of(place.frame) in SDPA_FRAMES or bool(SDPA_CALL.search(place.line))
