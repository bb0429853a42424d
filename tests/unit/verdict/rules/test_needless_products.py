"""Products that need not be computed, on a CPU."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.settings import RowProducts, SameProducts, Settings
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.needless_products import needless_products
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window

FIELDS = SameProducts(part=0.6, products=120, different=48)
EDGES = RowProducts(part=0.9, rows=11_620, needed=774, inputs=96, outputs=96)
LINEAR = "Linear.forward (torch/nn/modules/linear.py:134)"
MESSAGE = FrameShare(
    *(0.3, LINEAR, "Conv.message (layers.py:24)"), phase="forward", samples=100, in_net=True
)
REST = replace(MESSAGE, share=0.1, frame="scatter (c.py:8)", caller="Conv.go (layers.py:9)")
DERIVED = FrameShare(
    *(0.2, "_engine_run_backward (torch/autograd/graph.py:979)", "derived (pinn.py:48)"),
    phase="backward",
    samples=100,
    line="return torch.autograd.grad(y, x, create_graph=True)[0]",
)


def seen(*places: FrameShare, **settings: Any) -> StepWindow:
    """Forward and backward take 97 % of a step."""
    return window(
        even(60, forward_ms=120, backward_ms=180, optimizer_ms=10),
        stacks=Stacks(100, places or (MESSAGE, REST), 0, (), None, main_unplaced=0.0),
        settings=Settings(**settings),
    )


def found_of(given: StepWindow) -> Finding:
    found = needless_products(given)
    assert found is not None
    assert found.forecast is not None
    assert found.forecast.high is not None
    return found


def test_a_net_that_is_called_again_for_the_same_input_is_the_verdict() -> None:
    given = seen(same_products=FIELDS)
    found = found_of(given)
    assert found.headline == "46% of each step computes again what is there already"
    assert found.share == pytest.approx(0.8 * 0.6 * 300 / 310)
    assert found.evidence[0].text == (
        "48 of 120 products have operands of their own: 60% of all arithmetic is done again, by "
        "the backward's graph"
    )
    assert found.advice == (
        "keep what a net returned for the same input, and do not call it again: it is called in "
        "Conv.message (layers.py:24)",
    )
    judged = Engine().judge(given).finding
    assert (judged.kind, judged.sub) == ("compute", "computed-again")


def test_derivatives_one_by_one_are_asked_for_at_once() -> None:
    found = found_of(seen(MESSAGE, DERIVED, same_products=FIELDS))
    assert found.advice[1] == (
        "torch.autograd.grad(y, (x, t)) for all inputs at once, and keep them for the next ones: "
        "derived (pinn.py:48)"
    )


def test_a_layer_on_gathered_rows_is_the_verdict() -> None:
    """By samples products are three quarters of the forward."""
    given = seen(gathered_products=EDGES)
    found = found_of(given)
    assert found.share == pytest.approx(0.95 * 0.9 * 0.75 * 300 / 310)
    assert found.headline == "layers take 62% of each step for rows that are there already"
    assert found.evidence[0].text == (
        "774 of 11,620 rows can differ in a layer of 96 to 96: 90% of all products' arithmetic is "
        "for the others"
    )
    assert found.advice[0] == (
        "the layer first, and then gather, repeat or upsample what it gives: "
        "Conv.message (layers.py:24)"
    )
    judged = Engine().judge(given).finding
    assert (judged.kind, judged.sub) == ("compute", "gathered-rows")


def test_a_layer_on_rows_that_nothing_uses_is_the_verdict() -> None:
    found = found_of(seen(unused_products=RowProducts(0.8, 4_096, 614, 256, 30_000)))
    assert found.headline == "layers take 55% of each step for rows of which nothing is used"
    assert found.evidence[0].text == (
        "614 of 4,096 rows are used in a layer of 256 to 30,000: 80% of all products' arithmetic "
        "is for the others"
    )
    assert found.advice[0].startswith("pick the rows that count before the layer")
    assert found.sub == "unused-rows"


def test_what_the_loss_of_unused_rows_takes_goes_as_well() -> None:
    entropy = replace(REST, frame="cross_entropy (torch/nn/functional.py:3555)")
    words = RowProducts(0.8, 4_096, 614, 256, 30_000)
    found = found_of(seen(MESSAGE, entropy, unused_products=words))
    spared = 0.95 * 0.8 * 0.75 + (1 - 614 / 4_096) * 0.25
    assert found.share == pytest.approx(spared * 300 / 310, abs=0.001)


def on_gpu(rows: RowProducts, **settings: Any) -> float:
    """The share of what a GPU that is busy all the time does for rows that need not be."""
    steps, parts = even(60, forward_ms=40, backward_ms=60), {"forward_ms": 40, "backward_ms": 60}
    seen_so = {"activity": activity(100.0), "settings": Settings(unused_products=rows, **settings)}
    found = needless_products(gpu_window(steps, {**parts, "lag_ms": 80.0}, **seen_so))
    assert found is not None
    assert found.sub == "unused-rows"
    return found.share or 0.0


def test_on_a_gpu_a_loss_over_a_vocabulary_takes_longer_than_its_product() -> None:
    """A BERT on an H200, whose rows that count alone are 2.2 and 2.5x as fast: 0.55 to 0.6."""
    words = RowProducts(0.5, 32_768, 4_956, 512, 50_265)
    half, tf32, fp32 = (
        on_gpu(words, autocast="bfloat16"),
        on_gpu(words, matmul_precision="high"),
        on_gpu(words),
    )
    assert half == pytest.approx(0.6 * 0.5 * 4.125 / (1 + 3.125 * 0.5 / 0.849), abs=0.002)
    assert half > tf32 > fp32 > 0.6 * 0.5
    expert = RowProducts(0.5, 32_768, 8_192, 512, 2_048)
    assert on_gpu(expert, autocast="bfloat16") == pytest.approx(0.6 * 0.5)


@pytest.mark.parametrize("part", [-1.0, 1e300, float("nan")])
@pytest.mark.parametrize("gpu_present", [False, True])
def test_what_no_probe_would_send_is_no_part(part: float, gpu_present: bool) -> None:
    """No rows at all, and parts beyond one: a session must survive it."""
    rows, same = RowProducts(part, 0, 0, 0, 0), SameProducts(part, 0, 0)
    given = seen(same_products=same, gathered_products=rows, unused_products=rows)
    found = needless_products(replace(given, gpu_present=gpu_present))
    assert found is None or 0 <= (found.share or 0.0) <= 1


def test_the_larger_of_both_is_named() -> None:
    found = found_of(seen(same_products=replace_part(FIELDS, 0.2), gathered_products=EDGES))
    assert found.sub == "gathered-rows"


def replace_part(same: SameProducts, part: float) -> SameProducts:
    return SameProducts(part, same.products, same.different)


@pytest.mark.parametrize(
    "given",
    [
        seen(),
        seen(same_products=replace_part(FIELDS, 0.05)),
        seen(REST, gathered_products=EDGES),
        replace(seen(same_products=FIELDS), gpu_present=True),
        replace(seen(), settings=None),
    ],
    ids=["none", "little", "no samples of products", "a GPU", "nothing known"],
)
def test_nothing_is_named(given: StepWindow) -> None:
    assert needless_products(given) is None
