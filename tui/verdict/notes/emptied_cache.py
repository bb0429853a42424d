"""`empty_cache` in the loop."""

from tui.verdict.findings import Note
from tui.verdict.notes.costs import first_at, in_samples, sampled
from tui.verdict.places import empties_cache, main_places
from tui.verdict.window import Window


def emptied_cache(window: Window) -> Note | None:
    """It waits for the GPU and gives back what the next step asks for again. Between two phases of
    a program it is no smell; then hardly a sample meets it."""
    share = sampled(window, empties_cache)
    if not share:
        return None
    where = first_at(main_places(window), empties_cache)
    text = f"torch.cuda.empty_cache() in the loop{where}: PyTorch reuses what it holds without it"
    return Note(text, in_samples(share), "py-spy")
