"""GPU memory in pieces: blocks partly in use, so that the allocator asks the device again."""

from tui.verdict import policy
from tui.verdict.bound import plain
from tui.verdict.figures import mib, percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.memory_places import readings
from tui.verdict.window import Window


def fragmentation(window: Window) -> Finding | None:
    """A fifth of what is held lies free between tensors, and requests go to the device after the
    warm-up all the same: the pieces are too small for them. Where requests had to empty the cache,
    a tenth of what was ever held is enough: so much was free even when the most was in use."""
    told = [one for one in readings(window) if one.step > window.warm_step]
    if not told or told[-1].inactive_split is None or not told[-1].reserved:
        return None
    newest = told[-1]
    recent = [one for one in told if newest.step - one.step <= policy.MEMORY_STEPS]
    if newest.step - recent[0].step < policy.EARLY_STEPS:
        return None
    part = min((one.inactive_split or 0) / max(1, one.reserved) for one in recent[-2:])
    retries = newest.retries - recent[0].retries
    spare = 1 - newest.peak_allocated / max(1, newest.peak_reserved)
    if part < policy.SPLIT_SHARE and not (retries and spare >= policy.SPLIT_AT_PEAK):
        return None
    asked = _asked(recent[0].device_allocs, newest.device_allocs)
    steps = newest.step - recent[0].step
    if not retries and (asked is None or asked / steps < policy.SPLIT_ALLOCS):
        return None
    pieces, held = newest.inactive_split or 0, newest.reserved
    where = "lie free between tensors"
    if part < policy.SPLIT_SHARE:
        part, held = spare, newest.peak_reserved
        pieces = newest.peak_reserved - newest.peak_allocated
        where = "were free at the fullest moment"
    text = f"{mib(pieces)} of {mib(held)} reserved {where}"
    evidence = [Evidence(text, "hook", 100 * part, "%")]
    if retries:
        text = f"{retries:,} allocations in {steps:,} steps had to empty the cache first"
        evidence.append(Evidence(f"{text}: each waits for the GPU", "hook", float(retries)))
    if asked:
        text = f"memory was asked of the device {asked:,} times in {steps:,} steps"
        evidence.append(Evidence(text, "hook", float(asked)))
    return plain(
        "memory-growth",
        "fragmentation",
        "warning",
        f"{percent(part)} of the GPU memory held is in pieces that are too small",
        tuple(evidence),
        (
            "start with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: pieces then join",
            "pad batches to a few lengths: the allocator reuses what fits",
        ),
    )


def _asked(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before
