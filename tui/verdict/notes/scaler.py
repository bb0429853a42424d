"""A GradScaler that bfloat16 does not need."""

from tui.verdict import policy
from tui.verdict.findings import Note
from tui.verdict.notes.costs import in_samples, sampled
from tui.verdict.places import file_of
from tui.verdict.window import FrameShare, Window


def scaler(window: Window) -> Note | None:
    """bfloat16 has the range of fp32, so nothing has to be scaled. The scaler multiplies and checks
    every gradient and, unless the optimizer is fused, waits for the answer before each step. With
    float16 it is needed; there bfloat16 would do without."""
    settings = window.settings
    if settings is None or not settings.scaler:
        return None
    if settings.autocast == "bfloat16" or settings.parameter_dtype == "bfloat16":
        text = "a GradScaler with bfloat16, which needs none: GradScaler(enabled=False)"
    elif settings.autocast == "float16" and (settings.capability or 0) >= policy.TF32_CAPABILITY:
        text = "autocast to float16 needs its GradScaler, torch.bfloat16 does without"
    else:
        return None
    if share := sampled(window, _scales):
        return Note(text, f"{in_samples(share)} are in it", "py-spy")
    on_gpu = settings.parameter_device == "cuda"
    waits = "the host waits for the GPU before each optimizer step"
    return Note(text, waits if on_gpu and not settings.fused else None, "hook")


def _scales(place: FrameShare) -> bool:
    return file_of(place.frame) == "grad_scaler.py"
