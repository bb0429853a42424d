"""Notes: settings that cost something, or will, and are not what holds the run back.

Each is a pure function of one window and reports only what was seen in this run. Costs are
measured; a note whose cost was not measured has none.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from ..findings import Finding, Note
from ..forecast.interval import forecast_of
from ..thresholds.causes import NOTE_LEAVE_TIMES
from ..window import StepWindow, WindowT
from .data import (
    blocking_copies,
    inline_loading,
    mixed_lengths,
    own_producers,
    pageable_batches,
    pinned_short,
    restarted_workers,
)
from .training import (
    all_differences,
    anomaly,
    attention_in_steps,
    channels_last,
    checked_distributions,
    costly_update,
    deterministic,
    emptied_cache,
    float64,
    in_bf16,
    kept_gradients,
    memory_full,
    merged_batches,
    one_by_one,
    one_thread,
    profiler,
    scaler,
    tf32,
)

NoteRule = Callable[[WindowT], Note | None]
NoteRow = tuple[NoteRule[WindowT], str]
NOTES: Final[tuple[NoteRow[StepWindow], ...]] = (
    (anomaly, "set_detect_anomaly"),
    (profiler, "profiler"),
    (float64, "model.float()"),
    (emptied_cache, "empty_cache"),
    (tf32, "set_float32_matmul_precision"),
    (attention_in_steps, "scaled_dot_product_attention"),
    (all_differences, "torch.cdist"),
    (checked_distributions, "set_default_validate_args"),
    (scaler, "GradScaler"),
    (blocking_copies, "non_blocking"),
    (pageable_batches, "pin_memory"),
    (one_by_one, "foreach"),
    (costly_update, "accumulate"),
    (kept_gradients, "set_to_none"),
    (deterministic, "use_deterministic_algorithms"),
    (restarted_workers, "persistent_workers"),
    (inline_loading, "num_workers"),
    (own_producers, "cheaper batches"),
    (mixed_lengths, "about one length"),
    (one_thread, "set_num_threads"),
    (channels_last, "channels_last"),
    (in_bf16, "torch.bfloat16"),
    (merged_batches, "for each update instead of"),
    (pinned_short, "pin_memory"),
    (memory_full, "torch.utils.checkpoint"),
)
"""Each with the word of its advice: a finding whose advice has that word already gives it."""

WITHOUT_NOTES: Final = ("warming-up", "stalled")
"""No costs are known yet, or something else matters."""


class NoteReporter:
    """Keeps a note for a few windows, so that it does not come and go with every sample."""

    def __init__(self) -> None:
        self._held: dict[Callable[..., Note | None], tuple[Note, int]] = {}
        """The last note of each rule, and for how many windows the rule has been silent since."""

    def update(
        self, rows: Sequence[NoteRow[WindowT]], window: WindowT, findings: Sequence[Finding]
    ) -> tuple[Note, ...]:
        """Notes worth showing beside these findings, the verdict's own first; in table order."""
        if findings[0].kind in WITHOUT_NOTES or not window.observed:
            return ()
        advised = [advice for finding in findings for advice in finding.advice]
        notes = [(self._held_note(rule, window), word) for rule, word in rows]
        forecast = forecast_of(findings[0])
        least = inf if forecast is None else forecast.speedup
        return tuple(
            replace(note, urgent=note.urgent or (note.gain is not None and note.gain > least))
            for note, word in notes
            if note is not None and not any(word in advice for advice in advised)
        )

    def _held_note(self, rule: NoteRule[WindowT], window: WindowT) -> Note | None:
        if (note := rule(window)) is not None:
            self._held[rule] = note, 0
            return note
        held, silent = self._held.pop(rule, (None, 0))
        if held is None or silent + 1 >= NOTE_LEAVE_TIMES:
            return None
        self._held[rule] = held, silent + 1
        return held
