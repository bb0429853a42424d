"""Attention weights that PyTorch's own module makes in full, and that its caller throws away:
without them it is one kernel, which holds a part of them at a time."""

from typing import Final

from ...settings import AttentionWeights
from ..attention_module import weights_thrown_away
from ..busy_parts import in_half_type
from ..code_places import main_places, share_held
from ..findings import Evidence, Finding
from ..format import percent
from ..on_device import is_the_limit, share_of_net
from ..place_names import by_user_function, place_name
from ..scoring import of_net
from ..stack_samples import FrameShare
from ..statistics import Share, of_samples, product, times
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

NARROW: Final = 32
"""Numbers of a head. On a CPU the one kernel saves of what attention takes beside the projection of
its inputs, forward and backward (torch 2.13, one thread): 16 numbers and 256 or 443 positions 0.59,
0.38, 32 and 128 or 1,024 0.34, 0.56; on two threads, with 443, 0.6 of a whole training…"""
OF_NARROW: Final = (0.45, 0.25, 0.65)
OF_WIDE: Final = (0.15, 0.0, 0.4)
"""…64 and 197, 256, 512 or 1,024 0.10, 0.05, 0.11, 0.37: its backward is no faster than products…
"""
LEAST_LENGTH: Final = 96
"""…and of 32 or 65 positions nothing."""
AS_PRODUCTS: Final = 200
"""On a GPU a byte of scores and weights takes as long as so many products of two numbers, in half
types: in an audio transformer on an H200 (1,214 positions, bf16) 0.72 of its time so, and 0.65 went
without them (2.8x)."""
OF_DEVICE: Final = (0.9, 0.5, 1.0)
"""Of that part goes so much; the least is a guess. In fp32 the kernel multiplies without tensor
cores: what it gives there was not measured."""
KERNEL: Final = "scaled_dot_product_attention then does it in one kernel"


def attention_weights(window: StepWindow) -> Finding | None:
    """By the samples of the forward on a CPU, which has no such kernel for weights with dropout; on
    a GPU by the backward's graph, and nothing where it waits for its host."""
    settings = window.settings
    seen = None if settings is None else settings.attention_weights
    if settings is None or seen is None or not is_the_limit(window):
        return None
    places = weights_thrown_away(main_places(window), settings)
    if not places:
        return None
    if window.gpu_present:
        part = _on_device(seen) if in_half_type(settings) else None
    else:
        part = _on_host(seen, places, window)
    if part is None:
        return None
    net = share_of_net(window)
    share = product(net, part)
    if share.mean < CONTRIBUTOR:
        return None
    called = f"{seen.layers} calls of attention" if seen.layers > 1 else "a call of attention"
    text = f"{called} on up to {seen.length:,} positions make their weights in full, by the "
    text += "backward's graph: nothing uses them but the product behind"
    where = place_name(by_user_function(places)[0])
    held = share_held(places)
    evidence = Evidence(text, "hook"), Evidence(f"{percent(held)} of the samples", "py-spy", held)
    headline = f"attention weights that nobody looks at take {percent(share.mean)} of each step"
    advice = f"need_weights=False where attention is called, in {where}: {KERNEL}"
    return of_net("attention-weights", share, headline, evidence, (advice,))


def _on_device(seen: AttentionWeights) -> Share | None:
    """Of forward and backward."""
    as_long = AS_PRODUCTS * seen.bytes_each
    return times(Share(*OF_DEVICE), as_long / (1 + as_long)) if 0 < as_long < 1e6 else None


def _on_host(seen: AttentionWeights, places: list[FrameShare], window: StepWindow) -> Share | None:
    if seen.dropped or seen.length < LEAST_LENGTH:
        return None
    forward = [one for one in main_places(window) if one.phase == "forward"]
    whole = share_held(forward)
    held = of_samples(share_held(places) / whole, whole * places[0].samples)
    return product(held, Share(*(OF_NARROW if seen.width <= NARROW else OF_WIDE)))
