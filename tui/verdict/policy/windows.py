"""Which steps speak for the run now, and the intervals of what they say."""

from typing import Final

# -- intervals ---------------------------------------------------------------------------------

BATCHES: Final = 10
"""Batch means per window: waits are bursty and autocorrelated, so the standard error of
single steps is too small."""
Z90: Final = 1.83
"""Two-sided 90 % of Student's t with 9 degrees of freedom."""
Z95: Final = 1.96
"""Two-sided 95 % of a normal distribution: Sen's interval of a slope."""

# -- window ------------------------------------------------------------------------------------

LEAST_STEPS: Final = 10
"""Before this many warm steps there is no verdict."""
WINDOW_ROWS: Final = 100
"""Grown from 10 to 100 steps: flips fall from 36 to 1.6 per 1,000 steps."""
FAST_WINDOW_NS: Final = 5_000_000_000
"""Steps below 20 ms are windowed by time: a hundred of 2 ms are a blink."""

# -- warm-up -----------------------------------------------------------------------------------

WARMUP_STEPS: Final = 5
WARMUP_STEPS_COMPILING: Final = 10
"""Least steps left out, without and with a compilation among the first."""
STABLE_STEPS: Final = 5
STABLE_WITHIN: Final = 0.15
"""Warm once this many consecutive steps lie this close to their median."""
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
"""A shorter segment is no regime (Greyhound's validation)."""
CHANGE_LEAST: Final = 0.10
"""Change of the median step time worth a cut."""
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
