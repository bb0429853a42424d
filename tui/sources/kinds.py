"""What kind of process it is, as far as the system tells: a DataLoader's worker, one with torch.

By itself: who only asks which process is meant does not wait for the sources to be imported.
"""

from pathlib import Path
from typing import Final

import psutil

WORKER_NAME: Final = "pt_data_worker"
"""What torch calls its DataLoader workers."""


def is_worker(child: psutil.Process, target: psutil.Process) -> bool:
    """Whether a child loads data: torch names its workers; older ones are told by their kind.

    A forked worker has its parent's command line; a spawned one says `spawn_main`.
    """
    if child.name() == WORKER_NAME:
        return True
    line = child.cmdline()
    return child.ppid() == target.pid and (
        line == target.cmdline() or any("spawn_main" in part for part in line)
    )


def has_torch(maps: Path) -> bool:
    """Whether a process has torch's libraries mapped. True where nobody may look."""
    try:
        return "/libtorch" in maps.read_text()
    except OSError:
        return True
