"""The ranks of a job in words: which one is late, and by what."""

from statistics import median
from typing import Final

from tui.late_rank import Late
from tui.snapshot import Rank
from tui.wording.numbers import duration, milliseconds, percent

NAMES: Final = {"data": "data wait", "other": "Python between the phases"}


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
