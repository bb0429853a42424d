"""Memory that grows."""

from typing import Final

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
"""Points that determine their spacing."""
MEMORY_Z: Final = 3.0
"""Each judgement is a new test: hence not the 2.3 of p < 0.01, and three in a row."""
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
"""12 blocks of 25 steps may take minutes, of long steps hours. Growth is reported on 8 points over
50 steps if it is four times as large and goes on at an even pace."""
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
AT_ONCE_HOURS: Final = 1.0
"""Within this time it is in the same headline as the growth."""
EPOCH_FLOORS: Final = 3
"""A leak remains after two epochs in a row: the floors of three are compared…"""
FLOOR_STEPS: Final = MEMORY_STEPS
"""…of short epochs those that lie this far apart; blocks see through those that are shorter…"""
FLOOR_RISES: Final = 0.5
"""…and rise at least half as fast as the memory between them."""
DROP: Final = 0.5
"""Memory that falls by half of what it had risen was given back, and what it rose to then is no
news the next time."""
DROP_BLOCKS: Final = 400
"""Blocks searched for drops and the onset: 10,000 steps."""
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
"""Newest readings used to count the tensors that stay."""
ALIKE: Final = 0.5
"""Workers grow alike when the least has grown by half of the most."""
SPLIT_SHARE: Final = 0.20
SPLIT_AT_PEAK: Final = 0.10
"""Of the most that was reserved, what was free when the most was allocated: on an H200 a GPT with a
quarter more memory than its longest batch takes had 18 % free and emptied its cache nine times in
60 steps."""
SPLIT_ALLOCS: Final = 0.1
"""Fragmented: a fifth of what is reserved lies in pieces, and the device is asked once in ten steps
after the warm-up, or the cache had to be emptied."""
