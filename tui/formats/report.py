"""The report: everything that the overview says, as lines of text."""

from typing import Final

from ..model.snapshot import Snapshot, Status
from ..wording import numbers
from .report_lines import labelled, wrapped
from .report_run import note_line as note_line
from .report_run import past_lines, step_lines
from .report_run import phase_shares as phase_shares
from .report_run import verdict_lines as verdict_lines
from .report_system import around_lines, memory_lines, sampled_lines, use_lines
from .report_system import event_line as event_line

LEAST_WIDTH: Final = 40


def report_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The whole report, in lines of at most `width` columns (but for words that are longer)."""
    width = max(LEAST_WIDTH, width)
    return [
        *wrapped("", " · ".join(_header(snapshot)), width),
        "",
        *verdict_lines(snapshot.verdict, width, snapshot.t_ns),
        "",
        *past_lines(snapshot, width),
        *step_lines(snapshot, width),
        *sampled_lines(snapshot, width),
        *use_lines(snapshot, width),
        *memory_lines(snapshot, width),
        *around_lines(snapshot, width),
        *labelled("missing", [one.text for one in snapshot.status.missing], width),
    ]


def _header(snapshot: Snapshot) -> list[str]:
    said = [f"gpuwatch   {snapshot.script or '?'}   pid {snapshot.pid}"]
    hello = snapshot.hello
    if hello is not None and hello.rank is not None and hello.world_size is not None:
        said.append(f"rank {hello.rank}/{hello.world_size}")
    said.append(f"attached {numbers.duration(snapshot.attached_s)}")
    return [*said, *_status(snapshot.status)]


def _status(status: Status) -> list[str]:
    """How the monitor does: what it costs, what it lost, how fresh it is, how it ended."""
    said: list[str] = [status.mode]
    if status.ended is not None:
        said.append(f"training {status.ended}")
    elif status.state != "live":
        said.append(status.state)
    if status.cost_share is not None:
        cost = 100 * status.cost_share
        said.append(f"cost {cost:.2f}%" if cost >= 0.005 else "cost <0.01%")
    if status.monitor_cpu_percent is not None:
        said.append(f"monitor {status.monitor_cpu_percent:.0f}%")
    if status.lost_messages:
        said.append(f"{numbers.count(status.lost_messages)} messages lost")
    if status.lost_marks:
        said.append(f"{numbers.count(status.lost_marks)} marks lost")
    if status.recording is not None:
        said.append(f"recording {status.recording}")
    if status.replay is not None:
        said.append(f"replay {status.replay}")
    if status.freshness_s is not None and status.ended is None:
        said.append(f"heard {status.freshness_s:.1f}s ago")
    return said
