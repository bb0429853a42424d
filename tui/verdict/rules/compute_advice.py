"""What to do about a GPU that is the limit, with this run's own lines and figures."""

from tui.verdict.batch_room import larger_batch, to_eights
from tui.verdict.findings import Finding
from tui.verdict.places import ATTENTION_CALL, attends, main_places
from tui.verdict.quoted import call_at
from tui.verdict.window import Window


def for_this_run(found: Finding, window: Window) -> tuple[str, ...]:
    """The finding's advice, made concrete where the window tells more than the counters."""
    if found.sub == "underfilled":
        larger = larger_batch(window, "each kernel then has work for more of the GPU")
        return (larger, *found.advice[1:])
    if found.sub == "misaligned":
        size = window.loaders[0].batch_size if window.loaders else None
        if size is not None and size % 8:
            return (*found.advice, f"batch_size {size} → {to_eights(size)}, a multiple of 8")
    if found.kind == "memory-bandwidth":
        attention = next((place for place in main_places(window) if attends(place)), None)
        if attention is not None:
            fused = "F.scaled_dot_product_attention does it in one kernel, without the scores"
            return (f"{call_at(attention, ATTENTION_CALL)}: {fused}", *found.advice)
    return found.advice
