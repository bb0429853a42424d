"""Ranks of one job: when one is late, and when none is."""

from typing import Final

LEAST_LATE: Final = 0.05
"""Of the time that the others wait: below, it is not mentioned (as any contributor)."""
LATE_STEP: Final = 0.02
"""Of a step that the others wait for the last from which it counts as late in that step: on two
H200s an exchange of balanced ranks differs by 0.01 ms of 0.3 at the mean."""
MOSTLY: Final = 2 / 3
"""Of all waits for late ranks, what one rank must hold to be named. Where ranks take turns (samples
of random length) each of two holds half: two thirds lie 3 standard errors off after 80 steps."""
BY_CHANCE: Final = 0.001
"""How likely it may be that ranks which are late at random make one of them the last so often:
ten steps of ten between two ranks."""
ASKED_AGAIN: Final = 10
"""By so much less likely it must be in the steps that cost most, which are asked as well: both
together are wrong in 0.0011 of all cases at the most (Bonferroni's inequality)."""
PAUSES: Final = 2
"""Late steps that suffice where the rank's own marks show why: a checkpoint comes seldom."""
TURNS: Final = 10
"""Late steps from which "they take turns" is reported."""
EXPLAINS: Final = 0.5
"""Of the lost time, what a phase of the late rank must hold beyond the others' to be its cause."""

LATE_BY: Final = 0.1
"""Where there are phases alone: a rank is late when it leads the others by this part of a step."""
ALIKE: Final = 0.7
"""A surer phase that holds this part of the most that a rank lost is the one that is named."""
COMPUTES_LESS: Final = 0.1
"""By so much a rank's forward is shorter than the others', where they do not have the same work."""

NCCL_SM: Final = 0.18
"""Multiprocessors that NCCL's kernels keep active, as GPM reads them on an H200."""
SMALL_BUCKET_BYTES: Final = 1 << 20
"""PyTorch's own first bucket; below, a collective takes its latency and not its bytes' time."""
MANY_COLLECTIVES: Final = 8
"""A step, of such a size, from which larger buckets would help."""
AT_BEST: Final = 0.7
"""Part of the transfer that is left at the collectives' own best rate, from which the links are
what holds it up: below, most of what is lost is not bytes."""
STRETCHED: Final = 0.5
"""…below which ranks elsewhere, where there are any, are waited for in what looks like transfer."""
SAMPLE_AS_LONG: Final = 0.8
"""Of a step, what an iteration that DistributedDataParallel timed must take to be one like it: on
two H200s 0.96 of a step; 0.54 where it was timed before a neighbour came."""
SAMPLE_OF_WARM_UP: Final = 2.0
"""…and of how many steps' time it is none of them: DistributedDataParallel times its first
iterations, where kernels are chosen and memory is asked for, and then every hundredth."""
FEWEST_LEADS: Final = 30
"""Pairs of successive steps that show whether a host's lead is carried on: of 20 a random walk has
the ratio below by chance in one of eleven, of 30 in one of thirty, of 60 never in 2,000."""
LEADS_ANEW: Final = 1.0
LEADS_ANEW_BY_MEDIANS: Final = 0.5
"""Von Neumann's ratio from which it is not, and that of medians: independent leads have 2 of both,
less in one of twenty and of five hundred series of 30. Of hosts that never wait the second was 0.3
at the most in recordings on two H200s, where they have so many; where they wait 0.6 and 2.4."""
LATELY: Final = 20
"""Late steps that show how late a rank comes now."""
AS_LATE: Final = 0.5
"""Of how late it comes now, and of how often, from which it counts as the same."""
LATE_LEAST_STEPS: Final = 10
"""On both sides of a change in how often a rank is late (Greyhound's validation, as for a change of
pace)."""
CHANGED_BY_CHANCE: Final = 1e-5
"""How likely such a change may be where there is none: collectives come every 3 s at the most, so
less than one in 80 hours."""
PRESENT_NS: Final = 10_000_000_000
"""Once a change is so old, steps before it are judged no more: ranks' phases are then means of what
came since. A host that others use makes one rank the last for some seconds now and then (gloo, four
ranks on two busy cores: 16 of 26 steps of a job whose ranks take turns)."""
ALWAYS_LATE: Final = 0.9
"""Part of the steps beyond which a rank that is late in them needs no rhythm."""
ALWAYS_PRESENT_NS: Final = 3_000_000_000
"""The same of a change to a rank that is late in so many: two readings of collectives show it."""
IN_RHYTHM: Final = 0.1
"""Of the median pause between two late steps, by which one in rhythm may differ."""
RHYTHMIC: Final = 2 / 3
"""Part of all pauses that must be in rhythm."""
NO_RHYTHM: Final = 3
"""Pauses in one, without a late step, from which the rhythm began behind it."""
MOST_PAUSES: Final = 200
"""The newest, of which the rhythm is judged."""
DATED_WITHIN: Final = 5
"""Steps between the last that was known before and the first late one, up to which one is named."""
MOST_HISTORY: Final = 4_096
"""Steps that tell since when a rank is late. Beyond, every second of the older half is left out."""
KEPT_NS: Final = 30_000_000_000
"""Steps of so long are judged: their collectives come every 3 to 30 s."""
KEPT_STEPS: Final = 20
"""…or so many, where they are longer…"""
MOST_STEPS: Final = 2_000
"""…and no more than these."""
READ_NS: Final = 10_000_000_000
"""From the first look at a job until its collectives are known: timing is switched on first, and
the rank that answers last has to end its step; 1.2 to 7.8 s on two H200s."""
STALE_NS: Final = 45_000_000_000
"""Without new collectives for so long nothing is claimed of them."""
OUTLIER_Z: Final = 3.5
"""Modified z-score from which a rank differs: Iglewicz and Hoaglin, How to Detect and Handle
Outliers (1993)."""
