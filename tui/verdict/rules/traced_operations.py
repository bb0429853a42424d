"""What a traced step shows to be needless: the same in each step, computed before in the same one,
read by nothing, multiplied by zeros or before it must be, or made in full only to be summed."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ...settings import FunctionTime, StepOperations
from ..findings import Evidence, Finding
from ..forecast.interval import interval_of
from ..format import percent
from ..on_device import is_clocked, is_the_limit, share_of_net
from ..scoring import cause, held_by, speedup_of
from ..statistics import Share, product, times, within_one
from ..step_time import spent
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import FUSED, shown, source, traced
from ..window import StepWindow
from .needless_operations import in_trace, needless_operations
from .needless_products import GATHERED, LAYER_FIRST

OF_ZEROS: Final = (0.9, 0.6, 1.0)
"""Of what the dense products took, as the sparse ones read each number that is not zero, with a row
of the other: of 17 in a row of 40,000 hardly anything stays (H200)."""
OF_GATHERED: Final = (0.85, 0.5, 1.0)
"""Of what layers take for rows that were gathered before them. A guess."""
LEAST_FUSED: Final = 0.2
"""Of all operations' time, what fusing those of one function must save."""
LEFT: Final = 0.4
"""Of the time of its fusible operations, what may be left: else it is a net like others."""
OF_SCATTER: Final = (0.95, 0.5, 1.0)
"""Of it, by `F.embedding`: 262,144 rows of 5 on an H200 took 0.92 of a step, and 0.86 to 0.88 went;
100,000 rows of 5 on two cores 20 ms, and 8.5 ms by that."""
OF_A_NET: Final = re.compile(r"(forward|__call__|_call_impl)")
"""In names of functions that hold a net's layers: a frozen one has a rule of its own."""
ALL: Final = 0.8
"""Of a function's time, what is without a gradient: the rest makes what the net goes on with."""
LEAST_UNLEARNED: Final = 0.2
OF_UNLEARNED: Final = (0.7, 0.0, 1.0)
"""Of what such a function takes. On H200s a grid of NumPy in each forward took 0.57 of a step's
operations, and 0.38 of the step went (1.6x); ranks by sorting a queue 0.23 and 0.30 (1.4x)."""
ELSEWHERE: Final = (
    "compute it once, where it is the same in each step; or more cheaply, or with the batch"
)
OF_FULL: Final = (0.75, 0.3, 0.95)
"""Of products in fp32, what half precision takes less. On an H200 attention in fp32 within a net in
bf16 held 0.6 of a step, and 0.44 went (1.8x)."""
OF_FULL_TF32: Final = (0.45, 0.1, 0.7)
"""The same where they may use tf32, which is half as fast. A guess."""
OF_TRANSFORMS: Final = (0.65, 0.3, 0.9)
"""Of transforms whose length has a large prime factor, what another length takes less."""
OF_ORDERED: Final = 0.95
"""Of operations that deterministic algorithms ask for, what others take less."""
ENLARGES: Final = "_unsafe_index_put"
"""What PyTorch makes of the backward of pictures that are made larger, and of nothing else."""
MOST_BESIDE: Final = 0.4
"""Of what that takes, what the rest of it takes at the most: on an H200 it held 0.59 of a step, its
function 0.77, and 0.78 went (4.6x)."""
MOST_OF_BESIDE: Final = 1.5
"""Of that what may go: some of it is another line's."""
ORDERED: Final = re.compile(rf"{ENLARGES}|(index|scatter)_add_?|put_")
"""Operators that sort their indices only there."""
CAST: Final = "cast what goes in to the type of the others, unless fp32 is meant there"
DETERMINISTIC: Final = (
    "torch.use_deterministic_algorithms(False), unless results must be the same bit for bit"
)
SPARSE: Final = "matrix.to_sparse_csr(), once: its products read what is there"
EMBEDDING: Final = "F.embedding(index, table) for table[index]: its backward adds rows side by side"
FUSE: Final = "do not make them: one product or call for all, or @torch.compile on"


OF_LAUNCHES: Final = (0.9, 0.6, 1.0)
"""Of what they take on the host of a GPU, all but one turn's: a contrastive loss over 64 utterances
on an H200 took 0.74 of the host's time in 4,227 operations, and 0.70 went (3.4x)."""
OF_CALLS: Final = (0.8, 0.5, 1.0)
"""The same on a CPU, where the arithmetic stays."""
SMALL_US: Final = 30.0
"""On a CPU, of one operation: what is longer computes, and calling it takes 6 to 10 us of it."""


def traced_operations(window: StepWindow) -> list[Finding]:
    """Each that counts. Where a GPU waits for its host, by what they take there: they are
    launched."""
    seen = traced(window)
    if seen is None or not seen.host_us or not is_clocked(window):
        return []
    found = list(needless_operations(window, seen))
    found += [_unlearned(window, seen, one) for one in seen.functions]
    if is_the_limit(window):
        found += [_of_zeros(window, seen), _scattered(window, seen), _gathered(window, seen)]
        found += [_in_full(window, seen), _transforms(window, seen), _deterministic(window, seen)]
    return [one for one in found if one is not None]


def unfused(window: StepWindow) -> Finding | None:
    """Tensors that a function makes and reads once: the most general of all that is said of a net,
    behind what knows more of it."""
    seen = traced(window)
    if seen is None or not is_clocked(window) or not is_the_limit(window):
        return None
    found = (_unfused(window, seen, one) for one in seen.functions)
    return max(filter(None, found), key=held_by, default=None)


def _unlearned(window: StepWindow, seen: StepOperations, one: FunctionTime) -> Finding | None:
    """On a GPU, a function that no gradient goes through: a grid that is made anew, metrics, the
    neighbours of points. On a CPU samples show it (`within_net`). Targets and augmentation are
    needed, if not there, so that nothing is sure to go."""
    where = shown(one.place)
    if not window.gpu_present or not one.us or one.unlearned_us < ALL * one.us:
        return None
    if OF_A_NET.search(where):
        return None
    part = one.us / seen.us if is_the_limit(window) else one.host_us / seen.host_us
    if part < LEAST_UNLEARNED:
        return None
    text = f"{percent(part)} of the operations' time in a traced step is at {where}, "
    text += f"{percent(one.operation_us / max(1, one.us))} of it {one.operation}"
    headline = "{share} of each step is computed in a function that nothing is learned through"
    return in_trace(
        window, "unlearned", (part, OF_UNLEARNED), headline, text, f"{ELSEWHERE}: {where}"
    )


def _of_zeros(window: StepWindow, seen: StepOperations) -> Finding | None:
    """Products with a matrix that is mostly zeros, as the one that says which nodes are joined."""
    if (zeros := seen.zeros) is None:
        return None
    part, where = zeros.us / seen.us, shown(zeros.place)
    text = f"{zeros.filled_ppm / 1e4:.2g}% of a matrix is not zero: the products with it take "
    text += f"{percent(part)} of the operations' time in a traced step"
    headline = "products with zeros take {share} of each step"
    return in_trace(window, "zeros", (part, OF_ZEROS), headline, text, f"{SPARSE}: {where}")


def _unfused(window: StepWindow, seen: StepOperations, one: FunctionTime) -> Finding | None:
    part = (one.fusible_us - one.fused_us) / seen.us
    if part < LEAST_FUSED or one.fused_us > LEFT * one.fusible_us:
        return None
    where = shown(one.place)
    text = f"{percent(one.us / seen.us)} of the operations' time in a traced step is at {where}, "
    text += f"{percent(one.fusible_us / max(1, one.us))} of it in pointwise operations, sums and "
    text += f"copies: by their bytes one kernel takes {percent(one.fused_us / one.fusible_us)} of "
    text += "that"
    headline = "tensors that are made and read once take {share} of each step"
    return in_trace(window, "unfused", (part, FUSED), headline, text, f"{FUSE} {where}")


def _scattered(window: StepWindow, seen: StepOperations) -> Finding | None:
    if (scattered := seen.scattered) is None:
        return None
    part, where = scattered.us / seen.us, shown(scattered.place)
    text = f"adding up the gradients of table[index] takes {percent(part)} of the operations' time "
    text += "in a traced step: each row is asked for often"
    headline = "the backward of an index takes {share} of each step"
    return in_trace(
        window, "scatter", (part, OF_SCATTER), headline, text, f"{EMBEDDING}, in {where}"
    )


def _gathered(window: StepWindow, seen: StepOperations) -> Finding | None:
    """By the time that such layers take: `needless_products` has their arithmetic alone on a GPU,
    and samples of them on a CPU, of rows that the backward's graph shows to be gathered."""
    if (early := seen.gathered) is None:
        return None
    part, where = early.us / seen.us, shown(early.place)
    text = f"{early.needed:,} of {early.rows:,} rows can differ in a layer of {early.inputs:,} to "
    text += f"{early.outputs:,}: such layers take {percent(part)} of the operations' time in a "
    text += "traced step for the others"
    headline = "layers take {share} of each step for rows that are there already"
    return in_trace(
        window, GATHERED, (part, OF_GATHERED), headline, text, f"{LAYER_FIRST}: {where}"
    )


def _in_full(window: StepWindow, seen: StepOperations) -> Finding | None:
    """What one cast forgot, as attention whose queries were multiplied by a table in fp32."""
    if (full := seen.full_products) is None:
        return None
    part, where = full.us / seen.us, shown(full.place)
    text = f"{full.operations:,} products in fp32, most in {where}, take {percent(part)} of the "
    text += "operations' time in a traced step; others are in half precision"
    precision = None if window.settings is None else window.settings.matmul_precision
    goes = OF_FULL_TF32 if precision in ("high", "medium") else OF_FULL
    headline = "products in fp32 beside others in half precision take {share} of each step"
    return in_trace(window, "partly-full", (part, goes), headline, text, f"{CAST}: {where}")


def _transforms(window: StepWindow, seen: StepOperations) -> Finding | None:
    if (slow := seen.transforms) is None:
        return None
    part, where = slow.us / seen.us, shown(slow.place)
    text = f"{slow.operations:,} Fourier transforms, most of length {slow.length:,} in {where}, "
    text += f"take {percent(part)} of the operations' time in a traced step"
    headline = "Fourier transforms of a length with a large prime factor take {share} of each step"
    advice = f"pad with zeros to {quick_length(slow.length):,} (n=...), where another spacing of "
    advice += f"frequencies does no harm, as in a convolution: {where}"
    return in_trace(window, "transforms", (part, OF_TRANSFORMS), headline, text, advice)


def quick_length(length: int) -> int:
    """The next one, from `length` on, that only 2, 3, 5 and 7 divide."""
    length = max(1, length)
    best = 1 << (length - 1).bit_length()
    for odd in _quick_odd_numbers(best):
        left = -(-length // odd)
        best = min(best, odd << (left - 1).bit_length())
    return best


def _quick_odd_numbers(below: int) -> Iterator[int]:
    sevens = 1
    while sevens < below:
        fives = sevens
        while fives < below:
            threes = fives
            while threes < below:
                yield threes
                threes *= 3
            fives *= 5
        sevens *= 7


def _deterministic(window: StepWindow, seen: StepOperations) -> Finding | None:
    """On a GPU indices are sorted and added up one after the other, as `table[index]` does in its
    backward anyway, and pictures are made larger by indices: what else such a function computes may
    go with those."""
    settings = window.settings
    if settings is None or not settings.deterministic or not window.gpu_present:
        return None
    slow = [one for one in seen.functions if ORDERED.fullmatch(one.operation)]
    part = within_one(sum(one.operation_us for one in slow) / seen.us)
    if not part:
        return None
    most = max(slow, key=lambda one: one.operation_us)
    text = f"{most.operation} takes {percent(most.operation_us / seen.us)} of the operations' time "
    text += f"in a traced step, in {shown(most.place)}"
    headline = "deterministic algorithms take {share} of each step"
    enlarged = [one for one in slow if one.operation == ENLARGES]
    beside = sum(one.us - one.operation_us for one in enlarged) / seen.us
    beside = min(beside, MOST_BESIDE * part)
    most_goes = 1.0 + MOST_OF_BESIDE * beside / part
    goes = (OF_ORDERED + beside / part / 2, OF_ORDERED / 2, min(most_goes, 1.0 / part))
    return in_trace(window, "deterministic", (part, goes), headline, text, DETERMINISTIC)


def traced_loop(window: StepWindow) -> Finding | None:
    """Where a GPU waits for its host; on a CPU of small operations."""
    seen = traced(window)
    loop = None if seen is None else seen.loop
    if seen is None or loop is None or not seen.host_us or not is_clocked(window):
        return None
    if loop.turns < 2:
        return None  # one turn is no loop
    net = share_of_net(window)
    each_us = loop.host_us / max(1, loop.operations) * _untraced(window, seen, net)
    if is_the_limit(window) and (window.gpu_present or each_us > SMALL_US):
        return None
    part = within_one(loop.host_us / seen.host_us)
    goes = times(Share(*(OF_LAUNCHES if window.gpu_present else OF_CALLS)), 1 - 1 / loop.turns)
    share = product(net, times(goes, part))
    if share.mean < CONTRIBUTOR:
        return None
    where = shown(loop.place)
    text = f"{loop.operations:,} of {seen.operations:,} operations of a traced step are asked for "
    text += f"by lines that come some {loop.turns:,} times, {percent(part)} of the host's time: no "
    text += "turn needs another's result"
    found = cause(
        "launch",
        "loop",
        share,
        f"{percent(share.mean)} of each step are operations of a line that do not need each other",
        (Evidence(text, source(window), part),),
        (f"one tensor expression for all of them, instead of a loop: {where}",),
    )
    shares = share.mean, share.low, share.high
    return replace(found, forecast=interval_of("launch", speedup_of(share.mean), *shares))


def _untraced(window: StepWindow, seen: StepOperations, net: Share) -> float:
    """What operations take of what they took as they were traced: of a VAE's 9,828 small ones that
    made 597 ms of a step's 140."""
    total = spent(window.steps)
    each_us = net.mean * total.wall_ns / max(1, total.steps) / 1_000
    return min(1.0, each_us / max(1, seen.host_us))
