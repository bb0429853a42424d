"""The notes on a window, without those that the verdict says already."""

from typing import Final

from .. import thresholds
from ..findings import Finding, Note
from ..window import Window
from . import NoteRule
from .data import blocking_copies, inline_loading, pageable_batches, pinned_short, restarted_workers
from .training import (
    anomaly,
    deterministic,
    emptied_cache,
    kept_gradients,
    memory_full,
    one_by_one,
    one_thread,
    scaler,
    tf32,
)

NOTES: Final[tuple[tuple[NoteRule, str], ...]] = (
    (anomaly, "set_detect_anomaly"),
    (emptied_cache, "empty_cache"),
    (tf32, "set_float32_matmul_precision"),
    (scaler, "GradScaler"),
    (blocking_copies, "non_blocking"),
    (pageable_batches, "pin_memory"),
    (one_by_one, "foreach"),
    (kept_gradients, "set_to_none"),
    (deterministic, "use_deterministic_algorithms"),
    (restarted_workers, "persistent_workers"),
    (inline_loading, "num_workers"),
    (one_thread, "set_num_threads"),
    (pinned_short, "pin_memory"),
    (memory_full, "torch.utils.checkpoint"),
)
"""Each with the word of its advice: a finding whose advice has the word says the same already."""

SILENT: Final = ("warming-up", "stalled")
"""No costs are known yet, or something else matters."""


class NoteReporter:
    """What is said once a second, and does not come and go with every sample."""

    def __init__(self) -> None:
        self._held: dict[NoteRule, tuple[Note, int]] = {}
        """What each rule said last, and for how many looks it has been silent since."""

    def on(
        self, window: Window, finding: Finding, contributors: tuple[Finding, ...]
    ) -> tuple[Note, ...]:
        """What is worth a word beside this verdict, in the order of `NOTES`."""
        if finding.kind in SILENT or not window.steps:
            return ()
        advised = [advice for one in (finding, *contributors) for advice in one.advice]
        notes = [(self._look(rule, window), word) for rule, word in NOTES]
        return tuple(
            note
            for note, word in notes
            if note is not None and not any(word in advice for advice in advised)
        )

    def _look(self, rule: NoteRule, window: Window) -> Note | None:
        if (said := rule(window)) is not None:
            self._held[rule] = said, 0
            return said
        note, silent = self._held.pop(rule, (None, 0))
        if note is None or silent + 1 >= thresholds.NOTE_LEAVE_TIMES:
            return None
        self._held[rule] = note, silent + 1
        return note
