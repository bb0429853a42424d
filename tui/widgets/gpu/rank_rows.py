"""A rank in one row: its strip over time, and the figures that tell it from the others."""

from dataclasses import dataclass
from typing import Final

from tui.late_rank import phases_ms
from tui.snapshot import Rank
from tui.widgets.spans import Row, Span, clip
from tui.widgets.steps.phases import LOOKS
from tui.wording.numbers import count, duration, percent

STUCK_STEPS: Final = 2.0
STUCK_NS: Final = 2_000_000_000
"""A phase that is open for longer than so many steps, and than this, is worth a word."""
NAME: Final = 12
"""Cells before the strip: " ●▲ r12 #3  "."""
LEAST_STRIP, MOST_STRIP = 16, 60
BAR_FROM: Final = 120
"""Width from which a rank's mean step is drawn as a bar too."""
FILLS: Final = {
    **{name: LOOKS[name].fill for name in ("data", "forward", "backward", "optimizer")},
    "other": "·",
}
_GIB: Final = 1024**3
_TITLES: Final = {"data": "data wait", "phase": "a phase", "other": "Python"}
_LEAVING: Final = ("backward", "GiB", "wait")
"""Figures, the least needed first."""


@dataclass(frozen=True, slots=True)
class Columns:
    """How a row is divided: the strip, the bar of a step, and the figures by their titles."""

    strip: int
    bar: int
    titles: tuple[tuple[str, int], ...]


def columns_for(width: int, with_memory: bool) -> Columns:
    """What fits."""
    titles = [("wait", 6), ("backward", 10), ("GiB", 7), ("step", 14)]
    if not with_memory:
        titles.pop(2)
    for name in _LEAVING:
        if _room(width, titles) >= LEAST_STRIP:
            break
        titles = [one for one in titles if one[0] != name]
    room = max(0, _room(width, titles))
    if width < BAR_FROM:
        return Columns(room, 0, tuple(titles))
    strip = min(MOST_STRIP, room // 2)
    return Columns(strip, room - strip - 2, tuple(titles))


def _room(width: int, titles: list[tuple[str, int]]) -> int:
    return width - NAME - sum(cells for _, cells in titles) - 1


def header_row(columns: Columns, strip: str, step: str) -> Row:
    """What the columns mean: `strip` over the strip, `step` over the bar."""
    titles = "".join(f"{title:>{cells}}" for title, cells in columns.titles)
    bar = f"  {clip(step, columns.bar):<{columns.bar}}" if columns.bar else ""
    said = f"{clip(strip, columns.strip):<{columns.strip}}"
    return (Span(f"{'':{NAME}}{said}{bar}{titles}", "dim"),)


def rank_row(
    rank: Rank, columns: Columns, strip: str, longest_ms: float, now_ns: int, late: bool
) -> Row:
    """The row but for the mark at its start; `late`: the others wait for it."""
    sign, role = _sign(rank, late)
    device = "" if rank.device is None else f"#{rank.device}"
    figures = {
        "wait": _share(rank.data_share),
        "backward": _share(rank.backward_share),
        "GiB": "" if rank.memory_bytes is None else f"{rank.memory_bytes / _GIB:.1f}",
        "step": where_words(rank, now_ns),
    }
    told = "".join(f"{figures[title]:>{cells}}" for title, cells in columns.titles)
    bar = f"  {step_bar(rank, longest_ms, columns.bar)}" if columns.bar else ""
    return (
        Span("●" if rank.is_target else " ", "good"),
        Span(f"{sign} ", role),
        Span(f"r{rank.rank:<3}", "strong" if rank.is_target else "text"),
        Span(f"{device:<{NAME - 8}}", "dim"),
        Span(strip + bar, "area"),
        Span(told, "text" if rank.state == "live" else "warning"),
    )


def step_bar(rank: Rank, longest_ms: float, cells: int) -> str:
    """Its mean step by phases, in the characters that the phases have everywhere; `longest_ms`
    fills all the cells."""
    out, done_ms = "", 0.0
    for phase, ms in phases_ms(rank).items():
        done_ms += ms
        out += FILLS[phase] * (round(done_ms / longest_ms * cells) - len(out))
    return f"{out:<{cells}}"


def where_words(rank: Rank, now_ns: int) -> str:
    """ "ended", "silent 12s", "in backward 40s" where that is long, else the steps it has made."""
    if rank.state == "silent":
        return f"silent {duration((now_ns - rank.heard_ns) / 1e9)}"
    if rank.state != "live":
        return rank.state
    open_ns = now_ns - rank.open_since_ns
    if open_ns > max(STUCK_NS, STUCK_STEPS * 1e6 * (rank.step_ms or 0.0)) and rank.open_since_ns:
        phase = _TITLES.get(rank.open_phase, rank.open_phase)
        return f"{clip(phase, 9)} {duration(open_ns / 1e9)}"
    return count(rank.steps)


def _sign(rank: Rank, late: bool) -> tuple[str, str]:
    if rank.state == "ended":
        return "■", "critical"
    return ("▲", "warning") if late or rank.state != "live" else (" ", "dim")


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)
