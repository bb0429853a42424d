"""The ranks beside the target: who is late, who is gone, and how active each was."""

from collections.abc import Sequence

from textual.message import Message

from tui.late_rank import late_of
from tui.snapshot import Rank, Snapshot
from tui.widgets.bindings import bindings
from tui.widgets.charts.held_columns import HeldColumns
from tui.widgets.charts.small_strips import column_for, small_strip, times_of
from tui.widgets.gpu.rank_rows import FILLS, columns_for, header_row, rank_row
from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, clip, row, rule
from tui.widgets.steps.phases import LOOKS
from tui.widgets.view import View, charts_end_ns
from tui.wording.numbers import span
from tui.wording.ranks import alike_words, count_words, late_words, trouble_words

STRIP_S = 60
"""What the strips show at least."""
STEP_TITLE = "mean step: " + "  ".join(
    f"{fill} {LOOKS[phase].short if phase in LOOKS else phase}" for phase, fill in FILLS.items()
)
TABLE_FROM = 4
"""Rows from which every rank has its own; below, one line speaks of all."""


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
        columns = columns_for(width, any(rank.memory_bytes is not None for rank in ranks))
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
        shown = ranks if len(ranks) <= room else ranks[: max(0, room - 1)]
        late = late_of(ranks)
        marked = self._marked_in(ranks) if self.has_focus else None
        for rank in shown:
            strip = small_strip(self._held, rank.active, times)
            is_late = late is not None and late.rank is rank
            told = rank_row(rank, columns, strip, longest_ms, view.snapshot.t_ns, is_late)
            out.append((Span("▸" if rank is marked else " ", "focus"), *told))
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


def summary_row(snapshot: Snapshot, width: int) -> Row:
    """What is wrong with them, or else which is late, or that none is."""
    trouble = trouble_words(snapshot.ranks, snapshot.t_ns)
    late = late_of(snapshot.ranks)
    if trouble:
        return (Span(" ▲ ", "warning"), Span(clip(" · ".join(trouble), width - 3), "strong"))
    if late is not None:
        return (Span(" ▲ ", "warning"), Span(clip(late_words(late), width - 3), "strong"))
    return row(clip(f"   {alike_words(snapshot.ranks)}", width), "dim")


def ranks_line(snapshot: Snapshot, width: int) -> Row:
    """All of them in one line."""
    name = f" {count_words(snapshot.ranks, snapshot.world_size)}"
    return (Span(name, "title"), *summary_row(snapshot, width - len(name)))
