"""The GPU: its clock, its counters, and what it is busy with."""

from typing import Final

# The GPU's clock.

LEAST_GPU_STEPS: Final = 5
"""Measured steps before the GPU's clock is used for the window; the host's may be twice as many."""
LEAST_LONG_GPU_STEPS: Final = 2
LONG_GPU_NS: Final = 2_000_000_000
"""…or two that took so long: a step of a second is measured at hundreds of kernels, and the newest
comes a step late."""
GPU_CLOCK_DUE_NS: Final = 10_000_000_000
"""So long a window waits for the GPU's clock before the host's is used alone: a GPU that runs a
second behind reports its steps a second late, and until then a hidden wait looks like a real
one."""
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
SEGMENTS_A_STEP: Final = 1.0
"""Segments asked of the device a step from which the allocator works in the loop: its cache makes
it none. Recorded on H200s: 12 where the cache is emptied each step, 0.01 to 0.04 elsewhere."""
SEGMENT_NS: Final = 500_000
"""What one costs at most, with giving it back: 12 a step held 5.2 ms of 15 ms on an H200."""
SEGMENT_ASKED_NS: Final = 200_000
"""…and of that asking for it: three runs on an H200 that took `empty_cache()` out of each step
gained 0.26 ms, at least 0.20 and less than 0.1 for each segment, beside the call itself."""
SEGMENT_FREED_NS: Final = 30_000
"""What the call takes at least for each that it gives back, where it is in each step: half of what
it took on an H200 where it was shortest, 95 in 5.7 ms."""
GIVEN_BACK: Final = 0.5
"""Part of the segments asked for that was given back before, from which on the cache is emptied in
the loop: all of them, where it is in each step; none, where a cache only grows."""
RETRIES_A_STEP: Final = 0.05
"""Allocations that had to empty the cache first, from which on they are no accident: 0.11 a step of
130 ms left an H200 idle for three quarters of the time."""

GRAPH_LEFT_NS: Final = 700_000
GRAPH_LEFT: Final = 0.15
"""What the host still does for a batch whose net is replayed as CUDA graphs: so much for the loss
and its gradient, launched one by one, and this part of what the net took, for the copies into the
graphs and the gradient of each parameter. Of a hundred generated nets on H100s and H200s the gain
is 12 % off at the median and 37 % in one of ten; 0.34 ms and a fifth, fitted to twenty of them, are
14 and 39 % off. 200 layers, launched in 28 ms, became 3.5x as fast: 3.5x by these."""
STEP_GRAPH_NS: Final = 60_000
STEP_GRAPH_LEAST: Final = 0.56
STEP_GRAPH_WITHIN: Final = 1.3
STEP_GRAPH_WORTH: Final = 1.15
"""What the host still does for a graph of a whole step; how far below and above the forecast its
gain was at the most, in nine of eleven public scripts on H200s (0.56 to 2.1 times it, at the median
0.97); and from how much more than a graph of the net alone it is named."""
FORWARD_OF_BACKWARD: Final = 0.83
"""Of the host's time for a backward, what the forward takes: the median of 15 launch-bound nets on
H200s whose phase holds hardly anything else, 0.63 to 1.06 of 13 of them."""
PASS_NS_A_TENSOR: Final = 150_000
"""What the host takes for a forward and its backward, for each tensor of parameters: 0.11 to 0.21
ms, 0.15 at the median, in 14 small nets of 11 to 99 of them on H200s (convolutions, transformers,
multilayer nets). A recurrent one, which walks through time, takes 0.45 to 1.5 ms."""
FILLED_TAKES: Final = 0.75
"""What kernels of a whole batch take of the time in which those of its parts, one after the other,
kept a multiprocessor busy: weights are read once, and fewer kernels end on a part of a wave. 0.57
to 0.91 in nine generated nets on H100s and H200s that were the limit then, 0.38 in an MLP of
800 MB."""
LOOP_SHARE: Final = 0.5
"""A function of the user's own that is no module's forward, or a recurrent cell, in which this part
of the forward's launches is issued holds a loop, or is called in one: a net spreads them over its
modules. The backward repeats them under one frame."""
HIDDEN_WORTH: Final = 0.05
"""A hidden wait of this part of the step is mentioned beside the exposed one."""

# What a busy GPU is busy with (figures of one H200).

GPU_BUSY: Final = 0.85
"""From here on the counters show what limits the GPU; below, it is not the limit all the time."""
TENSOR_HEALTHY: Final = 0.40
"""Tensor cores active for this part of the busy time: as good as large trainings get (Llama 3 at 38
to 43 % of the peak)."""
TENSOR_ABSENT: Final = 0.10
TENSOR_SEEN: Final = 0.005
"""Tensor cores active for so much: some product runs on them, and only products do."""
MATRIX_BYTES: Final = 1024 * 1024
"""Parameters that hold so much on average are matrices: a vector of a net is a few KiB. A table of
an embedding is as large, and looking up its rows keeps no arithmetic unit busy."""
FP32_HEAVY: Final = 0.25
"""fp32 units this active while the tensor cores rest: products run in the wrong precision."""
FP32_FULL: Final = 0.77
"""What a pure fp32 product reads on an H200."""
SM_FULL: Final = 0.97
TENSOR_FULL: Final = 0.93
"""Multiprocessors and tensor cores that read as active in such a product, in fp32 and in bf16."""
TF32_RATIO: Final = 3.4
BF16_RATIO: Final = 15.0
"""How much faster than in fp32 the products themselves are: in bf16 an 8192 product on an H200, 770
to 800 TFLOP/s against 51. Of tf32 such a product makes 7; a GPT-2 and a BERT of 768 numbers got 3.4
and 2.5 of it."""
BF16_WORTH: Final = 1.10
"""How much more than tf32 bf16 must give to come first: autocast launches a cast for each weight
and most activations, so that where the host is the limit next it may give less than nothing. BERT
with short sequences through Accelerate on an H200: 1.36x by tf32, 0.53x by bf16."""
AUTOCAST_ADDS: Final = 0.45
"""Of what the host takes to issue a net, so much comes on top under autocast, for its casts: what
eleven nets that wait for launches lost by it on H200s (a third of a step at the median, 0.1 to 1.1,
of which their nets were 0.7). Seven GPTs of eight layers that kept one busy in tf32, their hosts at
0.7 of a step, got 0.73 to 1.02x by bf16."""
VARIES: Final = 0.1
"""The middle half of the forwards spreads over so much of their median on a GPU that is the limit:
batches differ in length. On H200s three such nets spread over 0.27 to 0.37, and 27 of 29 others
over less than 0.07."""
HALF_TYPE_GIVES: Final = (0.62, 1.4, 1.05)
"""Part of what halves of products and bytes make that bf16 gives where tensor cores work for a part
of the time: this, and so much more for each part of it, up to the last. Nets that keep an H100 or
H200 busy got 0.8 of it (resnet50, vgg, unet: tensor cores 10 to 15 %), 0.75 to 1.0 (seven at 17 to
23 %), 1.0 to 1.1 (a GAN and encoders at 25 %), 0.90 to 1.08 (MLPs and LSTMs at 47 to 59 %)…"""
ATTENDS: Final = (0.35, 0.03)
ATTENDS_GIVES: Final = 1.33
"""…and where tensor cores work for so much and fp32 units beside them, as in attention and norms,
this: 1.17 to 1.52 of it in eleven transformers at 36 to 42 %, with fp32 units at 4 to 5 % (1 % in
the others)."""
HALF_TYPE_WITHIN: Final = (0.75, 1.40)
"""The gain over that: 26 of 29 lie between."""
DRAM_HEAVY: Final = 0.60
DRAM_FULL: Final = 0.88
"""What a pure pointwise kernel reads on an H200: memory is the limit from two thirds of that on."""
FUSION_SAVES: Final = (0.5, 1.0)
"""Part of the memory traffic that fusing pointwise kernels saves: half where they become one in
pairs, nearly all in a long chain. Counters do not show how long the chains are, so the forecast is
the middle. Chosen with one measurement known, which it meets within 6 % (24 operations in chains
of four on an H200); of two pointwise nets seen since one gave 0.93 of it and one 1.37."""
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
