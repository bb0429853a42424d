"""On a CPU: products that need not be computed, by the graph of the backward: of operands that were
multiplied before, or of rows that a layer has gathered before it instead of behind it."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ...settings import GatheredProducts, SameProducts
from ..code_places import forward_of_net, main_places
from ..findings import Evidence, Finding
from ..forecast.interval import interval_of
from ..format import percent
from ..place_names import own_frame
from ..scoring import cause, speedup_of
from ..stack_samples import FrameShare
from ..statistics import Share, of_samples, product, share_of, times
from ..step_time import wall_of
from ..thresholds.hysteresis import CONTRIBUTOR
from ..window import StepWindow

OF_ARITHMETIC: Final = (0.8, 0.6, 1.0)
"""Of forward and backward, what computing again takes, over its part of all products' arithmetic:
0.83 and 0.80 in two nets of differential equations (two cores, torch 2.13), whose operations beside
the products are done again as well; the least and the most are guesses."""
OF_ROWS: Final = 0.95
"""The same of rows that are there already, of what samples show of products: in a net of graphs
0.97 and 1.02 (73 % of 30 samples), and with 50 % of as many more. What is left gathers results."""
PRODUCTS: Final = re.compile(
    r"(Linear\.forward \(torch/nn/modules/linear\.py"
    r"|Conv\dd?\._conv_forward \(torch/nn/modules/conv\.py"
    r"|(linear|conv\dd|bilinear) \(torch/nn/functional\.py)"
)
DERIVATIVES: Final = "torch.autograd.grad("
AT_ONCE: Final = "torch.autograd.grad(y, (x, t)) for all inputs at once"


def needless_products(window: StepWindow) -> Finding | None:
    """The larger of both."""
    settings = window.settings
    if window.gpu_present or settings is None:
        return None
    same, gathered = settings.same_products, settings.gathered_products
    found = (
        None if same is None else _computed_again(window, same),
        None if gathered is None else _gathered_before(window, gathered),
    )
    return max(filter(None, found), key=lambda one: one.share or 0.0, default=None)


def _computed_again(window: StepWindow, same: SameProducts) -> Finding | None:
    share = product(_net(window), times(Share(*OF_ARITHMETIC), same.part))
    if share.mean < CONTRIBUTOR:
        return None
    text = f"{same.products} products in a backward's graph have {same.different} different pairs "
    text += f"of operands: {percent(same.part)} of their arithmetic is done again"
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
    return _found("computed-again", share, headline, evidence, advices)


def _gathered_before(window: StepWindow, gathered: GatheredProducts) -> Finding | None:
    inside = forward_of_net(window)
    in_products = [one for one in inside if PRODUCTS.match(one.frame)]
    held, whole = (sum(one.share for one in places) for places in (in_products, inside))
    if not held:
        return None
    in_all = of_samples(held / whole, whole * inside[0].samples)
    share = times(product(_net(window), in_all), gathered.part * OF_ROWS)
    if share.mean < CONTRIBUTOR:
        return None
    text = f"a layer of {gathered.inputs:,} to {gathered.outputs:,} has {gathered.rows:,} rows, of "
    text += f"which {gathered.different:,} can differ: {percent(gathered.part)} of all products' "
    text += "arithmetic is for rows that are there already"
    evidence = [
        Evidence(text, "hook", gathered.part),
        Evidence(f"products are {percent(held / whole)} of the forward's samples", "py-spy"),
    ]
    where = _most(in_products)
    advice = "the layer first, and then gather or repeat what it gives"
    advices = [
        advice + (f": {where}" if where else ""),
        "of rows that are put together (torch.cat) each part by its own columns of the weight",
    ]
    headline = f"layers take {percent(share.mean)} of each step for rows that are there already"
    return _found("gathered-rows", share, headline, evidence, advices)


def _found(
    sub: str, share: Share, headline: str, evidence: Iterable[Evidence], advices: Iterable[str]
) -> Finding:
    found = cause("compute", sub, share, headline, tuple(evidence), tuple(advices))
    shares = share.mean, share.low, share.high
    return replace(found, forecast=interval_of("compute", speedup_of(share.mean), *shares))


def _net(window: StepWindow) -> Share:
    """Forward and backward, of the steps' time."""
    rows = [row.forward_ns + row.backward_ns for row in window.steps]
    return share_of(rows, list(map(wall_of, window.steps)))


def _most(places: Iterable[FrameShare]) -> str | None:
    """The user's frame that holds most of them."""
    held: dict[str, float] = {}
    for one in places:
        if frame := own_frame(one):
            held[frame] = held.get(frame, 0.0) + one.share
    return max(held, key=lambda frame: held[frame], default=None)
