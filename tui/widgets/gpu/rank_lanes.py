"""The ranks of a job as lanes under one axis: their mean step, aligned where they meet."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ...model.snapshot import Rank, Snapshot
from ...verdict.job.facts import RankPhase
from ...verdict.job.lanes import ORDER, Lane, lanes_of, standing_out
from ...wording.gpu import count_words
from ...wording.numbers import milliseconds, percent
from ..panel import View
from ..steps.phases import LOOKS, allot, in_colours
from ..text import Row, Span, clip, first_seen, first_that_fits, row, rule
from .ranks import RanksPanel, sign_of, summary_row, where_words

MOST_ALIKE: Final = 16
"""Ranks of which each has its lane; of more, those that stand out."""
NAME: Final = 12
"""Cells before the lane: "▸●▲ r12 #3  "."""
FIGURES: Final = (("waits", 7), ("late in", 9), ("steps", 15))
LEAST_LANE: Final = 16
FILLS: Final[dict[RankPhase, str]] = {
    **{phase: LOOKS[phase].fill for phase in ORDER if phase != "other"},
    "other": "·",
}
WAITS: Final = "─"
TRANSFER: Final = "≈"
ROLES: Final = {
    **{LOOKS[phase].fill: LOOKS[phase].role for phase in ORDER if phase != "other"},
    "·": "other",
    WAITS: "dim",
    TRANSFER: "gpu-wait",
}
_WORDS: Final = {"data": ("data wait", "wait"), "other": ("Python", "Py")}


class RankLanesPanel(RanksPanel):
    """A lane a rank; Enter watches the marked one instead."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._first = 0
        """The first of the ranks that are seen."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """Heading, what they come to, the axis, the lanes, what their parts are."""
        snapshot = view.snapshot
        if not snapshot.ranks:
            return [row(" one process: no ranks", "dim")]
        lanes = _lanes(snapshot)
        shown = _chosen(snapshot)
        kept = {rank.rank for rank in shown}
        left_out = [rank for rank in snapshot.ranks if rank.rank not in kept]
        step_ms = max((lane.step_ms for lane in lanes.values()), default=0.0)
        cells, figures = _columns(width)
        title = count_words(snapshot.ranks, snapshot.world_size)
        out = [rule(title, _notes(snapshot), width, self.has_focus), summary_row(snapshot, width)]
        out.append(_axis(step_ms, cells, figures))
        room = max(0, height - len(out) - 1)
        if left_out or len(shown) > room:
            room -= 1
        marked = self._marked_in(shown)
        at = shown.index(marked) if marked in shown else 0
        self._first = first_seen(at, self._first, len(shown), max(1, min(room, len(shown))))
        late = snapshot.job.late if snapshot.job is not None else None
        for rank in shown[self._first : self._first + room]:
            mark = "▸" if self.has_focus and rank is marked else " "
            lane = lanes.get(rank.rank)
            drawn = in_colours(lane_text(lane, step_ms, cells), ROLES)
            words = _figures(snapshot, rank, lane)
            beside = "".join(f"{words[title]:>{wide}}" for title, wide in figures)
            is_late = late is not None and late.rank.rank == rank.rank
            out.append((Span(mark, "focus"), *_lane_row(rank, is_late, drawn, beside)))
        if left_out:
            usual = _usual([one for number, one in lanes.items() if number not in kept])
            name = Span(f"{f'{len(left_out)} alike':>{NAME - 1}} ", "dim")
            out.append((name, *in_colours(lane_text(usual, step_ms, cells), ROLES)))
        elif len(shown) > room:
            out.append(row(f"    and {len(shown) - room} more: ↑ ↓", "dim"))
        out.append(_legend(lanes.values(), width))
        return out

    def _ranks(self) -> tuple[Rank, ...]:
        return _chosen(self._view.snapshot) if self._view else ()


def _lanes(snapshot: Snapshot) -> dict[int, Lane]:
    if snapshot.job is None:
        return {}
    return {lane.rank: lane for lane in lanes_of(snapshot.job.job)}


def _chosen(snapshot: Snapshot) -> tuple[Rank, ...]:
    """The ranks that have a lane."""
    ranks = snapshot.ranks
    if len(ranks) <= MOST_ALIKE or snapshot.job is None:
        return ranks
    out = standing_out(snapshot.job.job)
    wrong = [rank.rank for rank in ranks if rank.state != "live"]
    order = dict.fromkeys([*wrong, *out, *(rank.rank for rank in ranks if rank.is_target)])
    keep = set(list(order)[:MOST_ALIKE])
    return tuple(rank for rank in ranks if rank.rank in keep)


def _usual(lanes: Sequence[Lane]) -> Lane | None:
    """The lane of the middle one by its waits: it stands for those that are alike."""
    ranked = sorted(lanes, key=lambda lane: lane.waits_ms or 0.0)
    return ranked[len(ranked) // 2] if ranked else None


def _notes(snapshot: Snapshot) -> list[str]:
    exchange = snapshot.job.job.exchange if snapshot.job is not None else None
    if exchange is None or not exchange.steps:
        return ["mean step", "hook 1 s"]
    steps = f"mean of {len(exchange.steps)} steps"
    return [steps, "aligned at their collectives", "collectives · hook"]


def _columns(width: int) -> tuple[int, Sequence[tuple[str, int]]]:
    """Cells of a lane, and the figures that fit beside it."""
    for least in range(len(FIGURES) + 1):
        figures = FIGURES[least:]
        cells = width - NAME - sum(wide for _, wide in figures) - 1
        if cells >= LEAST_LANE:
            return cells, figures
    return max(0, width - NAME), ()


def _axis(step_ms: float, cells: int, figures: Sequence[tuple[str, int]]) -> Row:
    """ "0 ─ all leave the collectives: 37 ms" over the lanes, titles over the figures."""
    end = f"{milliseconds(step_ms)}┐"
    middle = " they meet "
    room = cells - 1 - len(end)
    line = f"{middle:─>{room}}" if room >= len(middle) + 4 else "─" * max(0, room)
    titles = "".join(f"{title:>{wide}}" for title, wide in figures)
    return (Span(f"{'':{NAME}}{clip('┌' + line + end, cells):<{cells}}{titles}", "dim"),)


def _lane_row(rank: Rank, late: bool, drawn: Row, beside: str) -> Row:
    sign, role = sign_of(rank, late)
    device = "" if rank.device is None else f"#{rank.device}"
    return (
        Span("●" if rank.is_target else " ", "good"),
        Span(f"{sign} ", role),
        Span(f"r{rank.rank:<3}", "strong" if rank.is_target else "text"),
        Span(f"{device:<{NAME - 8}}", "dim"),
        *drawn,
        Span(beside, "text" if rank.state == "live" else "warning"),
    )


def lane_text(lane: Lane | None, step_ms: float, cells: int) -> str:
    """The parts from left to right; `step_ms` fills all the cells."""
    if lane is None or step_ms <= 0:
        return " " * cells
    parts = [
        *((FILLS[phase], lane.own_ms.get(phase, 0.0)) for phase in ORDER),
        (WAITS, lane.waits_ms or 0.0),
        (TRANSFER, lane.transfer_ms or 0.0),
    ]
    own = round(lane.step_ms / step_ms * cells)
    counts = allot([ms for _, ms in parts], own)
    return f"{''.join(fill * n for (fill, _), n in zip(parts, counts, strict=True)):<{cells}}"


def _figures(snapshot: Snapshot, rank: Rank, lane: Lane | None) -> Mapping[str, str]:
    exchange = snapshot.job.job.exchange if snapshot.job is not None else None
    waits = None
    if lane is not None and lane.waits_ms is not None and lane.step_ms:
        waits = lane.waits_ms / lane.step_ms
    late = ""
    if exchange is not None and exchange.steps and rank.rank in exchange.ranks:
        times = exchange.times_late()[exchange.ranks.index(rank.rank)]
        late = percent(times / len(exchange.steps))
    return {
        "waits": "" if waits is None else percent(waits),
        "late in": late,
        "steps": where_words(rank, snapshot.t_ns),
    }


def _legend(lanes: Iterable[Lane], width: int) -> Row:
    """What the parts are, of those that are drawn."""
    drawn = list(lanes)
    entries = [
        (FILLS[phase], *_WORDS.get(phase, (phase, LOOKS[phase].short if phase in LOOKS else phase)))
        for phase in ORDER
        if any(lane.own_ms.get(phase, 0.0) for lane in drawn)
    ]
    if any(lane.waits_ms for lane in drawn):
        entries.append((WAITS, "waits for ranks", "ranks"))
    if any(lane.transfer_ms for lane in drawn):
        entries.append((TRANSFER, "exchange", "exch"))
    spaced = [
        tuple(
            span
            for fill, *words in entries
            for span in (Span(f"{gap}{fill}", ROLES[fill]), Span(f" {words[short]}", "dim"))
        )
        for gap, short in (("   ", 0), ("  ", 0), ("  ", 1), (" ", 1))
    ]
    return first_that_fits(spaced, width)
