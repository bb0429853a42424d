"""tf32 is off in a run that computes in fp32."""

from tui.verdict import policy
from tui.verdict.figures import percent
from tui.verdict.findings import Note
from tui.verdict.window import Window


def tf32(window: Window) -> Note | None:
    """Matrix products of fp32 use the tensor cores only as tf32, which Ampere and later devices
    have. A product must have been seen to run without autocast, or the fp32 units must be as busy
    as only products make them; and where counters tell, the tensor cores must rest."""
    settings, told = window.settings, window.activity
    if settings is None or settings.matmul_precision != "highest" or settings.autocast:
        return None
    if settings.parameter_dtype != "float32" or settings.parameter_device != "cuda":
        return None
    if (settings.capability or 0) < policy.TF32_CAPABILITY:
        return None
    seen = settings.autocast == ""
    text = 'fp32 products without tensor cores: torch.set_float32_matmul_precision("high")'
    if told is None or told.fp32 is None or told.tensor is None:
        return Note(text, None, "hook") if seen else None
    least = policy.NOTE_FP32 if seen else policy.FP32_HEAVY
    if told.fp32 < 100 * least or told.tensor >= 100 * policy.NOTE_SHARE:
        return None
    cost = f"fp32 units are at work {percent(told.fp32 / 100)} of the time, "
    cost += f"tensor cores {percent(told.tensor / 100)}"
    return Note(text, cost, "gpm")
