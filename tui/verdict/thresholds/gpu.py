"""The GPU: its clock, its counters, and what it is busy with."""

from typing import Final

# -- the GPU's clock ---------------------------------------------------------------------------

LEAST_GPU_STEPS: Final = 5
"""Measured steps before the GPU's clock speaks for the window; the host's may be twice as many."""
GPU_CLOCK_DUE_NS: Final = 10_000_000_000
"""So long a window waits for the GPU's clock before the host's speaks alone: a GPU that runs a
second behind tells its steps a second late, and until then a hidden wait looks like a real one."""
CAUGHT_UP_NS: Final = 50_000
CAUGHT_UP_SHARE: Final = 0.01
"""Lag at which the GPU has caught up: tau = max(50 us, 1 % of the step). Measured on an
H200: 9 to 30 us in launch-bound loops, milliseconds to seconds in others."""
CAUGHT_UP_IDLE: Final = 0.05
"""…or this part of the time that the GPU is idle in a step. On an H200 nine launch-bound loops lag
by 0 to 0.03 of it at the median and 0.05 at the 90th percentile; loops that wait for the GPU, or
for memory from the device, by 0.08 to 1."""
CAUGHT_UP_STEPS: Final = 0.80
"""…in at least this part of the steps."""
LAG_UNCERTAIN: Final = 0.5
"""Part of tau that the alignment may leave open. On an H200 9 to 16 us of 50 are open all the time,
while the two kinds of run lie a factor of a hundred apart."""
LAUNCH_BUSY: Final = 0.80
"""A GPU that is busy for more is not waiting for launches."""

LOOP_SHARE: Final = 0.5
"""A function of the user's own in which this part of the launches is issued holds a loop: a net
spreads them over its modules."""
HIDDEN_WORTH: Final = 0.05
"""A hidden wait of this part of the step is said beside the exposed one."""

# -- what a busy GPU is busy with (figures of one H200) ----------------------------------------

GPU_BUSY: Final = 0.80
"""From here on the counters say what limits the GPU; below, it is not the limit all the time."""
TENSOR_HEALTHY: Final = 0.40
"""Tensor cores active for this part of the busy time: as good as large trainings get (Llama 3 at 38
to 43 % of the peak)."""
TENSOR_ABSENT: Final = 0.10
FP32_HEAVY: Final = 0.25
"""fp32 units this active while the tensor cores rest: products run in the wrong precision."""
FP32_FULL: Final = 0.77
"""What a pure fp32 product reads on an H200."""
SM_FULL: Final = 0.97
TENSOR_FULL: Final = 0.93
"""Multiprocessors and tensor cores that read as active in such a product, in fp32 and in bf16."""
TF32_RATIO: Final = 7.0
BF16_RATIO: Final = 15.0
"""How much faster than in fp32 the products themselves are: an 8192 product on an H200, 770 to 800
TFLOP/s in bf16 against 51."""
DRAM_HEAVY: Final = 0.60
DRAM_FULL: Final = 0.88
"""What a pure pointwise kernel reads on an H200: memory is the limit from two thirds of that on."""
FUSION_SAVES: Final = (0.5, 1.0)
"""Part of the memory traffic that fusing pointwise kernels saves: half where they become one in
pairs, nearly all in a long chain. Counters do not tell how long the chains are, so the forecast is
the middle. Chosen with one measurement known, which it meets within 6 % (24 operations in chains
of four on an H200); no second one has tested it."""
UNDERFILLED_SM: Final = 0.50
UNDERFILLED_DRAM: Final = 0.40
UNDERFILLED_TENSOR: Final = 0.25
"""All below: kernels run all the time, and none fills the device."""
SPINS: Final = 0.02
"""Tensor cores, fp32 units and memory all below: a kernel that only waits. NCCL's on an H200 reads
18 % of the multiprocessors and less than 1 % of each of these."""

MISALIGNED_TENSOR: Final = 0.30
"""Tensor cores active for 10 to 30 % of the busy time…"""
MISALIGNED_SM: Final = 0.80
MISALIGNED_FP32: Final = 0.15
"""…while the multiprocessors are full and do little else. Products that fit read 96 % here with
93 % on the tensor cores, pure fp32 ones 77 % on the fp32 units."""
MISALIGNED_UNEXPLAINED: Final = 0.45
"""Part of the busy time that tensor cores and memory at their full rates do not explain. On an H200
products of odd sizes leave 0.59; convolutional nets of fitting sizes, which share their time with
norms and activations, 0.25 to 0.30."""

MEMORY_FULL: Final = 0.92
"""Part of the device's memory from which it counts as full: the rest goes in
fragments and in what libraries take."""
MOST_TIMES_LARGER: Final = 8
"""No batch beyond this many times the present one is advised: learning rates do not follow."""

FEW_TENSORS: Final = 64
LARGE_TENSOR: Final = 16 * 1024 * 1024
"""Few parameters that are this large on average are embeddings: a net of as many tensors without
one holds a few MiB in each."""


# A run without a probe, judged by samples of its main thread's stack.

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
"""Samples tell where the thread was, not what the GPU felt of it, and a name in the table may mean
something else in this program: never more than medium."""
SAMPLED_SERIAL: Final = 0.5
"""Part of the wait in which the training thread makes the batch itself, from which on it is said to
have no workers."""
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
"""Part of the time in which the GPU has nothing to do, from which on that is said though its cause
is not known."""
