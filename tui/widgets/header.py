"""The first line: who is watched, on what, how, at what cost, how fresh."""

from collections.abc import Sequence
from datetime import datetime

from ..model.snapshot import Snapshot, Status
from ..wording.numbers import count, duration, milliseconds, seconds
from .panel import Panel, View, has_measured
from .text import Row, Span, clip, ends, first_that_fits, length, text_of

STALE_S = 2.0
"""Silence for longer than this shows as stale: the probe sends four times a second."""

LEAST_COST = 0.0005
"""Less than this would round to nothing, which it is not."""
LEAST_TARGET = 12
"""Cells that the target keeps, if the state fits in fewer words."""
STALE_NUMBERS_S = 2.0
"""Numbers of the past that are older than the moment by this much say of when they are."""
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
    states = [(*state, Span(" ")) for state in _states(view)]
    state = first_that_fits(states, width - LEAST_TARGET)
    notes = _notes(snapshot)
    targets = _targets(view)
    for target in targets:
        least = 0 if target is targets[-1] else min(KEPT_NOTES, len(notes))
        for keep in range(len(notes), least - 1, -1):
            right = (*(Span(f"{note} · ", "dim") for note in notes[:keep]), *state)
            if length(target) + length(right) + 2 <= width:
                return ends(target, right, width)
    script = clip(snapshot.script, width - length(state) - 3)
    return ends((Span(f" {script}", "strong"),), state, width, gap=1)


def _targets(view: View) -> list[Row]:
    snapshot = view.snapshot
    script, pid = snapshot.script, f"pid {snapshot.pid}"
    short_pid = f"{snapshot.pid}"
    if (link := snapshot.status.link) is not None:
        pid, short_pid = f"{pid} on {link.place}", f"{short_pid} on {link.place}"
    device = device_of(snapshot, view.device)
    rank = short_rank = ""
    hello = snapshot.hello
    if hello and hello.rank is not None and (hello.world_size or 1) > 1:
        rank = f"  rank {hello.rank}/{hello.world_size}"
        short_rank = f"  r{hello.rank}/{hello.world_size}"
    return [
        (
            Span(" gpuwatch  ", "dim"),
            Span(script, "strong"),
            Span(f"  {pid}{rank}  {device}"),
        ),
        (Span(f" {script}", "strong"), Span(f"  {pid}{rank}  {device}")),
        (Span(f" {script}", "strong"), Span(f"  {short_pid}{short_rank}  {device}")),
    ]


def device_of(snapshot: Snapshot, chosen: int | None = None) -> str:
    """ "H200 #0", "8x H200", "H200 #3 of 8" where a person chose one, "no GPU"; "" while nothing is
    measured: a process opens its GPU late."""
    gpus = snapshot.gpus
    if not gpus:
        return "no GPU" if has_measured(snapshot) else ""
    name = gpus[0].name.removeprefix("NVIDIA ")
    if len(gpus) == 1:
        return f"{name} #{gpus[0].index}"
    is_chosen = any(gpu.index == chosen for gpu in gpus)
    return f"{name} #{chosen} of {len(gpus)}" if is_chosen else f"{len(gpus)}x {name}"


def _notes(snapshot: Snapshot) -> list[str]:
    status = snapshot.status
    notes: list[str] = [status.mode]
    if status.lost_messages:
        notes.append(f"lost {count(status.lost_messages)}")
    if status.link is not None and status.link.left_out:
        notes.append("slow link")
    if status.cost_share is not None:
        least = 0 < status.cost_share < LEAST_COST
        notes.append("cost <0.1%" if least else f"cost {100 * status.cost_share:.1f}%")
    if status.recording is not None:
        notes.append(status.recording)
    notes.append(f"attached {duration(snapshot.attached_s)}")
    if status.monitor_cpu_percent is not None:
        notes.append(f"monitor {status.monitor_cpu_percent:.0f}%")
    if status.link is not None and status.link.round_trip_ms is not None:
        notes.append(f"{milliseconds(status.link.round_trip_ms)} away")
    return notes


def _states(view: View) -> list[Row]:
    """What the picture is of: now, the past, or a recording; the fullest words first."""
    status = view.snapshot.status
    if status.replay is not None:
        words = f"REPLAY {status.replay}"
        return [(Span(words, "warning"),), (Span(words.partition(": ")[0], "warning"),)]
    if view.behind_s is not None and view.at_ns is not None:
        return [(Span(f" {words} ", "paused"),) for words in _past(view, view.behind_s, view.at_ns)]
    if view.behind_s is not None:
        behind = f"{view.behind_s:.0f} s" if view.behind_s < 99.5 else duration(view.behind_s)
        return [(Span(f" PAUSED +{behind} behind ", "paused"),)]
    if status.recording is not None:
        return [(Span("● REC ", "critical"), *_health(status))]
    return [_health(status)]


def _past(view: View, behind_s: float, at_ns: int) -> list[str]:
    """ "AT 12:04:31, 2m10s ago", and of when the numbers are where that is another time."""
    early_s = (at_ns - view.snapshot.t_ns) / 1e9
    at = f"{datetime.fromtimestamp(view.snapshot.t_unix + early_s):%H:%M:%S}"
    words = [f"AT {at}, {duration(behind_s)} ago", f"AT {at}"]
    if early_s >= STALE_NUMBERS_S:
        numbers = f"{datetime.fromtimestamp(view.snapshot.t_unix):%H:%M:%S}"
        words.insert(0, f"{words[0]}, numbers of {numbers}")
    return words


def _health(status: Status) -> Row:
    if status.state == "connecting":
        return (Span("○ connecting", "warning"),)
    if status.state == "ended":
        return (Span("■ ended", "critical"),)
    if status.link is not None and status.link.lost_s is not None:
        return (Span(f"○ link lost {duration(status.link.lost_s)}", "warning"),)
    return _freshness(status)


def _freshness(status: Status) -> Row:
    age = status.freshness_s
    if age is None and status.state == "live":
        return (Span("● ", "good"), Span("live", "dim"))
    if age is None:
        return (Span(f"○ {status.state}", "dim"),)
    if status.state == "silent" or age > STALE_S:
        return (Span(f"○ silent {duration(age)}", "warning"),)
    return (Span("● ", "good"), Span(seconds(age), "dim"))


def ended_line(view: View, width: int) -> Row:
    """How the target ended, and that nothing is lost."""
    words = f"training {view.snapshot.status.ended or 'ended'}"
    left = (Span(" ■ ", "critical"), Span(words, "strong"))
    right = (Span("the last picture stays · ", "dim"), Span("q", "key"), Span(" quits ", "dim"))
    row = ends(left, right, width)
    return row if length(row) <= width else (Span(clip(text_of(row), width), "strong"),)
