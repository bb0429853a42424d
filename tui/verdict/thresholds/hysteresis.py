"""When a cause holds the headline, how much it is worth, how sure that is."""

from typing import Final

# Entering, leaving, swapping.

ENTER_SHARE: Final = 0.10
ENTER_LOW: Final = 0.05
"""A cause is "bound" when its share is above the first and its lower bound above the second
(10 % is also TensorBoard's, TraceML's and MLPerf Storage's line)."""
ENTER_TIMES: Final = 2
LEAVE_SHARE: Final = 0.07
LEAVE_HIGH: Final = 0.10
LEAVE_SURELY: Final = 0.08
"""Leaves when (mean < 7 % and upper < 10 %) or upper < 8 %…"""
LEAVE_TIMES: Final = 3
"""…three judgements in a row…"""
LEAVE_RENEWED: Final = 0.5
"""…while this part of the window's steps was replaced by new ones: windows a second apart share
most of their steps. Flips of a bursty wait of 15 % fall from 3.0 to 0.9 per 1,000 steps of a second
with it, the first wrong "nothing wrong" among them (simulated). A cause that ends changes the pace,
which cuts the window and needs none of this."""
CONTRIBUTOR: Final = 0.05
"""From here on a cause is mentioned beside the headline."""
SWAP_PROBABILITY: Final = 0.90
SWAP_TIMES: Final = 2
"""A new top takes the headline when it wins in 90 % of resamples, twice…"""
SWAP_RENEWED: Final = 1.0
"""…and goes on to until this part of the window's steps is new. Two equal causes in bursts took
turns 4 to 9 times in 1,000 steps with 80 % of resamples and without this, 0.8 times with 80 % and
0.4 times as it is (simulated)."""
SWAP_SURELY: Final = 0.999
SWAP_SURELY_TIMES: Final = 2.0
SWAP_SURELY_RENEWED: Final = 0.1
"""…but where it is worth twice as much in all but one of 1,000 resamples, two windows with so much
that is new are enough: steps of 0.3 s take half a minute to renew a window, in which somebody who
trains for re-identification was told of evaluation (10 %, 1.17x), beside epochs' starts of 44 %
(1.6x). Two equal causes in bursts still take turns less than 0.5 times in 1,000 steps (simulated;
0.7 times in all but one of 100 resamples)."""
SWAP_ANEW: Final = 0.80
"""…and at once where all is judged anew (twice the samples, a change of pace) when it wins in 80 %,
by more than one standard error, or when what the headline was chosen for is gone. What is within
the noise of a choice is no reason to make it again."""
SWAP_MARGIN: Final = 0.03
"""…and by three points of the step: two equal causes took turns 6 times in 1,000 steps without it
(simulated), because windows share most of their steps."""
SUB_TIMES: Final = 3
"""Looks in a row before the headline's sub changes: CPU shares of processes jitter."""
SAMPLES_ANEW: Final = 1.9
"""Times the stack samples on which the headline was chosen, from which it is chosen anew: chunks of
py-spy's have 18 or 19. Of 67 runs on H200s as they were watched for 8 to 12 s, 514 of 571 looks
were right with it and a first verdict at 15 samples, 476 of 565 with one at 20 that was kept."""
FRESH_SHRINK: Final = 0.5
"""A window that fell to less than half its rows was cut at a change: it is judged anew, without
the persistence that guards against jitter."""

DUE_NS: Final = 9_000_000_000
"""A window of this much must answer: a verdict is due 20 steps or 10 s after training began,
whichever is later, and the warm-up takes up to 10 steps. Before, a cause that seems to hold 10 %
but may be chance is "not sure yet", not "nothing wrong"."""
QUIET_STEPS: Final = 30
"""Steps without a cause before "nothing wrong" may be reported early: a wait that comes in one
step of eight is missed by 10 steps in one run of four, by 30 in one of fifty. What the counters of
a GPU show is reported at once."""

# Speed-up and severity.

LEAST_LEFT: Final = 0.01
"""A speed-up beyond 100 carries no more information."""
REPLAYED_ROWS: Final = 100
"""Newest rows that a forecast replays: as many as a window grows to. Short steps make more, which
add nothing new, and a judgement per second must stay cheap: 1 to 4 ms a forecast."""
REPLAY_WITHIN: Final = 0.10
"""A replay with nothing removed that misses the measured step by more has not understood the run:
then there is a bound, and no estimate. Recordings from an H200 come within 2 %."""
JOINT: Final = 0.70
"""Two causes of which each alone gives this part of what both give hide each other: "either
fix"."""
SYNC_SEEN: Final = 0.01
"""Samples on lines that wait for the GPU from which a forecast takes it that every step waits: a
`loss.item()` in each step of a launch-bound loop is short, and would not be without the
launches. One in ten steps is rarely met by a sample."""
READY_ENOUGH: Final = 0.95
"""Batches that lie ready: below, a gain outside the loader is a bound."""
FUSED_LEFT: Final = 1 / 15
"""What a fused optimizer leaves of the time of one that steps parameter by parameter. Adam launches
seven kernels for each, at 6 to 7 us a launch on an H200: 45 us; fused, it walks the
list in Python, 2.6 us a parameter there (0.53 ms for 204 of them, recording launch_layers). Chosen
with recording optimizer_per_parameter known (43 us a parameter); no other has tested it."""
UPDATE_SAVES: Final = 0.5
"""What a fix gives back of an optimizer's share, where no replay knows: its update is part of
training and gets cheaper (fused, sparse, rarer), while a checkpoint or a wait can go altogether.
Fused AdamW left 10 to 33 % of the default on a CPU; on a GPU the default is foreach already."""
MOST_EVIDENCE: Final = 3
"""Pieces of evidence a finding: what a person reads before doing something."""
CRITICAL_SHARE: Final = 0.20
WARNING_SHARE: Final = 0.10
"""A fifth and a tenth of the time: TraceML's levels, which people know."""

# Confidence.

EVIDENCE_HOST_ONLY_ON_GPU: Final = 0.6
EVIDENCE_NO_STACKS: Final = 0.9
"""Of how sure a verdict is, without the GPU's clock and without stacks…"""
EVIDENCE_NO_STACKS_ON_GPU: Final = 0.82
"""…where a GPU waits for a host of which only samples show what it does: of 48 generated runs on
H200s whose first verdict came before them, 0.9 sure, 40 were right, of the even seeds 12 of 14 and
of the odd ones 28 of 34: by the rule of succession 0.82."""
EVIDENCE_NO_LOADER: Final = 0.8
"""Nobody saw a fetch, so a wait hides in another phase."""
UNSEEN: Final = 0.2
"""Unless samples exclude it: the chance that such a wait holds a cause's share is below what swaps
a verdict (`SWAP_SURE`). One sample of 38 that fetches leaves 7 %, three of 38 leave 33 %."""
EVIDENCE_OTHERS_UNKNOWN: Final = 0.8
"""Others are on the GPU and their use of it is unknown: the counters are the device's, not
the run's."""
ATTRIBUTED: Final = 0.90
"""Below, the time is "unattributed"."""

LEAST_SURE: Final = 0.5
"""Below, the headline names what it may be instead of one of it…"""
SURE_AGAIN: Final = 0.6
"""…until it is this sure again…"""
SURE_LOOKS: Final = 3
"""…as a mean over so many windows, one of which crosses a line by chance; and once there is a
headline only when as much of the window is new as for a swap: of two equal causes in bursts each
is now and then the smaller for half a window."""
MISSED: Final = 3.0
"""The rule of three: what did not come in n steps comes in fewer than 3 of n, for 95 % sure."""
MOST_CONFIDENT: Final = 0.97
"""However sure the samples are, the rules may be wrong of a run. On one half of the recordings
whose truth is known (names by hash) all 27 were right where one was 90 % sure and more: by the
rule of succession 0.97. `demo/evaluate.py OUT --reliability` prints both halves."""

# Memory of past verdicts.

TIMELINE_LEAST_NS: Final = 5_000_000_000
"""A verdict that held for less is no entry of its own: five judgements, of which the hysteresis
takes two or three, are a moment and no state of the run."""
TIMELINE_MOST: Final = 50
"""Entries kept: more than a person reads, and a last JSON line of 10 kB. The account by kind is
exact without them."""


# Intervals.

BATCHES: Final = 10
"""Batch means per window: waits are bursty and autocorrelated, so the standard error of
single steps is too small."""
Z90: Final = 1.83
"""Two-sided 90 % of Student's t with 9 degrees of freedom."""
Z90_FEW: Final = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, Z90)
"""The same with 1 to 9 degrees: of fewer batches."""
Z90_MANY: Final = 1.645
"""Two-sided 90 % of a normal distribution: of many samples."""
Z95: Final = 1.96
"""Two-sided 95 % of a normal distribution: Sen's interval of a slope."""

# Window.

LEAST_STEPS: Final = 10
LEAST_LONG_STEPS: Final = 3
LONG_WINDOW_NS: Final = 4_000_000_000
"""Before this many warm steps there is no verdict; of long ones a few are enough once they have
lasted so long. How well three are known is for their interval (Student's t with 2 degrees of
freedom: 1.6 times as wide as of ten)."""
WINDOW_ROWS: Final = 100
"""Grown from 10 to 100 steps: flips fall from 36 to 1.6 per 1,000 steps."""
FAST_WINDOW_NS: Final = 5_000_000_000
"""Steps below 20 ms are windowed by time: a hundred of 2 ms are a blink."""

# Warm-up.

WARMUP_STEPS: Final = 5
WARMUP_STEPS_COMPILING: Final = 10
"""Least steps left out, without and with a compilation among the first."""
STABLE_STEPS: Final = 5
STABLE_WITHIN: Final = 0.15
"""Warm once this many consecutive steps lie this close to their median."""
WARMUP_GIVE_UP: Final = 10
"""Steps after which an unsteady run counts as warm: a bursty loader never becomes stable and must
still have a verdict within 20 steps, 10 of which are the window."""
WARMUP_GIVE_UP_NS: Final = 2_000_000_000
WARMUP_LEAST: Final = 2
"""…or after so long, and at least two steps: what makes first steps slow (memory from the device,
the choice of kernels, the optimizer's state) comes once, however long a step is."""
FIRST_USE: Final = 10.0
FIRST_USE_NS: Final = 300_000_000
"""One of those whose net takes so many times as long as in others, and so long, uses a part of it
for the first time (StarGAN trains its generator in each fifth step: on an H200 2.8 s the first
time, 33 ms then): the warm-up lasts until behind it."""
COMPILE_HORIZON: Final = 20
"""A compilation among the first steps is warm-up; a later one is a recompilation."""
COMPILE_SETTLES: Final = 2
"""Steps left out after the last compilation of the warm-up."""

# Change points.

CHANGE_ROWS: Final = 200
"""Rows searched; a change further back has left the window of 100 anyway."""
CHANGE_BLOCK: Final = 5
"""Rows a block: its median ignores a burst of up to two steps in five."""
CHANGE_LEAST_STEPS: Final = 10
"""A shorter segment is no regime (Greyhound's validation)."""
CHANGE_LEAST: Final = 0.10
"""Change of the median step time worth a cut."""
CHANGE_CUSUM: Final = 5.0
"""Height of the scaled CUSUM, in standard deviations. The search runs every second, so far above
an ordinary 2. Simulated: no cut in steady runs, one per 1,000 steps in bursty and heavy-tailed
ones, a slow-down by 30 % found after 5 to 10 steps; 4 cuts a fifth more, 6 misses heavy tails."""
CHANGE_CLEAR: Final = 2.0
"""Rows of the new pace that lie on its side of the middle, less those on the old one's, in standard
deviations of a coin: 9 of the first 10. A flock of bursts lifts the median of ten rows and leaves
half of them where they were; without this, bursts cut the window 1 to 2 times in 1,000 steps
(simulated)."""
CHANGE_NOISE_FLOOR: Final = 0.01
"""Least spread of block medians of log time: equal steps would make every jitter a change."""
