"""Causes on the host, and what a place in the code or a line of it says."""

from typing import Final

# -- other rules -------------------------------------------------------------------------------

SYNC_FRAMES: Final = frozenset(
    {"item", "tolist", "cpu", "numpy", "synchronize", "__bool__", "__float__", "nonzero"}
)
"""Where the training thread waits for the GPU: time there is not the host's (diagnosis, 5th
finding)."""
READ_FRAMES: Final = frozenset(
    {
        *("read", "readinto", "readline", "readlines", "read_bytes", "read_text", "pread", "_read"),
        *("recv", "recv_into", "recv_bytes", "download", "get_object", "urlopen", "request"),
        *("open", "read_file", "fetch", "getresponse", "readall"),
    }
)
"""Functions in which bytes are awaited, by name."""
READ_LINES: Final = (
    r"\b(recv|recv_into|recv_bytes|recvfrom|read|readinto|readline|readlines|pread|open)\(",
    r"\b(read_bytes|read_text|imread|urlopen|getresponse|get|request|download|get_object)\(",
    r"\b(execute|fetchone|fetchall|fetchmany|query|sleep)\(",
)
"""What a line says that calls such a one in C, which leaves no frame. It counts only for a worker
that hardly uses its core: a line alone proves nothing."""
COMPUTE_PHASES: Final = ("forward", "backward", "model", "loss", "optim", "train", "infer")
DATA_PHASES: Final = ("data", "load", "fetch", "batch")
"""What is in the name of a user's phase that is no Python between the steps."""
SYNC_LINES: Final = (
    r"\.(item|tolist|cpu|numpy|nonzero|any|all|unique|masked_select)\(",
    r"\b(float|int|bool|print)\(",
    r"\bsynchronize\(",
    r"\bisnan\(|\bisfinite\(|\bisinf\(",
    r"\[[^\]]*\bmask\b[^\]]*\]",
)
"""What a line says on which the training thread may wait for the GPU. A line alone proves
nothing: many samples on it do."""
WAITS_ALIKE: Final = 0.5
"""Two lines wait about as long where the shorter wait has this part of the longer one."""
SYNC_EXPLAINS: Final = 0.10
"""Samples on such lines above which idle gaps are no launch overhead."""
COPY_LINES: Final = (r"\.(to|cuda|copy_|pin_memory)\(", r"\bdevice_put\(|\bprefetch\(")
"""What a line says on which a batch goes to the GPU."""
ATTENTION_LINES: Final = (r"\bsoftmax\(",)
"""What a line says on which attention is computed step by step. A classifier's last layer says it
too, once: it counts only where samples meet it."""
SHAPE_LINES: Final = (r"\b(nonzero|masked_select|unique|argwhere)\(", r"\[[^\]]*\bmask\b[^\]]*\]")
"""What a line says whose result has a shape that only the GPU knows: the host must wait for it."""
EMPTYING_LINES: Final = (r"\bempty_cache\(", r"\bipc_collect\(")
"""What a line says on which the allocator gives its cache back."""
PAGEABLE_MB_S: Final = 5_900.0
PINNED_MB_S: Final = 26_800.0
"""Rates over PCIe that copies alone reached on an H200: the share of the time that copies hold is
the rate that is read over the rate they can have."""
COPY_LEAST_MB_S: Final = 400.0
"""Launching tiny kernels alone reads 50 to 200 MB/s."""
TINY_COPY_BYTES: Final = 64 * 1024
TINY_COPIES: Final = 64
"""Many tiny copies: at least so many tensors a batch, smaller than this."""
RECOMPILES: Final = 3
RECOMPILE_STEPS: Final = 200
"""Recompiling: at least 3 in 200 steps."""
EVENTS_IN_WINDOW: Final = 3
"""Checkpoints or evaluations needed for the window to speak for them; else all recent steps do."""
MID_EPOCH: Final = 0.8
"""Evaluations closer together than this part of an epoch do not mark its end."""
LONG_PAUSE_NS: Final = 30_000_000_000
"""One checkpoint of this length is worth saying however rare it is."""
TARGET_BUDGET: Final = 0.02
"""Advice for checkpoints and evaluations: as often as costs this share."""

STARVED_EXPLAINS: Final = 0.5
"""Waiting for a core that makes half of the GPU's wait for launches is what to mend first: fewer
kernels would still be launched by a thread that has no core."""
THROTTLED_READINGS: Final = 0.10
"""Part of the readings with a reason to run below the clock."""

OUTLIER_MADS: Final = 6 * 1.4826
OUTLIER_LEAST: Final = 0.5
"""A step that takes longer than the median by 6 standard deviations (of a median absolute
deviation) and by half of itself is one that something has held up."""
OUTLIER_ALONE: Final = 0.8
"""…and no longer batch, whose backward is longer too: so much of it lies outside the backward and
the optimizer."""
OUTLIER_RUN: Final = 2
"""More long steps in a row than this are a slower pace, and no event."""
HOST_ALIKE: Final = 0.8
"""Two views of the host's time this close to each other are views of the same."""
ASLEEP_AWAKE: Final = 0.5
"""A thread that sleeps for half of the GPU's wait for launches is not what launches too slowly."""

# -- nothing wrong -----------------------------------------------------------------------------

MOST_OF_IT: Final = 0.5
"""The net is called the limit from half of the time on."""
IDLE_CORES: Final = 0.5
"""A CPU training that leaves half of its cores idle may have been given too few threads."""
