"""On a CPU: dropout, which draws a number for each element, one after the other, on one core.

PyTorch draws them in vectors and on all cores for processors of Intel's alone, by their MKL; the
generator of all others is locked. Eight random bytes of one draw make the mask of eight elements.
"""

from dataclasses import replace
from typing import Final

from ..code_places import drops_out, forward_of_net, share_seen
from ..findings import Evidence, Finding
from ..forecast.interval import interval_of
from ..format import percent
from ..place_names import own_frame
from ..scoring import cause, speedup_of
from ..statistics import Share, product
from ..step_time import spent
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow
from .small_operations import small_operations

SAVES: Final = (0.75, 0.65, 0.85)
"""Of what a call takes, beside `CALL_NS`: the mean, the least and the most. Of 10,000 to 4,000,000
elements with one and two threads (torch 2.13 and 2.14): 7 ns an element where a tenth is dropped,
13.5 where half is, for the processor cannot guess it; 2.1 by bytes, 3.5 beside other work."""
CALL_NS: Final = 20_000
"""What the mask's own operations take more than the one call, however few elements there are: 31 us
for 29 of 3,000 elements, 43 for 78 of 10,000."""
ERROR: Final = (0.85, 1.3)
"""The measured gain over the forecast one was 0.93 to 1.10 in eight public scripts on two cores:
a speech transformer 1.21x for 1.22x, one of series 1.10x for 1.09x, a GAN 1.10x for 1.10x, TuckER
1.20x for 1.27x, DrQA 1.24x for 1.13x, TS-TCC 1.0x for 1.07x; SimCSE 1.10x for 1.09x and QANet 1.0
to 1.3x for 1.19x, on a restless machine. A small transformer of ours, by this advice, 1.6x for
1.3x: more than its dropout held by samples (two threads; why is not known)."""
OPERATIONS_A_CALL: Final = 3
"""In a graph, at the least: what is dropped has been computed, and is used."""
BYTES: Final = (
    "a mask of random bytes, 3 to 6x as fast: k = torch.empty(-(-x.numel() // 8), "
    "dtype=torch.int64).random_(-2**63, None).view(torch.uint8)[:x.numel()].view(x.shape); "
    "x * (k >= n).to(x.dtype).mul_(256 / (256 - n)), n = round(256 * p)"
)


def dropout(window: StepWindow) -> Finding | None:
    """By samples: the call leaves a frame of its own, and its backward is a product. How many
    calls there are is known at the most, by the operations of the graph."""
    settings, called = window.settings, small_operations(window)
    if settings is None or settings.cpu_intel is not False or called is None:
        return None
    held = share_seen(window, drops_out)
    if held.mean < CONTRIBUTOR:
        return None
    total = spent(window.steps)
    calls_ns = CALL_NS * called.count / OPERATIONS_A_CALL * total.steps
    calling = calls_ns / total.wall_ns / held.mean
    saved = product(held, Share(*(max(0.0, part - calling) for part in SAVES)))
    if saved.mean < CONTRIBUTOR:
        return None
    asked = [one for one in forward_of_net(window) if drops_out(one) and own_frame(one)]
    text = f"{percent(held.mean)} of the samples"
    if asked:
        text += f", most in {own_frame(max(asked, key=lambda one: one.share))}"
    headline = f"dropout takes {percent(held.mean)} of each step, one element after the other"
    evidence = (Evidence(text, "py-spy", held.mean),)
    found = cause("compute", "dropout", saved, headline, evidence, (BYTES,))
    gain = speedup_of(saved.mean), saved.mean, saved.low, saved.high
    return replace(found, forecast=interval_of("compute", *gain, error=ERROR))
