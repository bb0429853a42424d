"""Gradients that are filled with zeros rather than dropped."""

from tui.verdict.figures import mib
from tui.verdict.findings import Note
from tui.verdict.window import Window


def kept_gradients(window: Window) -> Note | None:
    """Filling writes them, and the backward then reads, adds and writes again what it could have
    put there."""
    settings = window.settings
    if settings is None or settings.set_to_none is not False:
        return None
    text = "gradients live on from step to step: zero_grad(set_to_none=True), its default"
    held = settings.parameter_bytes
    cost = f"{mib(held)} are filled with zeros and added to in every step" if held else None
    return Note(text, cost, "hook")
