"""What a scenario computes on."""

import atexit
import gc
import os
import sys

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"
CORES_WITHOUT_GPU = 2
"""What a scenario uses at most without a GPU, so that it is the same on every such machine."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 2


def stay_small() -> None:
    """Compute on one core and leave one to a loader's workers: as in a container of two cores."""
    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES_WITHOUT_GPU])


def end_soon() -> None:
    """Python would go through all that torch has made once more as it ends, for 0.7 s."""
    atexit.register(gc.freeze)
