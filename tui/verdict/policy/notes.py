"""Settings that are worth a word."""

from typing import Final

NOTE_SHARE: Final = 0.01
"""Less of the time, or of the samples, is no cost worth a line: of the 200 samples of a window it
is two, and one may meet a line that runs once an epoch."""
NOTE_LEAVE_TIMES: Final = 5
"""Looks in a row without its reason before a note goes: costs near the line above cross it with
every sample, and a line that comes and goes moves what stands below it."""
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
