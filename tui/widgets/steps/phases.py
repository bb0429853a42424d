"""The phases of a step: their order, names and fills, the stacked bar and its legend."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ...model.snapshot import PhaseStats
from ...verdict.stack_samples import Sampled
from ...wording.numbers import like, percent
from ...wording.steps import (
    GPU_WAIT,
    about,
    samples_words,
    share_interval_words,
    step_words,
)
from ..text import EMPTY, Row, Span, clip, length, row, rule


class PhaseStyle(NamedTuple):
    """How a phase appears: everywhere the same, and without colour too."""

    fill: str
    long: str
    short: str
    role: str


LOOKS: Final = {
    "data": PhaseStyle("░", "data wait", "wait", "data"),
    "loader start-up": PhaseStyle("┄", "loader start", "start", "startup"),
    "forward": PhaseStyle("▒", "forward", "fwd", "forward"),
    "backward": PhaseStyle("█", "backward", "bwd", "backward"),
    "optimizer": PhaseStyle("▓", "optimizer", "opt", "optimizer"),
    GPU_WAIT: PhaseStyle("═", "GPU wait", "GPU wait", "gpu-wait"),
    "evaluation": PhaseStyle("╱", "evaluation", "eval", "evaluation"),
    "checkpoint": PhaseStyle("╳", "checkpoint", "ckpt", "checkpoint"),
    "compile": PhaseStyle("╲", "compile", "comp", "compile"),
}
"""In the order of a step; a user's own phases follow, `other` is last."""
_OTHER: Final = PhaseStyle("·", "other", "other", "other")
_USER_FILLS: Final = "▚▞▙▟▛▜"
BASE: Final = "ms per step"
"""What the figures of phases are of: a checkpoint's too, whose own length is another."""
DATA_WAIT: Final = {LOOKS["data"].fill: LOOKS["data"].role}
"""For pictures that show it apart from everything else."""
LEAST_WAIT: Final = 0.05
"""Of a shorter wait nobody asks for how much of it the GPU was idle."""


def looks_of(phases: Sequence[PhaseStats]) -> list[tuple[PhaseStats, PhaseStyle]]:
    """The phases that took time, in their fixed order, each with its look."""
    known = [(p, LOOKS[p.name]) for name in LOOKS for p in phases if p.name == name]
    own = sorted((p for p in phases if p.name not in LOOKS and p.name != "other"), key=_name)
    users = [
        (p, PhaseStyle(_USER_FILLS[i % len(_USER_FILLS)], p.name, p.name, "user"))
        for i, p in enumerate(own)
    ]
    other = [(p, _OTHER) for p in phases if p.name == "other"]
    return [(p, look) for p, look in (*known, *users, *other) if p.share > 0]


def in_colours(text: str, roles: Mapping[str, str], other: str = "area") -> Row:
    """The characters of a picture in the colours of the phases that they stand for; blanks have
    none behind them."""
    runs = groupby(text, key=lambda char: roles.get(char, other))
    return tuple(Span("".join(chars), role) for role, chars in runs)


def _name(phase: PhaseStats) -> str:
    return phase.name


def allot(shares: Sequence[float], cells: int) -> list[int]:
    """Cells for each share, by largest remainder: together always `cells`."""
    whole = sum(shares)
    if whole <= 0:
        return [0] * len(shares)
    exact = [share / whole * cells for share in shares]
    out = [int(e) for e in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: out[i] - exact[i])
    for i in by_remainder[: cells - sum(out)]:
        out[i] += 1
    return out


def bar_row(phases: Sequence[PhaseStats], width: int) -> Row:
    """One step as a stacked bar."""
    looks = looks_of(phases)
    cells = allot([p.share for p, _ in looks], max(0, width - 2))
    return (
        Span(" "),
        *(Span(look.fill * n, look.role) for (_, look), n in zip(looks, cells, strict=True) if n),
    )


def legend_row(phases: Sequence[PhaseStats], width: int, idle: float | None = None) -> Row:
    """What the bar's parts are: with milliseconds per step, or shorter, or the largest alone.
    `idle`: part of the step in which the GPU was idle for the wait, 0 to 1; None where unknown."""
    looks = looks_of(phases)
    entries: list[Row] = []
    step_ms = sum(p.mean_ms for p in phases)
    for gap, unit, short in (
        (3, BASE, False),
        (2, BASE, False),
        (2, BASE, True),
        (2, "ms", True),
        (2, "", True),
        (2, None, True),
    ):
        beside = "" if idle is None else f", {'' if unit is None else 'GPU '}idle {percent(idle)}"
        entries = [
            _entry(p, look, step_ms if unit else None, short, beside if p.name == "data" else "")
            for p, look in looks
        ]
        full = (*_spaced(entries, gap), *([Span(f"  {unit}", "dim")] if unit else ()))
        if length(full) <= width:
            return full
    largest = sorted(range(len(looks)), key=lambda i: -looks[i][0].share)
    for keep in range(len(looks) - 1, 0, -1):
        kept = sorted(largest[:keep])
        rest = Span(f"  +{len(looks) - keep}", "dim")
        some = (*_spaced([entries[i] for i in kept], 2), rest)
        if length(some) <= width:
            return some
    return _spaced(entries[:1], 2)


def _entry(
    phase: PhaseStats, look: PhaseStyle, step_ms: float | None, short: bool, beside: str
) -> Row:
    name = look.short if short else look.long
    numbers = f" {about(phase)}{percent(phase.share)}"
    if step_ms is not None:
        numbers = f" {about(phase)}{like(phase.mean_ms, step_ms)}" + numbers
    entry = (Span(look.fill, look.role), Span(f" {name}", "text"), Span(numbers, "strong"))
    if not beside or phase.share < LEAST_WAIT:
        return entry
    return (*entry, Span(beside, "text"))


def _spaced(entries: Sequence[Row], gap: int) -> Row:
    spans: list[Span] = []
    for i, entry in enumerate(entries):
        spans.append(Span(" " * gap if i else " "))
        spans += entry
    return tuple(spans)


# The step by stack samples, where there is no probe: a bar, and each part with its interval.

SAMPLED_NAME = 22
INTERVAL_CELLS = 16
LEAST_BAR = 12
LEAST_LINES = 3
"""With room for fewer all parts stand in one line."""


def sampled_rows(sampled: Sampled, width: int, height: int, has_focus: bool) -> Sequence[Row]:
    """Heading, bar, and a line a part: the largest first where there is no room for all."""
    notes = [samples_words(sampled), step_words(sampled)]
    phases = [PhaseStats(name, 0.0, share.mean) for name, share in sampled.shares.items()]
    looks = looks_of(phases)
    out = [rule("Step, by samples", notes, width, has_focus), bar_row(phases, width)]
    if height - len(out) < min(LEAST_LINES, len(looks)):
        return [*out, _sampled_legend(looks, width)]
    if height > len(looks) + 3:
        out.append(EMPTY)
    largest = sorted(looks, key=lambda one: -one[0].share)[: max(0, height - len(out))]
    return [*out, *(_sampled_line(sampled, *one, width) for one in looks if one in largest)]


def unsampled_rows(width: int, has_focus: bool) -> Sequence[Row]:
    """Before the first sample of the training."""
    waiting = row("   no probe: waiting for the first samples", "dim")
    return [rule("Step, by samples", (), width, has_focus), waiting]


def _sampled_legend(looks: Sequence[tuple[PhaseStats, PhaseStyle]], width: int) -> Row:
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


def _sampled_line(sampled: Sampled, phase: PhaseStats, look: PhaseStyle, width: int) -> Row:
    name = f"{clip(look.long, SAMPLED_NAME - 3):<{SAMPLED_NAME - 3}}"
    share = f"{'~' + percent(phase.share):>5}"
    spans = [Span(f" {look.fill} ", look.role), Span(name), Span(share, "strong")]
    room = width - SAMPLED_NAME - len(share)
    if room >= INTERVAL_CELLS:
        spans.append(Span(f"{share_interval_words(sampled, phase.name):>{INTERVAL_CELLS}}", "dim"))
        room -= INTERVAL_CELLS + 2
    if room >= LEAST_BAR:
        spans.append(Span(f"  {look.fill * round(phase.share * room)}", look.role))
    return tuple(spans)
