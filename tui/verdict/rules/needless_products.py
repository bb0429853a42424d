"""Products that need not be computed, by the backward's graph: of operands that were multiplied
before, of rows that a layer has gathered before it instead of behind it, of rows that nothing uses.
"""

import re
from collections.abc import Iterable
from typing import Final

from ...settings import RowProducts, SameProducts
from ..busy_parts import in_half_type, uses_tensor_cores
from ..code_places import forward_of_net, main_places, share_held
from ..findings import Evidence, Finding
from ..format import percent
from ..on_device import is_clocked, is_the_limit, share_of_net
from ..place_names import by_user_function, own_frame, place_name
from ..scoring import held_by, of_net
from ..stack_samples import FrameShare
from ..statistics import Share, of_samples, product, times, within_one
from ..thresholds.hysteresis import CONTRIBUTOR
from ..traced_places import shown, traced
from ..window import StepWindow

OF_ARITHMETIC: Final = (0.8, 0.6, 1.0)
"""Of forward and backward, what computing again takes, over its part of all products' arithmetic:
0.83 and 0.80 in two nets of differential equations (two cores, torch 2.13), whose operations beside
the products are done again as well; the least and the most are guesses."""
OF_ROWS: Final = 0.95
"""Of what samples show of products, where rows are there already or nothing uses them: in a net of
graphs 0.97 and 1.02 (73 % of 30 samples), with 50 % of as many more. The rest gathers results."""
OF_DEVICE: Final = (0.6, 0.3, 0.9)
"""On a GPU, of forward and backward, over that part: 0.6 in a net of graphs on an H200 (2.1x); the
least and the most are guesses, since no counter tells a product's time from the rest's."""
OF_LOSS: Final = {"half": 1_600, "tf32": 800, "fp32": 200}
"""On a GPU, times as long as the product with it what a loss over a vocabulary takes, over the
inputs of its layer: some 25 ps for each of its numbers, forward and backward (24 in a BERT on an
H200, in bf16, 2.2 and 2.5x: its products and losses are 0.6 of all then), where products take six
operations for each input. Of other GPUs memory and products grew alike (A100, H100)."""
VOCABULARY: Final = 4
"""Times as wide as its inputs a layer is that gives a loss its numbers, and no layer within a net.
"""
PRODUCTS: Final = re.compile(
    r"(Linear\.forward \(torch/nn/modules/linear\.py"
    r"|Conv\dd?\._conv_forward \(torch/nn/modules/conv\.py"
    r"|(linear|conv\dd|bilinear) \(torch/nn/functional\.py)"
)
LOSSES: Final = re.compile(r"(cross_entropy|nll_loss|log_softmax) \(torch/nn/functional\.py")
UPSAMPLES: Final = re.compile(r"interpolate \(torch/nn/functional\.py")
GATHERED: Final = "gathered-rows"
LAYER_FIRST: Final = "the layer first, and then gather, repeat or upsample what it gives"
DERIVATIVES: Final = "torch.autograd.grad("
AT_ONCE: Final = "torch.autograd.grad(y, (x, t)) for all inputs at once"


def needless_products(window: StepWindow) -> Finding | None:
    """The largest of them. Smaller products on a GPU are less of its time, and no fewer launches:
    nothing is said of those where it waits for its host. What is computed again is launched again.
    """
    settings = window.settings
    if settings is None or not is_clocked(window):
        return None
    same, limits = settings.same_products, is_the_limit(window)
    gathered = settings.gathered_products if limits and not _is_timed(window) else None
    unused = settings.unused_products if limits else None
    found = (
        None if same is None else _computed_again(window, same),
        None if gathered is None else _gathered_before(window, gathered),
        None if unused is None else _of_unused_rows(window, unused),
    )
    return max(filter(None, found), key=held_by, default=None)


def _is_timed(window: StepWindow) -> bool:
    """A traced step has the time of layers on gathered rows (`traced_operations`), and it is much
    of it."""
    seen = traced(window)
    if seen is None or seen.gathered is None:
        return False
    return window.gpu_present and seen.gathered.us >= CONTRIBUTOR * seen.us


def _computed_again(window: StepWindow, same: SameProducts) -> Finding | None:
    share = product(share_of_net(window), times(Share(*OF_ARITHMETIC), within_one(same.part)))
    if share.mean < CONTRIBUTOR:
        return None
    text = f"{same.different} of {same.products} products have operands of their own: "
    text += f"{percent(same.part)} of all arithmetic is done again, by the backward's graph"
    evidence = [Evidence(text, "hook", same.part)]
    places = main_places(window)
    derived = _most([one for one in places if DERIVATIVES in one.line])
    inside = _most(forward_of_net(window))
    advice = "keep what a net returned for the same input, and do not call it again"
    if inside:
        advice += f": it is called in {inside}"
    advices = [advice]
    if derived:
        advices.append(f"{AT_ONCE}, and keep them for the next ones: {derived}")
        evidence.append(Evidence(f"derivatives are asked for in {derived}", "py-spy"))
    headline = f"{percent(share.mean)} of each step computes again what is there already"
    return of_net("computed-again", share, headline, evidence, advices)


def _gathered_before(window: StepWindow, gathered: RowProducts) -> Finding | None:
    of_rows = (window, gathered, GATHERED, "for rows that are there already", "can differ")
    return _of_rows(
        *of_rows,
        _spared(window, gathered, of_gathers=1.0 - gathered.outputs / max(1, gathered.inputs)),
        (
            LAYER_FIRST,
            "of rows that are put together (torch.cat) each part by its own columns of the weight",
        ),
    )


def _of_unused_rows(window: StepWindow, unused: RowProducts) -> Finding | None:
    """What their loss takes goes as well."""
    advice = "pick the rows that count before the layer: those that a loss does not ignore, that a "
    advice += "gate or a mask does not make zeros of, or the last position alone"
    of_losses = within_one(1.0 - unused.needed / max(1, unused.rows))
    of_rows = (window, unused, "unused-rows", "for rows of which nothing is used", "are used")
    return _of_rows(*of_rows, _spared(window, unused, of_losses), (advice,))


def _spared(
    window: StepWindow, rows: RowProducts, of_losses: float = 0.0, of_gathers: float = 0.0
) -> Share | None:
    """Part of forward and backward that goes without these rows. By the samples of the forward: of
    its products, of its losses, and of pictures that are made larger, of which there are fewer
    channels then; None without any product. On a GPU nothing tells it apart."""
    if window.gpu_present:
        return times(Share(*OF_DEVICE), _part_with_loss(window, rows, of_losses))
    inside = [one for one in main_places(window) if one.phase == "forward"]
    held = share_held([one for one in inside if PRODUCTS.match(one.frame)])
    lost, whole = share_held([one for one in inside if LOSSES.match(one.frame)]), share_held(inside)
    if not held:
        return None
    larger = within_one(of_gathers) * share_held([o for o in inside if UPSAMPLES.match(o.frame)])
    part = (OF_ROWS * within_one(rows.part) * held + of_losses * lost + larger) / whole
    return of_samples(part, whole * inside[0].samples)


def _part_with_loss(window: StepWindow, rows: RowProducts, of_losses: float) -> float:
    """Of what products and a loss take on a GPU, the part that goes without these rows."""
    part, settings = within_one(rows.part), window.settings
    if settings is None or not of_losses or rows.outputs <= VOCABULARY * max(1, rows.inputs):
        return part
    is_fast = uses_tensor_cores(settings)
    kind = "half" if in_half_type(settings) else "tf32" if is_fast else "fp32"
    as_long = OF_LOSS[kind] / max(1, rows.inputs)
    return part * (1 + as_long) / (1 + as_long * within_one(part / of_losses))


def _of_rows(
    window: StepWindow,
    rows: RowProducts,
    sub: str,
    for_which: str,
    needed: str,
    spared: Share | None,
    advices: tuple[str, ...],
) -> Finding | None:
    if spared is None:
        return None
    share = product(share_of_net(window), spared)
    if share.mean < CONTRIBUTOR:
        return None
    text = f"{rows.needed:,} of {rows.rows:,} rows {needed} in a layer of {rows.inputs:,} to "
    text += f"{rows.outputs:,}: {percent(rows.part)} of all products' arithmetic is for the others"
    evidence = [Evidence(text, "hook", rows.part)]
    if not window.gpu_present:
        text = f"that is {percent(spared.mean)} of the forward by its samples"
        evidence.append(Evidence(text, "py-spy", spared.mean))
    seen = traced(window)
    timed = None if seen is None or sub != GATHERED else seen.gathered
    # Of the samples of all products most may be another layer's.
    layers = [one for one in forward_of_net(window) if PRODUCTS.match(one.frame)]
    where = _most(layers) if timed is None else shown(timed.place)
    first, *others = advices
    headline = f"layers take {percent(share.mean)} of each step {for_which}"
    named = first + (f": {where}" if where else "")
    return of_net(sub, share, headline, evidence, (named, *others))


def _most(places: Iterable[FrameShare]) -> str | None:
    """The user's function that holds most of them."""
    functions = by_user_function(one for one in places if own_frame(one))
    return place_name(functions[0]) if functions else None
