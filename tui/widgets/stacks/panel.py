"""Stacks: where the training thread and the loader's workers are, most often first."""

from collections.abc import Sequence

from ...model.stack_trees import SortedBy, StacksWhen
from ...verdict.stack_samples import FrameShare, Stacks
from ...wording.numbers import count, percent
from ...wording.stacks import short_frame, title, why_no_samples
from ..charts.columns import share_bar
from ..panel import Panel, View
from ..text import EMPTY, Row, Span, clip, first_that_fits, row, rule

BAR = 12
BAR_FROM = 90
"""Cells of width from which shares get a bar."""
SHORT_BELOW = 60
"""Cells of width below which the heading is short."""


class StacksPanel(Panel):
    """Shares with the frame that holds them and the line of the user's code above it."""

    def heading(self, when: StacksWhen, sorted_by: SortedBy, short: bool) -> str:
        """Which stacks these are."""
        return title(when, sorted_by, short)

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The main thread first, then the workers."""
        trees = view.snapshot.trees
        stacks = trees.of(view.stacks_when).summary if trees is not None else None
        heading = "Stacks"
        if trees is not None:
            heading = self.heading(view.stacks_when, trees.sorted_by, width < SHORT_BELOW)
        if stacks is None or not (stacks.main_samples or stacks.worker_samples):
            head = rule(heading, (), width, self.has_focus)
            why = why_no_samples(view.snapshot, view.stacks_when)
            return [head, row(f"   {clip(why, width - 4)}", "dim")]
        by_probe = trees is not None and trees.sorted_by == "dump"
        notes = ["one look"] if by_probe else _notes(stacks)
        head = rule(heading, notes, width, self.has_focus)
        room = height - 1
        main, workers = shared_out(len(stacks.main), len(stacks.workers), room)
        gap = [EMPTY] if room > main + workers and room > 8 and main and workers else []
        return [
            head,
            *_lines("main", stacks.main[:main], width, not by_probe),
            *gap,
            *_lines("workers", stacks.workers[:workers], width, not by_probe),
        ]


class PlacesPanel(StacksPanel):
    """The same below the tree, for what the tree cannot say: what a place holds in all."""

    def heading(self, when: StacksWhen, sorted_by: SortedBy, short: bool) -> str:
        """It covers the same stacks as the tree above it."""
        return "Places that hold most"


def shared_out(main: int, workers: int, room: int) -> tuple[int, int]:
    """Rows for each role: the workers get the larger half, and what one leaves the other takes."""
    mine = min(main, max(room - workers, room // 2, 1 if main else 0))
    return mine, min(workers, room - mine)


def _notes(stacks: Stacks) -> list[str]:
    notes = [f"main {count(stacks.main_samples)}"]
    if stacks.worker_samples:
        notes.append(f"workers {count(stacks.worker_samples)} samples")
    else:
        notes[0] += " samples"
    if stacks.worker_idle_share is not None and stacks.worker_idle_share >= 0.05:
        notes.append(f"workers idle {percent(stacks.worker_idle_share)}")
    return [*notes, "py-spy"]


def _lines(role: str, frames: Sequence[FrameShare], width: int, shared: bool) -> list[Row]:
    wide = width >= 60
    label = f" {role:<8}" if wide else f" {role[:4]:<5}"
    return [
        _line(label if i == 0 else " " * len(label), frame, width, shared)
        for i, frame in enumerate(frames)
    ]


def _line(label: str, share: FrameShare, width: int, shared: bool) -> Row:
    """One look gives no shares of the time: `shared` is False."""
    spans = [Span(label, "dim")]
    if shared and width >= BAR_FROM:
        spans.append(Span(f"{share_bar(share.share, BAR):<{BAR}} ", "area"))
    if shared:
        spans.append(Span(f"{percent(share.share):>4} ", "strong"))
    room = width - sum(len(s.text) for s in spans) - 1
    return (*spans, *first_that_fits(_placed(share), room))


def _placed(share: FrameShare) -> list[Row]:
    """The frame and its caller, ever shorter: the path first, then the class, then the caller."""
    caller = f"  ← {share.caller}" if share.caller else ""
    short = short_frame(share.frame)
    bare = short_frame(share.frame, with_class=False)
    pairs = ((share.frame, caller), (short, caller), (bare, caller), (short, ""), (bare, ""))
    return [(Span(frame), Span(by, "dim")) for frame, by in pairs]
