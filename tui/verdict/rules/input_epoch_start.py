"""The wait is at the start of epochs: workers are started anew, or the first batch is late."""

from statistics import median

from tui.verdict.feeding import Feeding
from tui.verdict.figures import ms
from tui.verdict.findings import Evidence
from tui.verdict.pauses import startup_parts
from tui.verdict.rules.input_explained import Explained
from tui.verdict.window import Window


def epoch_start(window: Window, feeding: Feeding) -> Explained | None:
    """More time goes to loader start-up than to waiting for the batches after it. More workers
    would make it worse."""
    parts = startup_parts(window)
    waits = sum(row.data_ns for row in window.steps)
    loader = window.loaders[0] if window.loaders else None
    if loader is None or not loader.num_workers:
        parts = _beyond_a_fetch(window, parts)
    starts = [part for part in parts if part > 0]
    if not starts or sum(starts) <= waits:
        return None
    each_ns = sum(starts) / len(starts)
    steps = sum(row.count for row in window.steps) / len(starts)
    text = f"{ms(each_ns)} until the first batch of an epoch, every {steps:.0f} steps"
    evidence = (Evidence(text, "hook", each_ns / 1e6, "ms"),)
    if loader is None or not loader.num_workers:
        advice: tuple[str, ...] = ("make the first batch of an epoch cheap: see what iter() does",)
    elif loader.persistent_workers:
        advice = (
            "the workers persist, so the first batch itself is late: see what the dataset does "
            "when an epoch begins",
        )
    else:
        advice = (
            "persistent_workers=True: the workers are started again for every epoch",
            "longer epochs: a sampler that goes through the data several times",
        )
    return Explained("epoch-start", evidence, advice)


def _beyond_a_fetch(window: Window, parts: list[int]) -> list[int]:
    """Without workers a first batch is made like any other: what a start takes more than that.
    A loop that begins an epoch in every step (`next(iter(loader))`) has no other."""
    fetches = [row.data_ns / row.fetches for row in window.steps if row.data_ns and row.fetches]
    if len(fetches) < len(parts) / 2:
        return []
    usual = median(fetches)
    return [max(0, round(part - usual)) for part in parts]
