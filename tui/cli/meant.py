"""The process that a pid on the command line means, said where it is another one."""

from tui.cli.output import write_notes
from tui.watchable import Watchable, find_watchable


def meant(pid: int) -> Watchable:
    """Its page is let go of: the picture opens it anew. Raises GpuwatchError where it cannot be
    watched."""
    found = find_watchable(pid)
    if found.page is not None:
        found.page.close()
    write_notes([f"gpuwatch: {line}" for line in found.told])
    return found
