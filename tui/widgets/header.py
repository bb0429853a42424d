"""The first line: who is watched, on what, how, at what cost, how fresh."""

from collections.abc import Sequence

from tui.snapshot import Snapshot, Status
from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, clip, ends, length, text_of
from tui.widgets.view import View
from tui.wording.numbers import count, duration

STALE_S = 2.0
"""Silence for longer than this shows as stale: the probe speaks ten times a second."""

LEAST_COST = 0.0005
"""Less than this would round to nothing, which it is not."""
KEPT_NOTES = 2
"""Mode and cost stay before the target's name gets shorter."""


class Header(Panel):
    """One row, never focused."""

    can_focus = False

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The line."""
        return [header_row(view, width)]


def header_row(view: View, width: int) -> Row:
    """Target at the left, state at the right; parts leave from the least important on."""
    snapshot = view.snapshot
    state = (*_state(view), Span(" "))
    notes = _notes(snapshot)
    targets = _targets(snapshot)
    for target in targets:
        least = 0 if target is targets[-1] else min(KEPT_NOTES, len(notes))
        for keep in range(len(notes), least - 1, -1):
            right = (*(Span(f"{note} · ", "dim") for note in notes[:keep]), *state)
            if length(target) + length(right) + 2 <= width:
                return ends(target, right, width)
    script = clip(snapshot.script, width - length(state) - 3)
    return ends((Span(f" {script}", "strong"),), state, width, gap=1)


def _targets(snapshot: Snapshot) -> list[Row]:
    script, pid, device = snapshot.script, f"pid {snapshot.pid}", device_of(snapshot)
    rank = ""
    hello = snapshot.hello
    if hello and hello.rank is not None and (hello.world_size or 1) > 1:
        rank = f"  rank {hello.rank}/{hello.world_size}"
    return [
        (
            Span(" gpuwatch  ", "dim"),
            Span(script, "strong"),
            Span(f"  {pid}{rank}  {device}"),
        ),
        (Span(f" {script}", "strong"), Span(f"  {pid}{rank}  {device}")),
        (Span(f" {script}", "strong"), Span(f"  {snapshot.pid}  {device}")),
    ]


def device_of(snapshot: Snapshot) -> str:
    """ "H200 #0", "8x H200", "no GPU"; "" while nobody has looked."""
    if not snapshot.gpus:
        return "" if snapshot.status.state == "connecting" else "no GPU"
    name = snapshot.gpus[0].name.removeprefix("NVIDIA ")
    if len(snapshot.gpus) > 1:
        return f"{len(snapshot.gpus)}x {name}"
    return f"{name} #{snapshot.gpus[0].index}"


def _notes(snapshot: Snapshot) -> list[str]:
    status = snapshot.status
    notes = [status.mode]
    if status.lost_messages:
        notes.append(f"lost {count(status.lost_messages)}")
    if status.cost_share is not None:
        least = 0 < status.cost_share < LEAST_COST
        notes.append("cost <0.1%" if least else f"cost {100 * status.cost_share:.1f}%")
    if status.recording is not None:
        notes.append(status.recording)
    notes.append(f"attached {duration(snapshot.attached_s)}")
    if status.monitor_cpu_percent is not None:
        notes.append(f"monitor {status.monitor_cpu_percent:.0f}%")
    return notes


def _state(view: View) -> Row:
    if view.behind_s is not None:
        return (Span(f" PAUSED +{view.behind_s:.0f} s behind ", "paused"),)
    status = view.snapshot.status
    if status.replay is not None:
        return (Span(f"REPLAY {status.replay}", "warning"),)
    if status.recording is not None:
        return (Span("● REC ", "critical"), *_health(status))
    return _health(status)


def _health(status: Status) -> Row:
    if status.state == "connecting":
        return (Span("○ connecting", "warning"),)
    if status.state == "ended":
        return (Span("■ ended", "critical"),)
    return _freshness(status)


def _freshness(status: Status) -> Row:
    age = status.freshness_s
    if age is None and status.state == "live":
        return (Span("● ", "good"), Span("live", "dim"))
    if age is None:
        return (Span(f"○ {status.state}", "dim"),)
    if status.state == "silent" or age > STALE_S:
        return (Span(f"○ silent {duration(age)}", "warning"),)
    return (Span("● ", "good"), Span(f"{age:.1f}s", "dim"))


def ended_line(view: View, width: int) -> Row:
    """How the target ended, and that nothing is lost."""
    how = view.snapshot.status.ended or "gone"
    said = f"process {how}" if how.startswith("ended") else f"process ended: {how}"
    left = (Span(" ■ ", "critical"), Span(said, "strong"))
    right = (Span("the last picture stays · ", "dim"), Span("q", "key"), Span(" quits ", "dim"))
    row = ends(left, right, width)
    return row if length(row) <= width else (Span(clip(text_of(row), width), "strong"),)
