"""Processes: the trainer, its workers and other children, as the kernel sees them."""

from collections.abc import Sequence

from tui.observations import ProcessUse
from tui.widgets.panel import Panel
from tui.widgets.spans import Row, Span, clip, row, rule
from tui.widgets.view import View
from tui.wording.numbers import size

_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waits for disk",
    "T": "stopped",
    "Z": "zombie",
}


class ProcessesPanel(Panel):
    """A line a process, the trainer first."""

    def rows(self, view: View, width: int, height: int) -> Sequence[Row]:
        """The table, and how many were left out."""
        processes = view.snapshot.processes
        cores = view.snapshot.cores
        notes = [] if cores is None else [f"{cores:g} cores"]
        head = rule("Processes", notes, width, self.has_focus)
        if not processes:
            return [head, row("   not measured yet", "dim")]
        room = height - 2
        shown = processes if len(processes) <= room else processes[: max(0, room - 1)]
        out = [head, row(f" {'':<8}{'pid':>8}{'cpu':>7}{'memory':>10}{'read':>11}  state", "dim")]
        out += [_line(process, width) for process in shown]
        if len(shown) < len(processes):
            out.append(row(f"   and {len(processes) - len(shown)} more", "dim"))
        return out


def _line(process: ProcessUse, width: int) -> Row:
    cpu = "" if process.cpu_percent is None else f"{process.cpu_percent:.0f}%"
    read = "" if process.read_bytes_s is None else f"{size(process.read_bytes_s)}/s"
    memory = size(process.rss_bytes if process.pss_bytes is None else process.pss_bytes)
    state = _STATES.get(process.status, process.status)
    numbers = f"{process.pid:>8}{cpu:>7}{memory:>10}{read:>11}"
    used = 9 + len(numbers) + 2
    return (
        Span(f" {process.role:<8}", "dim"),
        Span(numbers),
        Span(
            f"  {clip(state, max(1, width - used))}", "warning" if process.status == "D" else "dim"
        ),
    )
