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
"""…three looks in a row."""
CONTRIBUTOR: Final = 0.05
"""From here on a cause is worth saying beside the headline (diagnosis 2.5)."""
SWAP_PROBABILITY: Final = 0.80
SWAP_TIMES: Final = 2
"""A new top takes the headline when it wins in 80 % of resamples, twice (diagnosis 5)."""
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

# -- speed-up and severity -----------------------------------------------------------------------

LEAST_LEFT: Final = 0.01
"""A speed-up beyond 100 says nothing more."""
CRITICAL_SHARE: Final = 0.20
WARNING_SHARE: Final = 0.10
"""A fifth and a tenth of the time: TraceML's levels, which people know, and diagnosis 2.6."""

# -- confidence --------------------------------------------------------------------------------

EVIDENCE_HOST_ONLY_ON_GPU: Final = 0.6
EVIDENCE_NO_STACKS: Final = 0.9
"""Factors of diagnosis 5."""
EVIDENCE_NO_LOADER: Final = 0.8
"""Nobody saw a fetch, so a wait hides in another phase."""
ATTRIBUTED: Final = 0.90
"""Below, the time is "unattributed" (diagnosis 2.5)."""

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
PRECISION_RATIO: Final = 6.0
"""tf32 or bf16 over fp32 for the products themselves: an 8192 product on an H200 gave 7 to 15, a
whole net 6.4."""
DRAM_HEAVY: Final = 0.60
DRAM_FULL: Final = 0.88
"""What a pure pointwise kernel reads on an H200: memory is the limit from two thirds of that on."""
FUSION_RATIO: Final = 2.0
"""Bytes that fusing a chain of pointwise kernels saves, at least: each kernel in the middle reads
and writes what the next reads again. 24 of them gave 2.0 for the whole step."""
UNDERFILLED_SM: Final = 0.50
UNDERFILLED_DRAM: Final = 0.40
UNDERFILLED_TENSOR: Final = 0.25
"""All below: kernels run all the time, and none fills the device."""

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
"""Block minima: what is low between the peaks. Mann-Kendall on peaks raises false alarms in
69-100 % of healthy runs."""
MEMORY_Z: Final = 3.0
MEMORY_RISING: Final = 0.80
MEMORY_JUMP: Final = 0.50
"""A single step up that makes half of the rise is an allocation, not growth."""
MEMORY_LEAST_RISE: Final = 16 * 1024 * 1024
MEMORY_BENDS: Final = 0.5
"""The second half must rise at least half as fast as the first: a cache that fills does not."""
MEMORY_TIMES: Final = 3
EARLY_POINTS: Final = 8
EARLY_STEPS: Final = 50
EARLY_RISE: Final = 64 * 1024 * 1024
EARLY_BENDS: Final = 0.8
"""Host memory is looked at once a second, so 12 blocks of 25 steps may take minutes. Growth is said
on 8 points, the fewest for which Mann-Kendall can reach 3, if it is four times as large and goes on
at an even pace."""
LEAK_Z: Final = 4.0
LEAK_SPAN: Final = 4
"""Confirmed: the same at four times the span…"""
LEAK_EVEN: Final = (0.8, 1.5)
"""…with the slope of the last quarter over that of the whole in this range…"""
LEAK_JUMP: Final = 0.30
URGENT_STEPS: Final = 600
"""…or memory that is full within this many steps."""
URGENT_HOURS: Final = 24.0
"""Severity critical: before the end of a day."""

# -- nothing wrong -----------------------------------------------------------------------------

MOST_OF_IT: Final = 0.5
"""The net is called the limit from half of the time on."""
IDLE_CORES: Final = 0.5
"""A CPU training that leaves half of its cores idle may have been given too few threads."""
