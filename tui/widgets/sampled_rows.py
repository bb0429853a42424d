"""The step as samples tell it, where there is no probe: a bar, and each part with its interval."""

from collections.abc import Sequence

from ..model.snapshot import PhaseStats
from ..verdict.window import Sampled
from ..wording.numbers import percent
from ..wording.steps import samples_words, share_interval_words, step_words
from .steps.phases import PhaseStyle, bar_row, looks_of
from .text import EMPTY, Row, Span, clip, length, row, rule

NAME_CELLS = 22
INTERVAL_CELLS = 16
LEAST_BAR = 12
LEAST_LINES = 3
"""With room for fewer all parts stand in one line."""


def sampled_rows(told: Sampled, width: int, height: int, has_focus: bool) -> Sequence[Row]:
    """Heading, bar, and a line a part: the largest first where there is no room for all."""
    notes = [samples_words(told), step_words(told)]
    phases = [PhaseStats(name, 0.0, share.mean) for name, share in told.shares.items()]
    looks = looks_of(phases)
    out = [rule("Step, by samples", notes, width, has_focus), bar_row(phases, width)]
    if height - len(out) < min(LEAST_LINES, len(looks)):
        return [*out, _legend(looks, width)]
    if height > len(looks) + 3:
        out.append(EMPTY)
    largest = sorted(looks, key=lambda one: -one[0].share)[: max(0, height - len(out))]
    return [*out, *(_line(told, *one, width) for one in looks if one in largest)]


def unsampled_rows(width: int, has_focus: bool) -> Sequence[Row]:
    """Before the first sample of the training."""
    waiting = row("   no probe: waiting for the first samples", "dim")
    return [rule("Step, by samples", (), width, has_focus), waiting]


def _legend(looks: Sequence[tuple[PhaseStats, PhaseStyle]], width: int) -> Row:
    """ " ░ data wait ~58%  ▒ forward ~18%", the largest where there is no room for all."""
    kept = sorted(looks, key=lambda one: -one[0].share)
    while kept:
        spans: Row = tuple(
            span
            for phase, look in looks
            if (phase, look) in kept
            for span in (
                Span(f" {look.fill}", look.role),
                Span(f" {look.long} "),
                Span(f"~{percent(phase.share)} ", "strong"),
            )
        )
        if length(spans) <= width:
            return spans
        kept.pop()
    return ()


def _line(told: Sampled, phase: PhaseStats, look: PhaseStyle, width: int) -> Row:
    name = f"{clip(look.long, NAME_CELLS - 3):<{NAME_CELLS - 3}}"
    share = f"{'~' + percent(phase.share):>5}"
    spans = [Span(f" {look.fill} ", look.role), Span(name), Span(share, "strong")]
    room = width - NAME_CELLS - len(share)
    if room >= INTERVAL_CELLS:
        spans.append(Span(f"{share_interval_words(told, phase.name):>{INTERVAL_CELLS}}", "dim"))
        room -= INTERVAL_CELLS + 2
    if room >= LEAST_BAR:
        spans.append(Span(f"  {look.fill * round(phase.share * room)}", look.role))
    return tuple(spans)
