"""Thresholds of causes on the host, of loaders, notes, and of stalls."""

from typing import Final

# Causes on the host.

COMPUTE_PHASES: Final = ("forward", "backward", "model", "loss", "optim", "train", "infer")
DATA_PHASES: Final = ("data", "load", "fetch", "batch")
"""What is in the name of a user's phase that is no Python between the steps."""
WAITS_ALIKE: Final = 0.5
"""Two lines wait about as long where the shorter wait has this part of the longer one."""
LINK_REACHED: Final = 0.87
"""Part of what a PCIe link carries that copies from pinned memory reach: 54.8 of 63.0 GB/s (fifth
generation, 16 lanes, an H200); headers and credits take the rest."""
PINNED_MB_S: Final = 26_800.0
PINNED_GEN5_MB_S: Final = 54_800.0
"""Where the link is not known: 16 lanes of the fourth generation, or of the fifth if more was read.
Copies alone reached these on two H200s: the share of the time that copies hold is the rate that is
read over the rate they can have."""
PAGEABLE_MB_S: Final = 5_900.0
"""From pageable memory the processor copies first: 5.9 GB/s on one machine, 8 to 15 on another, so
no less than this, and what was read."""
PINNED_AT_LEAST: Final = 0.5
"""Part of the pinned rate below which copies are taken to be from pageable memory: a ninth to a
quarter of it is what those reach."""
COPY_LEAST_MB_S: Final = 400.0
"""Launching tiny kernels alone reads 50 to 200 MB/s."""
TINY_COPY_BYTES: Final = 64 * 1024
A_COPY_US: Final = 60.0
"""What a small copy to the GPU takes at the most, beside its bytes: 15 to 30 us of the host, and
the GPU's answer."""
TINY_COPIES: Final = 64
"""Many tiny copies: at least so many tensors a batch, smaller than this."""
RECOMPILES: Final = 3
RECOMPILE_STEPS: Final = 200
RECOMPILE_NS: Final = 20_000_000_000
"""Recompiling: at least 3 in 200 steps or in 20 s, the longer. A compilation takes 0.1 s and more:
what is a tenth of the time comes 1 to 5 s apart, which is 1,000 steps of 2 ms."""
RECOMPILE_LAPSE: Final = 3.0
"""It is over when none came for 3 times their mean distance: where they go on at that rate, that is
a chance of 5 % (exp(-3))."""
EVENTS_IN_WINDOW: Final = 3
"""Checkpoints or evaluations needed to judge them by the window; else by all recent steps."""
RHYTHM_EVENTS: Final = 3
"""Events that are a rhythm. Of one or two nobody knows when the next comes: evaluations every 313
and checkpoints every 250 steps looked like every 100 and 89."""
RHYTHM_ALIKE: Final = 0.1
"""How far the distances between them may differ, as part of their mean."""
RHYTHM_FROM: Final = 2
"""Steps that are left out where pauses of the warm-up count: those that load most of torch."""
SAME_PAUSES: Final = 0.5
"""Regular pauses and samples of evaluations of which either holds half of the other are the same:
three chunks of samples meet between one and five of six pauses."""
MID_EPOCH: Final = 0.8
"""Evaluations closer together than this part of an epoch do not mark its end."""
LONG_PAUSE_NS: Final = 30_000_000_000
"""One checkpoint of this length is reported however rare it is."""
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
"""A thread that sleeps for half of the GPU's wait for launches is not what launches too slowly; nor
does one compute on lines that wait by their name, if it sleeps for half of what they hold."""
CROSSING_BYTES: Final = 4e6
CROSSING_BACK: Final = 0.25
"""Of a step over the link to the host, and of what comes over it to the GPU: DeepSDF with its codes
on the CPU sends 1.2 GB back for 1.1 GB. A copy to the GPU alone sends 7 % of itself back."""
CROSSING_BYTES_PER_S: Final = 0.5e9
"""What the host takes for lookups, concatenation and gradients of so many bytes: no less than this
a second, where DeepSDF's 16 cores did 0.8 GB."""
LAUNCHED_NODE_NS: Final = 100_000
"""What a step on a GPU takes for an operation of its graph, where launching is all that takes time,
with its forward and its update: 33 to 107 us on an H200's host (303 of an encoder in 10 ms, 17 of
three layers in 1.4 and 1.6, 12 of two in 1.3), and 229 where one operation is an LSTM."""
LAUNCHING_OF_BUSY: Final = 25.0
"""How many times as long as the GPU is busy the host can be at launching, as seen: 0.5 to 11 in 21
runs on H200s that waited for launches, a call of 5 to 30 us for a kernel of 1.5 us and more; 750
where a tree of points was built on the CPU (KD-Net)."""
ELSEWHERE_GIVES: Final = 0.9
"""Of what the host computes so, the part that is given back at the least where it is done another
way: 0.96 of a step became 0.02 (NumPy) and 0.06 (workers)."""
OF_ANOTHER_STEP: Final = (1.0, 0.7, 1.3)
"""What operations on the CPU took in one step that was traced, in others. A guess."""

FORWARD_OF_BACKWARD_ON_CPU: Final = (0.74, 0.25)
"""Of a net on a CPU, what its forward takes of what its backward takes, and how far nets lie from
that: mean and standard deviation of 164 generated runs with a loader on two cores. Arithmetic makes
it one half, starting each operation brings small nets to 1.2; a recommender's backward fills a
gradient as large as its table (0.2 to 0.6), and chains of pointwise operations have up to 2.1."""
CONTRADICTS: Final = 2.5
"""Standard errors apart, two measurements are not of the same."""

LEAST_MASKS: Final = 5
"""Batches whose masks were looked at before padding is a cause: one may be of short texts."""
GROUPED_KEEPS: Final = 0.05
GROUPED_KEEPS_OF_FEW: Final = 0.25
FEW_BATCHES: Final = 100
"""Padding that stays in batches of texts of about one length, over what is none: 0.02 to 0.10 by
transformers' sampler on 6,000 and 50,000 texts in batches of 8 to 32 (uniform, exponential and two
log-normal lengths); 0.05 to 0.6 where an epoch has 30 to 120 batches, of which it sorts four at a
time and more."""
NET_NS_A_TENSOR: Final = 110_000.0
NET_NS_A_BYTE: Final = 0.26
"""What a net takes on a core for a forward and its backward of hardly any tokens, for each tensor
of parameters and for each of their bytes: five transformers of 28 to 73 tensors and 1 to 18 MB with
batches of 8 and 16 texts of 8 tokens. With that apart, half of the tokens took them 0.30 to 0.50 of
the time, for attention goes by their square and what is kept for the backward leaves the caches."""
NET_NS_AN_OPERATION: Final = 12_000.0
"""The same for each operation of a traced step: 13 us by the tensors of a transformer, which have
8 operations each; adapters train few of many (a LoRA of 4,060 operations in 62 ms on two cores:
72 % less padding gave 1.2x, which is 11 us; by its 32 trained tensors 2.0x)."""
TOKENS_GIVE_ON_GPU: Final = 0.95
"""What fewer tokens give of what is expected of kernels that take as much less: 1.67x of 1.74x
(BERT in fp32, texts of 20 to 300 words, H200), which no second run has tested."""

FUSED_LEFT_ON_CPU: Final = {
    "Adam": (0.10, 0.25, 0.60),
    "AdamW": (0.10, 0.25, 0.60),
    "SGD": (0.35, 0.60, 0.85),
    "Adagrad": (0.10, 0.30, 0.85),
}
FUSED_LEFT_UNKNOWN: Final = (0.10, 0.30, 0.85)
"""Least, middle and most of an optimizer's time that `fused=True` leaves on a CPU: four nets of 1
to 132 tensors, one and two threads of two cores, torch 2.13 (Adam and AdamW 0.09 to 0.39, SGD with
momentum 0.36 to 0.78; Adagrad was not measured), and AdamW in 13 generated runs whose gain is known
well: 0.09 to 0.56, a median of 0.25. A small net whose state fits a core's cache leaves half: it
costs 5 ns a number and not 6 to 15, and the arithmetic stays. `foreach=True` leaves 0.7 to 2.0."""
FUSED_LEFT_ON_GPU: Final = (0.38, 0.43, 0.49)
FAST_BYTES_PER_S: Final = 1.2e12
"""The same on a GPU, where large tensors move in groups: Adam's foreach form reads or writes a
tensor's size 16 times, the fused one 7 times, and 0.38 to 0.49 of it were left in sixteen nets
where that is known to a tenth. Groups move so much from an A100 on (2.1 TB/s on an H100, 2.9 on an
H200): an update that moves less waits for launches too, or its card is not known."""
DENORMAL_NS: Final = 12.0
USUAL_NS: Final = 5.0
GROUPED_BYTES: Final = 32 << 20
"""Parameters beyond this are more than a core's part of most last-level caches: what goes through
all of them in turn reads memory each time."""
BY_HAND_NS: Final = 60_000.0
"""From so long a tensor on, an update on a GPU launches several kernels for each, one by one: a
launch from Python takes 5 to 10 us. One with kernels of its own has one or two for each."""
TENSOR_NS: Final = 25_000.0
DENORMAL_NUMBERS: Final = (100_000, 4_000_000)
"""From so many ns a number on, beside its ns a tensor, an update by Adam of so many numbers, whose
state a core's caches hold, is slower than its arithmetic: 2 to 8 in 60 generated runs (5 is usual).
Moments without a gradient (black pixels) decay until they are denormal, on which a core is slow:
after 6,000 steps 4.1 ms for 204,000 numbers, 1.2 ms with `torch.set_flush_denormal(True)`, and with
`fused=True` 2.5 ms."""
SPARSE_SPARES: Final = (0.87, 1.09, 1.6)
"""Time that sparse gradients give back over the optimizer's time for rows that no step uses: least,
middle, most. The backward, too, no longer fills a gradient as large as the table, and a row that is
used costs more: 1.07 to 1.13 and once 1.25 in 9 generated runs on two cores, whether of even or odd
seeds; 0.87 and 1.72 in two that had another cause, or turns far apart…"""
LARGE_TABLE_BYTES: Final = 32 << 20
SPARSE_SPARES_LARGE: Final = (0.87, 1.20, 1.6)
"""…and of a table beyond the first 1.16, 1.19, 1.21 and 1.30. Memory of more than 32 MiB glibc maps
anew each time it is asked for (DEFAULT_MMAP_THRESHOLD_MAX), so each backward faults in all pages of
such a gradient: 23 ms and not 7 for twice the table."""
AS_MUCH: Final = 0.95
"""Gains closer than this are equal, and the simpler change comes first: turns of the same run lie
6 % apart (the median of 305 generated runs)."""
DENSE_PASSES: Final = 16
DENSE_PASSES_FUSED: Final = 7
DENSE_PASSES_SGD: Final = 3
LEAST_BYTES_PER_S: Final = 0.2e12
"""So many times an update on a GPU reads or writes a table's size: Adam's foreach form, its fused
one, and plain SGD (with momentum no table is known: it takes no sparse gradients); and what the
memory of cards that train moves at the least (an L4's 300 GB/s, a T4's 320, at two thirds)."""
SPARSE_PASSES: Final = (8, 24, 96)
SPARSE_NS: Final = (800_000.0, 1_200_000.0, 2_000_000.0)
"""And an update of the rows used the size of each row that was looked up (it sorts and adds up
gradients, takes moments out, changes them and puts them back), beside a time of its own, for it
asks the GPU how many rows there are: least, middle, most. 13 generated recommenders, H100 and H200,
of 128 MB to 4 GB: 16 to 43 passes of those where a row is looked up in half of the steps and more,
once 96 where it is in one of 37…"""
GRADIENT_PASSES: Final = (1, 3)
"""…and a backward fills a gradient of the table's size, each further one before the update reads
both and writes the sum. An AdamW of 31 ms over 4 GB with four backwards: 49 ms were gained."""
LOOP_GIVES: Final = 0.9
"""Part of what the same kernels without gaps give that another algorithm gives at the least: one
kernel for a loop of cells 0.91, 0.94, 1.4, 1.8 and 3.7 of it, no anomaly detection 1.6 (H200)."""

# Nothing wrong.

MOST_OF_IT: Final = 0.5
"""The net is called the limit from half of the time on."""
LARGE_PART_OF_NET: Final = 0.25
"""A place in the net is named from a quarter of the time on: a third more speed, were it free."""
IDLE_CORES: Final = 0.5
"""A CPU training that leaves half of its cores idle may have been given too few threads."""


# Loaders and their workers.

WORKER_HEADROOM: Final = 1.2
"""W* = ceil(1.2 S / P_other)."""
WORKER_CPU_BOUND: Final = 85.0
WORKER_CPU_WAITS: Final = 50.0
"""Percent of a core a worker uses: above, it computes; below, it waits."""
WORKER_CPU_KNOWN_S: Final = 2.0
"""How long workers must have lived for their use of a core to be known: it is read every half a
second, from what they used before. Workers of 0.6 s computed and read as 10 % of a core."""
READ_SHARE: Final = 0.30
"""Part of the busy moments in a read or in state D from which waiting is called storage."""
HANDED_OVER: Final = 0.10
"""Part of the training thread's samples in which a worker hands over a batch that is made, from
which a forecast without the wait is a bound."""
READ_BYTES_S: Final = 1024 * 1024
"""Without stacks, workers that are idle and read this much are taken to wait for it."""
MACHINE_FULL: Final = 90.0
"""Percent of all cores: above, a worker's low CPU is a queue for a core, not a wait for a disk."""
OVERSUBSCRIBED: Final = 1.5
"""Workers per core."""
QUEUES: Final = 0.25
"""Part of its busy time in which a worker waits for a core, from which they are too many: 1.5 of
them on one core wait for a third of it."""
LEAST_QUEUE: Final = 0.5
"""Workers that wait for a core at a time, on average, from which it is a queue: eight that are
started anew for each epoch, and live for 2 s, use 1 % of a core each and wait for 2 %."""
CORES_FREE: Final = 70.0
WORKERS_PER_FREE_CORE: Final = 2
"""While the cores are busy for less than so many percent, a worker that uses part of one may share
it: then at most so many."""
MOST_CORES_BESIDE_GPU: Final = 2.0
"""Where the net computes on a GPU: the training thread and autograd's own. What its process uses
beyond are OpenMP's threads, which spin while they wait: 16 cores of it, in one loop that loaded its
batches itself, and its loading took one of them."""
STORAGE_WORKERS_PER_CORE: Final = 4
"""Workers that only wait may outnumber the cores, 2 to 4 times."""
MOST_WORKERS: Final = 64
"""No number beyond this is advised, whatever the model gives."""
MOST_PREFETCH: Final = 8
"""Every prefetched batch is memory in each worker."""
OTHERS_USE: Final = 0.25
"""Part of the machine that other processes use and that is worth mentioning: figures of a shared
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
SHORT_EPOCH_NS: Final = 8_000_000_000
"""Two workers took 0.15 s to start and end on an H200 (Lightning, a small dataset): 2 % of such an
epoch. Of one of 0.2 s, eight workers made 0.40x."""
STARTS_HOLD: Final = 0.5
"""Of the waits for batches the part that starts must hold in such epochs: the queue is empty after
each (dcgan with 16 batches: 86 ms for a start, 110 ms for all batches after it)."""
EVALUATION_STARTS: Final = 0.5
"""Of an evaluation the part that starts its loader's workers, from which on to keep them is worth
more than the rest of it."""


# Settings worth a note.

NOTE_SHARE: Final = 0.01
"""Less of the time, or of the samples, is no cost worth a line: of the 200 samples of a window it
is two, and one may meet a line that runs once an epoch."""
NOTE_LEAVE_TIMES: Final = 5
"""Looks in a row without its reason before a note goes: costs near the line above cross it with
every sample, and a line that comes and goes moves what is below it."""
NOTE_FP32: Final = 0.10
"""fp32 units at work for less are pointwise kernels: one that does nothing else reads 2 % on an
H200, a product 77 %."""
NOTE_TENSORS: Final = 50
"""Tensors from which updating them one by one is many launches: a dozen each is 600 a step, 4 ms at
the 7 us of a launch."""
NOTE_MEMORY_LEFT: Final = 0.05
"""Part of what a process could grow to that is still free: below, the next allocation of a batch's
size may be the last."""
TF32_CAPABILITY: Final = 80
"""Ampere, the first with tf32 and bfloat16 in its tensor cores."""


# When nothing moves.

STALL_S: Final = 10.0
STALL_STEPS: Final = 10.0
"""Nothing for 10 s and 10 times the 95th percentile of a step."""
STALL_KNOWN_STEPS: Final = 5
STALL_FIRST_S: Final = 120.0
"""While fewer steps are known: the first may choose kernels, fetch weights, compile."""
STALL_RANKS_S: Final = 6.0
"""…where the ranks' own counters show which of them a collective waits for, and its stack that it
stays where it is: within 10 s of a stall it is to be named. A mark of any rank sets it back…"""
STALL_DEAD_S: Final = 3.0
"""…and where a rank has ended while the others are in the middle of a step."""
STALL_STARTUP_S: Final = 60.0
"""Workers that import a heavy dataset take tens of seconds to start."""
STALL_NAMED_S: Final = 60.0
"""A phase that the user named is known to be long."""
STALL_CHECKPOINT_S: Final = 300.0
"""Tens of GB to a network disk take minutes."""
STALL_COMPILE_S: Final = 1800.0
"""max-autotune of a large model takes a quarter of an hour and more."""
STALL_LONGEST: Final = 3.0
"""Times the longest that this run has taken for the same thing before."""
