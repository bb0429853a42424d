"""Batches on their way to the GPU: how much of the time their copies hold, from counters and lines.

No call of the user's is patched for this: PCIe traffic, the lines in the stacks and what a batch
looks like tell it together.
"""

from dataclasses import dataclass

from tui.verdict import policy
from tui.verdict.device import idle_of, on_device
from tui.verdict.places import copies_to_gpu, main_places, share_where
from tui.verdict.window import Window


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of a window."""

    share: float
    """Part of the time that they hold and in which the GPU does not work, 0 to 1."""
    rx_mb_s: float | None
    """PCIe traffic towards the device."""
    on_lines: float
    """Part of the training thread's samples on lines that copy."""
    pinned: bool | None
    batch_bytes: int | None
    tensors: int | None

    @property
    def tiny(self) -> bool:
        """Many tensors a batch, each small."""
        if self.tensors is None or self.batch_bytes is None:
            return False
        small = self.batch_bytes / max(1, self.tensors) < policy.TINY_COPY_BYTES
        return self.tensors >= policy.TINY_COPIES and small

    @property
    def rate_mb_s(self) -> float:
        """What such copies reach at best."""
        return policy.PINNED_MB_S if self.pinned else policy.PAGEABLE_MB_S


def copies(window: Window) -> Copies | None:
    """None without a GPU's clock, without a counter that tells how busy the GPU is, or with batches
    that lie on the GPU already."""
    told = window.activity
    if told is None or told.busy is None or on_device(window) is None:
        return None
    loader = window.loaders[0] if window.loaders else None
    if loader is not None and loader.batch_device not in (None, "cpu"):
        return None
    pinned = None if loader is None else loader.pinned
    on_lines = share_where(main_places(window), copies_to_gpu)
    rate = policy.PINNED_MB_S if pinned else policy.PAGEABLE_MB_S
    rx = told.pcie_rx_mb_s
    moving = 0.0 if rx is None or rx < policy.COPY_LEAST_MB_S else min(1.0, rx / rate)
    if not moving and rx is not None and not _tiny(window):
        on_lines = 0.0  # nothing moves: such lines wait for the GPU, or copy what is there already
    return Copies(
        share=min(idle_of(window), max(moving, on_lines)),
        rx_mb_s=rx,
        on_lines=on_lines,
        pinned=pinned,
        batch_bytes=None if loader is None else loader.batch_bytes,
        tensors=None if loader is None else loader.batch_tensors,
    )


def _tiny(window: Window) -> bool:
    loader = window.loaders[0] if window.loaders else None
    return loader is not None and (loader.batch_tensors or 0) >= policy.TINY_COPIES
