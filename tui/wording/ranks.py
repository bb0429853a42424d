"""The ranks of a job in words: which one is late, and by what."""

from statistics import median
from typing import Final, NamedTuple

from tui.snapshot import Rank
from tui.wording.numbers import duration, milliseconds, percent

LATE_BY: Final = 0.1
"""A rank is late when it leads the others by this part of a step: less is jitter."""
NAMES: Final = {"data": "data wait", "other": "Python between the phases"}


class Late(NamedTuple):
    """The rank that the others wait for."""

    rank: Rank
    phase: str
    """Where it loses most against the others."""
    ms: float
    """A step's, of that phase: its own, and the median of the others'."""
    others_ms: float


def late_of(ranks: tuple[Rank, ...]) -> Late | None:
    """The rank whose own time before the ranks meet in the backward is longest; None where none
    stands out, or fewer than two are known."""
    known = [rank for rank in ranks if rank.state == "live" and rank.own_ms is not None]
    if len(known) < 2:
        return None
    last = max(known, key=lambda rank: rank.own_ms or 0.0)
    others = [rank for rank in known if rank is not last]
    own_ms, step_ms = last.own_ms or 0.0, last.step_ms or 0.0
    if own_ms - median(rank.own_ms or 0.0 for rank in others) < LATE_BY * step_ms:
        return None
    lost = {
        phase: (ms, median(phases_ms(other).get(phase, 0.0) for other in others))
        for phase, ms in phases_ms(last).items()
        if phase != "backward"
    }
    phase = max(lost, key=lambda name: lost[name][0] - lost[name][1])
    return Late(last, phase, *lost[phase])


def phases_ms(rank: Rank) -> dict[str, float]:
    """Its mean step by phases, ms; empty before its first."""
    shares = {
        "data": rank.data_share,
        "forward": rank.forward_share,
        "backward": rank.backward_share,
        "optimizer": rank.optimizer_share,
    }
    known = {name: share for name, share in shares.items() if share is not None}
    if rank.step_ms is None or len(known) < len(shares):
        return {}
    known["other"] = max(0.0, 1.0 - sum(known.values()))
    return {name: share * rank.step_ms for name, share in known.items()}


def count_words(ranks: tuple[Rank, ...], world_size: int) -> str:
    """ "8 ranks", "8 of 16 ranks"."""
    return (
        f"{len(ranks)} ranks" if len(ranks) >= world_size else f"{len(ranks)} of {world_size} ranks"
    )


def trouble_words(ranks: tuple[Rank, ...], now_ns: int) -> list[str]:
    """ "r5 ended", "r2 silent 12s": ranks that are not as they should be."""
    said: list[str] = []
    for rank in ranks:
        if rank.state == "silent":
            said.append(f"r{rank.rank} silent {duration((now_ns - rank.heard_ns) / 1e9)}")
        elif rank.state != "live":
            said.append(f"r{rank.rank} {rank.state}")
    return said


def late_words(late: Late) -> str:
    """ "r3 is late: data wait 706 ms a step, the others' 12 ms"."""
    name = NAMES.get(late.phase, late.phase)
    own, others = milliseconds(late.ms), milliseconds(late.others_ms)
    return f"r{late.rank.rank} is late: {name} {own} a step, the others' {others}"


def alike_words(ranks: tuple[Rank, ...]) -> str:
    """ "1,240 ms a step, none late", for ranks of which none stands out."""
    steps = [rank.step_ms for rank in ranks if rank.step_ms is not None]
    if not steps:
        return "no steps yet"
    waits = [rank.data_share for rank in ranks if rank.data_share is not None]
    wait = f" · data wait {percent(median(waits))}" if waits else ""
    return f"{milliseconds(median(steps))} a step{wait} · none is late"
