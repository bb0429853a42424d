"""Every threshold of the verdict, each beside its reason.

"diagnosis N" is section N of the project's diagnosis notes; "simulated" figures come from
tests/unit/verdict (test_engine, test_selection, test_memory), which keep them honest.
"""

from typing import Final

# -- intervals ---------------------------------------------------------------------------------

BATCHES: Final = 10
"""Batch means per window (diagnosis 5): waits are bursty and autocorrelated, so the standard error
of single steps is too small."""
Z90: Final = 1.83
"""Two-sided 90 % of Student's t with 9 degrees of freedom (diagnosis 5)."""
Z95: Final = 1.96
"""Two-sided 95 % of a normal distribution: Sen's interval of a slope."""

# -- window ------------------------------------------------------------------------------------

LEAST_STEPS: Final = 10
"""Before this many warm steps there is no verdict (diagnosis 2.5)."""
WINDOW_ROWS: Final = 100
"""Grown from 10 to 100 steps (diagnosis 5): flips fall from 36 to 1.6 per 1,000 steps."""
FAST_WINDOW_NS: Final = 5_000_000_000
"""Steps below 20 ms are windowed by time (diagnosis 5): a hundred of 2 ms are a blink."""

# -- warm-up -----------------------------------------------------------------------------------

WARMUP_STEPS: Final = 5
WARMUP_STEPS_COMPILING: Final = 10
"""Least steps left out, without and with a compilation among the first (diagnosis 2.7)."""
STABLE_STEPS: Final = 5
STABLE_WITHIN: Final = 0.15
"""Warm once this many consecutive steps lie this close to their median (diagnosis 2.7)."""
WARMUP_GIVE_UP: Final = 10
"""Steps after which an unsteady run counts as warm: a bursty loader never becomes stable and must
still have a verdict within 20 steps, 10 of which are the window."""
COMPILE_HORIZON: Final = 20
"""A compilation among the first steps is warm-up; a later one is a recompilation."""
COMPILE_SETTLES: Final = 2
"""Steps left out after the last compilation of the warm-up."""

# -- change points -----------------------------------------------------------------------------

CHANGE_ROWS: Final = 200
"""Rows looked at; a change further back has left the window of 100 anyway."""
CHANGE_BLOCK: Final = 5
"""Rows a block: its median ignores a burst of up to two steps in five."""
CHANGE_LEAST_STEPS: Final = 10
"""A shorter segment is no regime (diagnosis 5, Greyhound's validation)."""
CHANGE_LEAST: Final = 0.10
"""Change of the median step time worth a cut (diagnosis 5)."""
CHANGE_CUSUM: Final = 5.0
"""Height of the scaled CUSUM, in standard deviations. It is looked for every second, so far above
an ordinary 2. Simulated: no cut in steady runs, one per 1,000 steps in bursty and heavy-tailed
ones, a slow-down by 30 % found after 5 to 10 steps; 4 cuts a fifth more, 6 misses heavy tails."""
CHANGE_CLEAR: Final = 2.0
"""Rows of the new pace that lie on its side of the middle, less those on the old one's, in standard
deviations of a coin: 9 of the first 10. A flock of bursts lifts the median of ten rows and leaves
half of them where they were; without this, bursts cut the window 1 to 2 times in 1,000 steps
(simulated)."""
CHANGE_NOISE_FLOOR: Final = 0.01
"""Least spread of block medians of log time: equal steps would make every jitter a change."""

# -- entering, leaving, swapping ---------------------------------------------------------------

ENTER_SHARE: Final = 0.10
ENTER_LOW: Final = 0.05
"""A cause is "bound" when its share is above the first and its lower bound above the second
(diagnosis 2.5; 10 % is also TensorBoard's, TraceML's and MLPerf Storage's line)."""
ENTER_TIMES: Final = 2
LEAVE_SHARE: Final = 0.07
LEAVE_HIGH: Final = 0.10
LEAVE_SURELY: Final = 0.08
"""Leaves when (mean < 7 % and upper < 10 %) or upper < 8 % (diagnosis 5)…"""
LEAVE_TIMES: Final = 3
"""…three looks in a row…"""
LEAVE_RENEWED: Final = 0.5
"""…while this part of the window's steps was replaced by new ones: looks a second apart share most
of theirs. Flips of a bursty wait of 15 % fall from 3.0 to 0.9 per 1,000 steps of a second with it,
the first wrong "nothing wrong" among them (simulated). A cause that ends changes the pace, which
cuts the window and needs none of this."""
CONTRIBUTOR: Final = 0.05
"""From here on a cause is worth saying beside the headline (diagnosis 2.5)."""
SWAP_PROBABILITY: Final = 0.90
SWAP_TIMES: Final = 2
"""A new top takes the headline when it wins in 90 % of resamples, twice…"""
SWAP_RENEWED: Final = 1.0
"""…and goes on to until this part of the window's steps is new. Two equal causes in bursts took
turns 4 to 9 times in 1,000 steps with diagnosis 5's 80 % and without this, 0.8 times with 80 % and
0.4 times as it is (simulated)."""
SWAP_MARGIN: Final = 0.03
"""…and by three points of the step: two equal causes took turns 6 times in 1,000 steps without it
(simulated), because looks share most of their steps."""
SUB_TIMES: Final = 3
"""Looks in a row before the headline's sub changes: CPU shares of processes jitter."""
FRESH_SHRINK: Final = 0.5
"""A window that fell to less than half its rows was cut at a change: it is judged anew, without
the persistence that guards against jitter."""

DUE_STEPS: Final = 10
DUE_NS: Final = 9_000_000_000
"""A window of this much must answer: a verdict is due 20 steps or 10 s after training began,
whichever is later, and the warm-up takes up to 10 steps. Before, a cause that seems to hold 10 %
but may be chance is "not sure yet", not "nothing wrong"."""
QUIET_STEPS: Final = 30
"""Steps without a cause before "nothing wrong" may be said early: a wait that comes in one
step of eight is missed by 10 steps in one run of four, by 30 in one of fifty. What the counters of
a GPU show is said at once."""

# -- speed-up and severity -----------------------------------------------------------------------

LEAST_LEFT: Final = 0.01
"""A speed-up beyond 100 says nothing more."""
REPLAYED_ROWS: Final = 100
"""Newest rows that a forecast replays: as many as a window grows to. Short steps make more, which
tell nothing new, and a look a second must stay cheap: 1 to 4 ms a forecast."""
REPLAY_WITHIN: Final = 0.10
"""A replay with nothing removed that misses the measured step by more has not understood the run:
then there is a bound, and no estimate. Recordings from an H200 come within 2 %."""
JOINT: Final = 0.70
"""Two causes of which each alone gives this part of what both give hide each other (diagnosis 2.5,
rule 3): "either fix"."""
SYNC_SEEN: Final = 0.01
"""Samples on lines that wait for the GPU from which a forecast takes it that every step waits: a
`loss.item()` in each step of a launch-bound loop is short, and would not be once the launches were
gone. One in ten steps is rarely met by a sample."""
READY_ENOUGH: Final = 0.95
"""Batches that lie ready: below, a gain outside the loader is a bound (diagnosis 2.4)."""
FUSED_LEFT: Final = 1 / 15
"""What a fused optimizer leaves of the time of one that steps parameter by parameter. Adam launches
seven kernels for each, at 6 to 7 us a launch on an H200 (h200-facts.md): 45 us; fused, it walks the
list in Python, 2.6 us a parameter there (0.53 ms for 204 of them, recording launch_layers). Chosen
with recording optimizer_per_parameter known (43 us a parameter); no other has tested it."""
MOST_EVIDENCE: Final = 3
"""Pieces of evidence a finding: what a person reads before doing something."""
CRITICAL_SHARE: Final = 0.20
WARNING_SHARE: Final = 0.10
"""A fifth and a tenth of the time: TraceML's levels, which people know, and diagnosis 2.6."""

# -- confidence --------------------------------------------------------------------------------

EVIDENCE_HOST_ONLY_ON_GPU: Final = 0.6
EVIDENCE_NO_STACKS: Final = 0.9
"""Factors of diagnosis 5."""
EVIDENCE_NO_LOADER: Final = 0.8
"""Nobody saw a fetch, so a wait hides in another phase."""
EVIDENCE_OTHERS_UNKNOWN: Final = 0.8
"""Others are on the GPU and nobody tells what they use of it: the counters are the device's, not
the run's (diagnosis 2.7)."""
ATTRIBUTED: Final = 0.90
"""Below, the time is "unattributed" (diagnosis 2.5)."""

MISSED: Final = 3.0
"""The rule of three: what did not come in n steps comes in fewer than 3 of n, for 95 % sure."""
MOST_CONFIDENT: Final = 0.99
"""Nothing that is measured from outside is certain."""

# -- input -------------------------------------------------------------------------------------

LEAST_STACKS: Final = 20
"""Fewer samples name a frame by chance: 20 give ±11 points at 50 %."""
WORKER_HEADROOM: Final = 1.2
"""W* = ceil(1.2 S / P_other) (diagnosis 3, D5)."""
WORKER_CPU_BOUND: Final = 85.0
WORKER_CPU_WAITS: Final = 50.0
"""Percent of a core a worker uses: above, it computes; below, it waits (diagnosis 2.6)."""
READ_SHARE: Final = 0.30
"""Part of the busy moments in a read or in state D from which waiting is called storage."""
READ_BYTES_S: Final = 1024 * 1024
"""Without stacks, workers that are idle and read this much are taken to wait for it."""
MACHINE_FULL: Final = 90.0
"""Percent of all cores: above, a worker's low CPU is a queue for a core, not a wait for a disk."""
OVERSUBSCRIBED: Final = 1.5
"""Workers per core (diagnosis 2.6, D6)."""
QUEUES: Final = 0.25
"""Part of its busy time in which a worker waits for a core, from which they are too many: 1.5 of
them on one core wait for a third of it."""
STORAGE_WORKERS_PER_CORE: Final = 4
"""Workers that only wait may outnumber the cores (diagnosis 2.6: 2 to 4)."""
MOST_WORKERS: Final = 64
"""No number beyond this is advised, whatever the model says."""
MOST_PREFETCH: Final = 8
"""Every prefetched batch is memory in each worker."""
OTHERS_USE: Final = 0.25
"""Part of the machine that other processes use and that is worth a word: figures of a shared
machine change with its neighbours."""
WORTH_DOING: Final = 0.10
"""More workers are advised when they give at least this; else "will not help"."""
NEAR_BEST: Final = 0.05
"""The smallest number of workers this close to the best one is advised."""
BURST_BUSY: Final = 0.90
"""Workers busy for less than this while the training waits: they fall behind in bursts
(diagnosis 2.6: S/W < 0.9 P)."""
BURST_MASS: Final = 0.80
BURST_STEPS: Final = 0.15
"""A burst: 80 % of the wait in at most 15 % of the steps."""

# -- the GPU's clock -----------------------------------------------------------------------------

LEAST_GPU_STEPS: Final = 5
"""Measured steps before the GPU's clock speaks for the window; the host's may be twice as many."""
GPU_CLOCK_DUE_NS: Final = 10_000_000_000
"""So long a window waits for the GPU's clock before the host's speaks alone: a GPU that runs a
second behind tells its steps a second late, and until then a hidden wait looks like a real one."""
CAUGHT_UP_NS: Final = 50_000
CAUGHT_UP_SHARE: Final = 0.01
"""Lag at which the GPU has caught up: tau = max(50 us, 1 % of the step) (diagnosis 2.3). Measured
on an H200: 9 to 30 us in launch-bound loops, milliseconds to seconds in others."""
CAUGHT_UP_STEPS: Final = 0.80
"""…in at least this part of the steps (diagnosis 2.6)."""
LAG_UNCERTAIN: Final = 0.5
"""Part of tau that the alignment may leave open. Diagnosis 2.2 says 20 %; on an H200 9 to 16 us of
50 are open all the time, while the two kinds of run lie a factor of a hundred apart."""
LAUNCH_BUSY: Final = 0.80
"""A GPU that is busy for more is not waiting for launches (diagnosis 2.6)."""

LOOP_SHARE: Final = 0.5
"""A function of the user's own in which this part of the launches is issued holds a loop: a net
spreads them over its modules."""
HIDDEN_WORTH: Final = 0.05
"""A hidden wait of this part of the step is said beside the exposed one."""

# -- what a busy GPU is busy with (diagnosis 2.6; figures of one H200 in h200-facts) ---------------

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

MISALIGNED_TENSOR: Final = 0.30
"""Tensor cores active for 10 to 30 % of the busy time (diagnosis 2.6)…"""
MISALIGNED_SM: Final = 0.80
MISALIGNED_FP32: Final = 0.15
"""…while the multiprocessors are full and do little else. A choice, not yet measured: products
that fit read 96 % here with 93 % on the tensor cores, pure fp32 ones 77 % on the fp32 units."""

MEMORY_FULL: Final = 0.92
"""Part of the device's memory from which it counts as full (diagnosis 3, C14): the rest goes in
fragments and in what libraries take."""
MOST_TIMES_LARGER: Final = 8
"""No batch beyond this many times the present one is advised: learning rates do not follow."""

FEW_TENSORS: Final = 64
LARGE_TENSOR: Final = 16 * 1024 * 1024
"""Few parameters that are this large on average are embeddings: a net of as many tensors without
one holds a few MiB in each."""

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
"""What a line says on which the training thread may wait for the GPU (hooks.md 10). A line alone
proves nothing: many samples on it do."""
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
"""Rates over PCIe that copies alone reached on an H200 (h200-facts.md): the share of the time that
copies hold is the rate that is read over the rate they can have."""
COPY_LEAST_MB_S: Final = 400.0
"""Launching tiny kernels alone reads 50 to 200 MB/s."""
TINY_COPY_BYTES: Final = 64 * 1024
TINY_COPIES: Final = 64
"""Many tiny copies: at least so many tensors a batch, smaller than this (diagnosis 2.6)."""
RECOMPILES: Final = 3
RECOMPILE_STEPS: Final = 200
"""Recompiling: at least 3 in 200 steps (diagnosis 2.7)."""
EVENTS_IN_WINDOW: Final = 3
"""Checkpoints or evaluations needed for the window to speak for them; else all recent steps do."""
MID_EPOCH: Final = 0.8
"""Evaluations closer together than this part of an epoch do not mark its end."""
LONG_PAUSE_NS: Final = 30_000_000_000
"""One checkpoint of this length is worth saying however rare it is (diagnosis 2.6)."""
TARGET_BUDGET: Final = 0.02
"""Advice for checkpoints and evaluations: as often as costs this share."""

STARVED_EXPLAINS: Final = 0.5
"""Waiting for a core that makes half of the GPU's wait for launches is what to mend first: fewer
kernels would still be launched by a thread that has no core."""
THROTTLED_READINGS: Final = 0.10
"""Part of the readings with a reason to run below the clock (diagnosis 2.6)."""

OUTLIER_MADS: Final = 6 * 1.4826
OUTLIER_LEAST: Final = 0.5
"""A step that takes longer than the median by 6 standard deviations (of a median absolute
deviation) and by half of itself is one that something has held up (diagnosis 2.6)."""
OUTLIER_ALONE: Final = 0.8
"""…and no longer batch, whose backward is longer too: so much of it lies outside the backward and
the optimizer."""
OUTLIER_RUN: Final = 2
"""More long steps in a row than this are a slower pace, and no event."""
HOST_ALIKE: Final = 0.8
"""Two views of the host's time this close to each other are views of the same."""
ASLEEP_AWAKE: Final = 0.5
"""A thread that sleeps for half of the GPU's wait for launches is not what launches too slowly."""

# -- notes -------------------------------------------------------------------------------------

NOTE_SHARE: Final = 0.01
"""Less of the time, or of the samples, is no cost worth a line: of the 200 samples of a window it
is two, and one may meet a line that runs once an epoch."""
NOTE_LEAVE_TIMES: Final = 5
"""Looks in a row without its reason before a note goes: costs near the line above cross it with
every sample, and a line that comes and goes moves what stands below it."""
NOTE_FP32: Final = 0.10
"""fp32 units at work for less are pointwise kernels: one that does nothing else reads 2 % on an
H200 (h200-facts), a product 77 %."""
NOTE_TENSORS: Final = 50
"""Tensors from which updating them one by one is many launches: a dozen each is 600 a step, 4 ms at
the 7 us of a launch."""
NOTE_MEMORY_LEFT: Final = 0.05
"""Part of what a process could grow to that is still free: below, the next allocation of a batch's
size may be the last."""
TF32_CAPABILITY: Final = 80
"""Ampere, the first with tf32 and bfloat16 in its tensor cores."""

# -- stalled -----------------------------------------------------------------------------------

STALL_S: Final = 10.0
STALL_STEPS: Final = 10.0
"""Nothing for 10 s and 10 times the 95th percentile of a step."""
STALL_KNOWN_STEPS: Final = 5
STALL_FIRST_S: Final = 120.0
"""While fewer steps are known: the first may choose kernels, fetch weights, compile."""
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

# -- memory growth (diagnosis 4) ---------------------------------------------------------------

MEMORY_BLOCKS: Final = 12
MEMORY_BLOCK_STEPS: Final = 25
MEMORY_STEPS: Final = MEMORY_BLOCKS * MEMORY_BLOCK_STEPS
"""Block minima: what is low between the peaks. Mann-Kendall on peaks raises false alarms in
69-100 % of healthy runs."""
LEAST_BLOCKS: Final = 8
"""Points may lie further apart than 25 steps: 8 is the fewest for which Mann-Kendall reaches 3."""
COARSE_STEPS: Final = 100
COARSE: Final = 2
"""Where 300 steps are lost in noise, as of batches that differ much in length, blocks of 100 steps
may show it, or of twice as many as points lie apart."""
SPARE_BLOCKS: Final = 2
"""Of ten; training under other load lost its growth again and again without them (measured)."""
SPACING_POINTS: Final = 50
"""Points that tell how far apart they lie."""
MEMORY_Z: Final = 3.0
"""Each look is a new test: hence not the 2.3 of p < 0.01, and three looks in a row."""
MEMORY_RISING: Final = 0.80
MEMORY_FALL: Final = 0.25
"""Four steps of five do not fall, by more than a quarter of the mean rise of one: memory that grows
every other block (20 MB every 50 steps) stays level between, give or take its noise."""
MEMORY_JUMP: Final = 0.50
"""A single step up that makes half of the rise is an allocation, not growth."""
MEMORY_LEAST_RISE: Final = 16 * 1024 * 1024
MEMORY_BENDS: Final = 0.5
"""The second half must rise at least half as fast as the first: a cache that fills does not."""
MEMORY_TIMES: Final = 3
MEMORY_RETEST_STEPS: Final = 25
MEMORY_RETEST_SHARE: Final = 8
"""Tested again every 25 steps, and while fewer are known every eighth of them."""
EARLY_STEPS: Final = 50
EARLY_RISE: Final = 64 * 1024 * 1024
EVEN_BENDS: Final = 0.8
"""12 blocks of 25 steps may take minutes, of long steps hours. Growth is said on 8 points over 50
steps if it is four times as large and goes on at an even pace."""
LEAK_Z: Final = 4.0
LEAK_STEPS: Final = 4 * MEMORY_STEPS
LEAK_LEAST_BLOCKS: Final = 24
"""Confirmed: the same at four times the span (three times where points are few)…"""
LEAK_EVEN: Final = (0.8, 1.5)
"""…with the slope of the last quarter over that of the whole in this range…"""
LEAK_BENDS: Final = 0.7
"""…whose halves rise evenly: the slopes of a cache's last steps and of those before it are alike in
noise…"""
LEAK_JUMP: Final = 0.30
URGENT_STEPS: Final = 600
URGENT_SPANS: Final = 2.0
"""…or memory that is full within this many steps, and within twice the span that the growth was
seen over: a straight line is not drawn further on less."""
URGENT_HOURS: Final = 24.0
"""Severity critical: before the end of a day."""
EPOCH_FLOORS: Final = 3
"""A leak is left standing behind two epochs in a row: the floors of three are compared…"""
FLOOR_STEPS: Final = MEMORY_STEPS
"""…of short epochs those that lie this far apart; blocks see through those that are shorter…"""
FLOOR_RISES: Final = 0.5
"""…and rise at least half as fast as the memory between them."""
DROP: Final = 0.5
"""Memory that falls by half of what it had risen was given back, and what it rose to then is no
news the next time."""
DROP_BLOCKS: Final = 400
"""Blocks that drops, and the onset, are looked for in: 10,000 steps."""
ONSET_BLOCKS: Final = 4
"""Least blocks on either side of the step where growth began…"""
ONSET_BEFORE: Final = 0.5
"""…and it grew at most half as fast before."""
ONSET_MOST: Final = 2.0
"""Times the growth's own pace: what a block counts at most, so that no single jump is an onset."""
EVENT_RISE: Final = 0.8
EVENT_BLOCKS: Final = 0.6
"""Growth belongs to events when four fifths of it come with them, in 3 of 5 blocks at most."""
ONE_TENSOR: Final = 0.1
"""Tensors more a step: below this their number does not grow."""
GRAPH_TENSORS: Final = 4.0
"""A graph that is kept keeps the activations of several layers; a list of results keeps one or two
tensors a step."""
COUNTED_POINTS: Final = 60
"""Newest readings that tell how many tensors stay."""
ALIKE: Final = 0.5
"""Workers grow alike when the least has grown by half of the most."""
SPLIT_SHARE: Final = 0.20
SPLIT_ALLOCS: Final = 0.1
"""Fragmented: a fifth of what is reserved lies in pieces, and the device is asked once in ten steps
after the warm-up, or the cache had to be emptied (diagnosis 4)."""

# -- nothing wrong -----------------------------------------------------------------------------

MOST_OF_IT: Final = 0.5
"""The net is called the limit from half of the time on."""
IDLE_CORES: Final = 0.5
"""A CPU training that leaves half of its cores idle may have been given too few threads."""

# -- memory of past verdicts -------------------------------------------------------------------

TIMELINE_LEAST_NS: Final = 5_000_000_000
"""A verdict that held for less is no entry of its own: five looks, of which the hysteresis takes
two or three, are a moment and no state of the run."""
TIMELINE_MOST: Final = 50
"""Entries kept: more than a person reads, and a last JSON line of 10 kB. The account by kind is
exact without them."""
