"""A run without a probe, judged by samples of its main thread's stack."""

from typing import Final

SAMPLED_LEAST: Final = 38
"""Samples before there is a verdict: two chunks of py-spy, 4 s of a run. A half is then known to
13 points."""
SAMPLED_ENTER_LOW: Final = 0.10
"""A cause enters when even the lower bound of its share is above the tenth that makes it one. With
the 5 % that are enough for steps, two of eight healthy runs that wait for data 5 % of the time were
called bound at some moment of 80 s; with this one of a hundred, by an optimizer that holds 9 %
(simulated)."""
SAMPLED_SWAP_RENEWED: Final = 0.5
"""Part of the window's samples that must be new before another cause takes the headline. The
window is the last minute: were all of it to be new, what the first 4 s showed would stand for a
minute. Two equal causes took no turns in 960 s with it, three with 0.25 (simulated)."""
SAMPLED_MOST_CONFIDENT: Final = 0.75
"""Samples show where the thread was, not what the GPU lost by it, and a name in the table may mean
something else in this program: never more than medium."""
SAMPLED_SERIAL: Final = 0.5
"""Part of the wait in which the training thread makes the batch itself, from which on it has
no workers."""
SAMPLED_RESTARTS: Final = 2
SAMPLED_YOUNG_S: Final = 20.0
"""Workers that came and went, times those that there are, and the most that one of these has been
there for: then they are started anew for every epoch, and epochs are short."""
STILL_S: Final = 20.0
"""The stack has not moved and nothing runs, neither here nor in the workers nor on the GPU: twice
what is enough where a probe sees each mark."""
STILL_BESIDE_GPU_S: Final = 120.0
"""A GPU that is busy all the while may have a long kernel; or it waits in a collective."""
STILL_THREAD: Final = 0.003
STILL_CORES: Final = 0.02
"""CPU below which a thread, and the rest of its process tree, do nothing: waking up every few
seconds to look for a batch costs 0.0001, the least part of a step that goes on 0.01."""
STILL_GPU: Final = 5.0
"""Percent, likewise."""
IDLE_GPU: Final = 0.30
"""Part of the time in which the GPU has nothing to do, from which on that is reported though its
cause is unknown."""
