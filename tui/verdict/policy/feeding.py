"""Loaders and their workers."""

from typing import Final

LEAST_STACKS: Final = 20
"""Fewer samples name a frame by chance: 20 give ±11 points at 50 %."""
WORKER_HEADROOM: Final = 1.2
"""W* = ceil(1.2 S / P_other)."""
WORKER_CPU_BOUND: Final = 85.0
WORKER_CPU_WAITS: Final = 50.0
"""Percent of a core a worker uses: above, it computes; below, it waits."""
READ_SHARE: Final = 0.30
"""Part of the busy moments in a read or in state D from which waiting is called storage."""
HANDED_OVER: Final = 0.10
"""Part of the training thread's samples in which a worker hands over a batch that is made, from
which a forecast without the wait is a bound."""
HAND_OVER_FRAMES: Final = ("rebuild_storage", "rebuild_tensor", "_rebuild")
"""How the functions begin in which PyTorch opens a batch's shared memory."""
READ_BYTES_S: Final = 1024 * 1024
"""Without stacks, workers that are idle and read this much are taken to wait for it."""
MACHINE_FULL: Final = 90.0
"""Percent of all cores: above, a worker's low CPU is a queue for a core, not a wait for a disk."""
OVERSUBSCRIBED: Final = 1.5
"""Workers per core."""
QUEUES: Final = 0.25
"""Part of its busy time in which a worker waits for a core, from which they are too many: 1.5 of
them on one core wait for a third of it."""
STORAGE_WORKERS_PER_CORE: Final = 4
"""Workers that only wait may outnumber the cores, 2 to 4 times."""
MOST_WORKERS: Final = 64
"""No number beyond this is advised, whatever the model says."""
MOST_PREFETCH: Final = 8
"""Every prefetched batch is memory in each worker."""
OTHERS_USE: Final = 0.25
"""Part of the machine that other processes use and that is worth a word: figures of a shared
machine change with its neighbours."""
WORTH_DOING: Final = 0.10
"""More workers are advised when they give at least this; else "will not help"."""
MOST_OF_THE_GAIN: Final = 0.80
"""More workers come first where they give this part of what no wait at all would: one number to
change (and the part of the best single gain that a first action should reach)."""
NEAR_BEST: Final = 0.05
"""The smallest number of workers this close to the best one is advised."""
BURST_BUSY: Final = 0.90
"""Workers busy for less than this while the training waits: they fall behind in bursts."""
BURST_MASS: Final = 0.80
BURST_STEPS: Final = 0.15
"""A burst: 80 % of the wait in at most 15 % of the steps."""
