"""What the publisher counts and measures by itself: steps, host memory."""

import sys
from collections.abc import Sequence
from typing import Final

from .wire import marks

# How many steps the marks hold, by a rule simple enough for the run: the monitor has the real
# one. For the state page, the good-bye, and the device's budget. Bytes alone, a few calls into C.


def _low(kind: int) -> bytes:
    """The lowest byte of a word of this kind, whatever its detail."""
    return bytes([-kind & 0xFF])


LOW_BYTE: Final = 0 if sys.byteorder == "little" else 7
FETCH: Final = _low(marks.FETCH_ENTER)
EXHAUSTED: Final = _low(marks.FETCH_END)
"""A fetch that brought no batch."""
BACKWARD: Final = _low(marks.BACKWARD_ENTER)
UPDATE_BEGINS: Final = _low(marks.OPTIMIZER_ENTER)
UPDATE: Final = _low(marks.OPTIMIZER_LEAVE)
INSIDE: Final = _low(marks.OPTIMIZER_INSIDE)
STEP: Final = _low(marks.STEP)
OVER: Final = _low(marks.ENDED) + _low(marks.TRAINING_OVER)
"""A thread trains no more: the step that was open is complete, or none."""
_ALL: Final = bytes(range(256))


PATIENCE: Final = 16
"""Backwards without an optimizer's step before they are steps: accumulation looks the same."""


class StepCount:
    """A step is a fetch after an optimizer's step; without a loader, a backward after one, or the
    next update where there is no backward either; without an optimizer, every fetch or else every
    backward; where `probe.step` is called, that alone."""

    def __init__(self) -> None:
        self._steps = 0
        self._begun = 0
        """Fetches, or else backwards, before the first optimizer's step."""
        self._fetches = self._backwards = self._updates = self._calls = False
        """Seen at all: a fetch, a backward, an optimizer's step, a call of `probe.step`."""
        self._stepped = False
        """An optimizer has stepped since the last step began."""
        self._exhausted = False
        """The last fetch brought no batch: the step before it has ended."""
        self._lost = False
        """Marks were lost, among which an optimizer's may have been."""

    @property
    def steps(self) -> int:
        """Completed since the start."""
        few = self._backwards and self._begun <= PATIENCE
        if self._updates or self._calls or self._lost or few:
            return self._steps
        return max(0, self._begun - (not self._exhausted))

    def add(self, words: bytes, unseen: float = 0.0) -> None:
        """Words of marks, eight bytes each. Before them marks were lost that took `unseen` times as
        long: as many steps are taken to lie in each part of the time."""
        before = self._steps
        self._lost |= unseen > 0
        self._add(words)
        self._steps += round(unseen * (self._steps - before))

    def _add(self, words: bytes) -> None:
        kinds = words[LOW_BYTE::8]
        if not self._fetches and FETCH in kinds:
            self._fetches, self._begun = True, 0
        self._backwards |= BACKWARD in kinds
        self._updates |= UPDATE in kinds or INSIDE in kinds
        self._calls |= STEP in kinds
        if self._calls:
            self._steps += kinds.count(STEP)
            return
        begin = FETCH if self._fetches else BACKWARD if self._backwards else UPDATE_BEGINS
        if not self._updates:
            self._begun += kinds.count(begin)
            if self._fetches:
                self._begun -= kinds.count(EXHAUSTED)
                last, ended = kinds.rfind(FETCH), kinds.rfind(EXHAUSTED)
                self._exhausted = ended > last or (self._exhausted and last < 0)
            return
        alike = bytes.maketrans(INSIDE + OVER, UPDATE + begin + begin)
        order = kinds.translate(alike, _ALL.translate(None, begin + UPDATE + INSIDE + OVER))
        if self._stepped:
            order = UPDATE + order
        self._steps += order.count(UPDATE + begin)
        self._stepped = order.endswith(UPDATE)


def unseen(times: Sequence[int], seen_ns: int) -> float:
    """Of marks that begin with a 0, which stands for those lost since `seen_ns`: how much longer
    than theirs the time of the lost ones was."""
    if len(times) < 3 or times[0]:
        return 0.0
    return max(0, times[1] - seen_ns) / max(1, times[-1] - times[1])


def resident_bytes() -> tuple[int | None, int | None]:
    """Resident memory of this process, and the pages of files in it; None where there is no /proc.

    A dataset that is mapped into memory makes it larger with every batch, without holding any.
    """
    figures: dict[bytes, int] = {}
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith((b"VmRSS:", b"RssFile:")):
                    name, figure, _ = line.split()
                    figures[name] = int(figure) * 1024
    except OSError:
        pass
    return figures.get(b"VmRSS:"), figures.get(b"RssFile:")


def uses_accelerator() -> bool:
    """Whether the program has begun to. Initialises nothing, and may be asked from any thread."""
    loaded = [sys.modules.get(f"torch.{kind}") for kind in ("cuda", "xpu")]
    return any(getattr(module, "is_initialized", bool)() for module in loaded)
