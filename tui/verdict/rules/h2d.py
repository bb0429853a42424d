"""The GPU waits while batches are copied to it."""

from tui.verdict import policy
from tui.verdict.bound import bound
from tui.verdict.copies import Copies, copies
from tui.verdict.feeding import loader_floor
from tui.verdict.figures import percent
from tui.verdict.findings import Evidence, Finding
from tui.verdict.places import copies_to_gpu, main_places, told
from tui.verdict.ratio import without_rows
from tui.verdict.window import Window


def h2d(window: Window) -> Finding | None:
    """Copies on the compute stream are always exposed, pinned ones too (diagnosis 2.6); what runs
    while the GPU computes is not counted."""
    moved = copies(window)
    if moved is None or moved.share < policy.CONTRIBUTOR:
        return None
    share = without_rows(moved.share)
    sub, advice = _advice(moved)
    lines = tuple(told(p, "main-thread") for p in main_places(window) if copies_to_gpu(p))
    return bound(
        "h2d",
        sub,
        share,
        f"copying batches to the GPU takes {percent(share.mean)} of every step",
        (*_evidence(moved), *lines[:1]),
        advice,
        loader_floor(window),
    )


def _evidence(moved: Copies) -> tuple[Evidence, ...]:
    found = []
    if moved.rx_mb_s is not None:
        text = f"{moved.rx_mb_s / 1000:.1f} GB/s go to the GPU over PCIe"
        found.append(Evidence(text, "gpm", moved.rx_mb_s, "MB/s"))
    if moved.batch_bytes is not None:
        size = f"{moved.batch_bytes / 2**20:.1f} MiB"
        where = {True: ", in pinned memory", False: ", not in pinned memory", None: ""}
        text = f"a batch is {size} in {moved.tensors} tensors{where[moved.pinned]}"
        found.append(Evidence(text, "hook", moved.batch_bytes / 2**20, "MiB"))
    return tuple(found)


def _advice(moved: Copies) -> tuple[str, tuple[str, ...]]:
    if moved.tiny:
        return "tiny", (
            f"one copy instead of {moved.tensors}: collate a batch into few tensors, or pack them",
            "pin_memory=True, and .to(device, non_blocking=True)",
        )
    smaller = "send it smaller: uint8 or bf16, and convert it on the GPU"
    ahead = "copy the next batch on a side stream while this one is computed"
    if moved.pinned:
        return "bandwidth", (smaller, ahead)
    faster = policy.PINNED_MB_S / policy.PAGEABLE_MB_S
    return "pageable", (
        "DataLoader(..., pin_memory=True) and .to(device, non_blocking=True): copies run up to "
        f"{faster:.1f}x faster from pinned memory",
        smaller,
        ahead,
    )
