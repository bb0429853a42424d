"""Evaluation inside training: its budget, apart from every cause of slow steps."""

from ..findings import Finding
from ..forecast.gain import gain_of_pauses
from ..forecast.interval import seldom
from ..format import percent
from ..pauses import evaluations, pause_evidence
from ..scoring import cause
from ..thresholds.causes import TARGET_BUDGET
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow


def evaluation(window: StepWindow) -> Finding | None:
    """The amortised share of evaluations. A slow validation loader is part of it, and no reason to
    blame the training loader."""
    found = evaluations(window)
    if found is None or found.share.mean < CONTRIBUTOR:
        return None
    evidence = pause_evidence(found, "an evaluation")
    advice = (
        f"evaluate every {found.affordable_steps:,} steps: it would cost {percent(TARGET_BUDGET)}",
        "evaluate on a part of the held-out set, with a larger batch under torch.inference_mode()",
    )
    headline = f"evaluation takes {percent(found.share.mean)} of the time"
    gain = gain_of_pauses("evaluation", window, found)
    finding = cause("evaluation", None, found.share, headline, evidence, advice, gain=gain)
    return seldom(finding)
