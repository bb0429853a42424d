"""The ranks beside the target: who is late, who has ended, and how active each was."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from textual.message import Message

from ...model.snapshot import Rank, Snapshot
from ...verdict.job.late import LateRank
from ...wording.gpu import alike_words, count_words, late_words, trouble_words
from ...wording.numbers import count, duration, percent, span
from ..charts.columns import HeldColumns
from ..charts.small import column_for, small_strip, times_of
from ..footer import bindings
from ..panel import Panel, View, charts_end_ns
from ..steps.phases import LOOKS, in_colours
from ..text import Row, Span, clip, row, rule

# A rank in one row: its strip over time, and the figures that distinguish it from the others.

STUCK_STEPS: Final = 2.0
STUCK_S: Final = 2.0
"""A phase that is open for longer than so many steps, and than this, is worth a word."""
NAME: Final = 12
"""Cells before the strip: " ●▲ r12 #3  "."""
LEAST_STRIP, MOST_STRIP = 16, 60
HOST: Final = 13
"""Cells of a host's name and the gap before it."""
BAR_FROM: Final = 120
"""Width from which a rank's mean step is drawn as a bar too."""
FILLS: Final = {
    **{name: LOOKS[name].fill for name in ("data", "forward", "backward", "optimizer")},
    "other": "·",
}
ROLES: Final = {fill: LOOKS[name].role if name in LOOKS else name for name, fill in FILLS.items()}
_GIB: Final = 1024**3
_TITLES: Final = {"data": "data wait", "phase": "a phase", "other": "Python"}
_LEAVING: Final = ("backward", "GiB", "wait")
"""Figures, the least needed first."""


@dataclass(frozen=True, slots=True)
class RankColumns:
    """How a row is divided: the strip, the bar of a step, and the figures by their titles."""

    strip: int
    bar: int
    titles: tuple[tuple[str, int], ...]


def columns_for(width: int, with_memory: bool, with_hosts: bool = False) -> RankColumns:
    """What fits."""
    titles = [("wait", 6), ("backward", 10), ("GiB", 7), ("step", 14)]
    if with_hosts:
        titles.append(("host", HOST))
    if not with_memory:
        titles.remove(("GiB", 7))
    for name in _LEAVING:
        if _room(width, titles) >= LEAST_STRIP:
            break
        titles = [one for one in titles if one[0] != name]
    room = max(0, _room(width, titles))
    if width < BAR_FROM:
        return RankColumns(room, 0, tuple(titles))
    strip = min(MOST_STRIP, room // 2)
    return RankColumns(strip, room - strip - 2, tuple(titles))


def _room(width: int, titles: list[tuple[str, int]]) -> int:
    return width - NAME - sum(cells for _, cells in titles) - 1


def header_row(columns: RankColumns, strip: str, step: str) -> Row:
    """What the columns mean: `strip` over the strip, `step` over the bar."""
    titles = "".join(f"{title:>{cells}}" for title, cells in columns.titles)
    bar = f"  {clip(step, columns.bar):<{columns.bar}}" if columns.bar else ""
    title_text = f"{clip(strip, columns.strip):<{columns.strip}}"
    return (Span(f"{'':{NAME}}{title_text}{bar}{titles}", "dim"),)


def rank_row(
    rank: Rank,
    columns: RankColumns,
    strip: str,
    longest_ms: float,
    now_ns: int,
    late: bool,
    host: str,
) -> Row:
    """The row but for the mark at its start; `late`: the others wait for it; `host`: as it is shown
    beside the other hosts."""
    sign, role = sign_of(rank, late)
    device = "" if rank.device is None else f"#{rank.device}"
    figures = {
        "wait": _share(rank.data_share),
        "backward": _share(rank.backward_share),
        "GiB": "" if rank.memory_bytes is None else f"{rank.memory_bytes / _GIB:.1f}",
        "step": where_words(rank, now_ns),
        "host": host,
    }
    drawn = "".join(f"{figures[title]:>{cells}}" for title, cells in columns.titles)
    bar = step_bar(rank, longest_ms, columns.bar) if columns.bar else ""
    return (
        Span("●" if rank.is_target else " ", "good"),
        Span(f"{sign} ", role),
        Span(f"r{rank.rank:<3}", "strong" if rank.is_target else "text"),
        Span(f"{device:<{NAME - 8}}", "dim"),
        Span(strip + ("  " if bar else ""), "area"),
        *in_colours(bar, ROLES),
        Span(drawn, "text" if rank.state == "live" else "warning"),
    )


def short_hosts(hosts: Collection[str]) -> dict[str, str]:
    """How each is shown. Where they do not fit: without their domain and what all of them end with,
    and then by their end, where the hosts of a cluster differ ("ip-10-0-12-34")."""
    if all(len(host) <= HOST - 2 for host in hosts):
        return {host: host for host in hosts}
    names = {host: host.partition(".")[0] for host in hosts}
    if len(set(names.values())) < len(names) or any(one.isdecimal() for one in names.values()):
        names = {host: host for host in hosts}  # addresses, or they differ in their domains
    first = next(iter(names.values()))
    ends = (first[at:] for at, sign in enumerate(first) if sign in ".-" and len(names) > 1)
    end = next((one for one in ends if all(name.endswith(one) for name in names.values())), "")
    short = {host: name.removesuffix(end) or name for host, name in names.items()}
    return {
        host: name if len(name) <= HOST - 2 else "…" + name[3 - HOST :]
        for host, name in short.items()
    }


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
        return f"silent {duration((now_ns - rank.last_seen_ns) / 1e9)}"
    if rank.state != "live":
        return rank.state
    open_s = rank.open_s(now_ns)
    if open_s is not None and open_s > max(STUCK_S, STUCK_STEPS * (rank.step_ms or 0.0) / 1e3):
        phase = _TITLES.get(rank.open_phase, rank.open_phase)
        return f"{clip(phase, 9)} {duration(open_s)}"
    return count(rank.steps)


def sign_of(rank: Rank, late: bool) -> tuple[str, str]:
    """A rank's sign, and its colour: what is wrong with it, if anything."""
    if rank.state == "ended":
        return "■", "critical"
    return ("▲", "warning") if late or rank.state != "live" else (" ", "dim")


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)


STRIP_S = 60
"""What the strips show at least."""
STEP_TITLE = "mean step: " + "  ".join(
    f"{fill} {LOOKS[phase].short if phase in LOOKS else phase}" for phase, fill in FILLS.items()
)
TABLE_FROM = 4
"""Rows from which every rank has its own; below, one line covers all."""


class RanksPanel(Panel):
    """A row a rank, and before them what they come to. Enter watches the marked one instead."""

    KIND = "ranks"
    BINDINGS = bindings("ranks")

    class Chosen(Message):
        """A person wants to watch this rank."""

        def __init__(self, rank: Rank) -> None:
            super().__init__()
            self.rank = rank

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._held = HeldColumns()
        self._marked: int | None = None
        """Number of the rank that the keys mean; None: the target."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The table, or where it is low, the line."""
        snapshot = view.snapshot
        if not snapshot.ranks:
            return []
        if height < TABLE_FROM:
            return [ranks_line(snapshot, width)]
        return self._table(view, width, height)

    def _table(self, view: View, width: int, height: int) -> list[Row]:
        ranks = view.snapshot.ranks
        with_memory = any(rank.memory_bytes is not None for rank in ranks)
        hosts = short_hosts({rank.host for rank in ranks if rank.host})
        columns = columns_for(width, with_memory, bool(hosts))
        longest_ms = max(rank.step_ms or 0.0 for rank in ranks)
        column_ns = column_for(STRIP_S, columns.strip, round(longest_ms * 1e6))
        times = times_of(charts_end_ns(view), column_ns, columns.strip)
        of = ranks[0].active
        reach = f"{of.title}, last {span(columns.strip * column_ns / 1e9)}"
        notes = [f"{source} 1 s" for source in dict.fromkeys(("hook", of.source))]
        title = count_words(ranks, view.snapshot.world_size)
        out = [rule(title, notes, width, self.has_focus), summary_row(view.snapshot, width)]
        out.append(header_row(columns, reach, STEP_TITLE))
        room = height - len(out)
        late = view.snapshot.job.late if view.snapshot.job else None
        late_ranks = late_ranks_of(late)
        shown = ranks if len(ranks) <= room else outliers(ranks, late_ranks, max(0, room - 1))
        marked = self._marked_in(ranks) if self.has_focus else None
        for rank in shown:
            strip = small_strip(self._held, rank.active, times)
            is_late = rank.rank in late_ranks
            host = hosts.get(rank.host, "-")
            drawn = rank_row(rank, columns, strip, longest_ms, view.snapshot.t_ns, is_late, host)
            out.append((Span("▸" if rank is marked else " ", "focus"), *drawn))
        if len(shown) < len(ranks):
            out.append(row(f"   and {len(ranks) - len(shown)} more", "dim"))
        return out

    def action_next_rank(self) -> None:
        """Mark the next rank."""
        self._mark(+1)

    def action_previous_rank(self) -> None:
        """Mark the rank before."""
        self._mark(-1)

    def drill(self) -> bool:
        """Watch the marked rank, where it is another than the target."""
        rank = self._marked_in(self._ranks())
        if rank is None or rank.is_target:
            return False
        self.post_message(self.Chosen(rank))
        return True

    def _mark(self, by: int) -> None:
        ranks = self._ranks()
        marked = self._marked_in(ranks)
        if marked is not None:
            at = min(max(ranks.index(marked) + by, 0), len(ranks) - 1)
            self._marked = ranks[at].rank
            self._redraw()

    def _ranks(self) -> tuple[Rank, ...]:
        return self._view.snapshot.ranks if self._view else ()

    def _marked_in(self, ranks: Sequence[Rank]) -> Rank | None:
        by_number = {rank.rank: rank for rank in ranks}
        if self._marked in by_number:
            return by_number[self._marked]
        return next((rank for rank in ranks if rank.is_target), None)


def late_ranks_of(late: LateRank | None) -> frozenset[int]:
    """The late one, or all of a late node."""
    if late is None:
        return frozenset()
    return frozenset(late.node[1] if late.node is not None else (late.rank.rank,))


def outliers(ranks: Sequence[Rank], late: Collection[int], most: int) -> tuple[Rank, ...]:
    """So many of more ranks than there is room for, by number: those that are late or not live, the
    target, and those whose own part of the step is furthest from the median."""
    own_ms = {
        rank.rank: rank.step_ms * (1.0 - (rank.backward_share or 0.0))
        for rank in ranks
        if rank.step_ms is not None
    }
    middle = median(own_ms.values()) if own_ms else 0.0

    def apart(rank: Rank) -> tuple[bool, bool, bool, float]:
        beside = abs(own_ms.get(rank.rank, middle) - middle)
        return rank.is_target, rank.rank in late, rank.state != "live", beside

    chosen = sorted(ranks, key=apart, reverse=True)[:most]
    return tuple(sorted(chosen, key=lambda rank: rank.rank))


def summary_row(snapshot: Snapshot, width: int) -> Row:
    """What is wrong with them, or else which is late, or that none is."""
    trouble = trouble_words(snapshot.ranks, snapshot.t_ns)
    late = snapshot.job.late if snapshot.job else None
    if trouble:
        return (Span(" ▲ ", "warning"), Span(clip(" · ".join(trouble), width - 3), "strong"))
    if late is not None:
        return (Span(" ▲ ", "warning"), Span(clip(late_words(late), width - 3), "strong"))
    return row(clip(f"   {alike_words(snapshot.ranks)}", width), "dim")


def ranks_line(snapshot: Snapshot, width: int) -> Row:
    """All of them in one line."""
    name = f" {count_words(snapshot.ranks, snapshot.world_size)}"
    return (Span(name, "title"), *summary_row(snapshot, width - len(name)))


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
