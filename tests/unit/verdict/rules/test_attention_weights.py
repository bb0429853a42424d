"""Weights of PyTorch's own attention that its caller throws away."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.settings import AttentionWeights, Settings
from gpuwatch.tui.verdict.attention_module import throws_away, weights_thrown_away
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.notes.training import attention_in_steps
from gpuwatch.tui.verdict.rules.attention_weights import attention_weights
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window

STEP: dict[str, Any] = {"forward_ms": 100, "backward_ms": 200, "optimizer_ms": 15}
WEIGHTS = AttentionWeights(
    bytes_each=0.013, layers=12, length=1214, width=16, dropped=False, in_one_call=0
)
FUNCTIONAL = "(torch/nn/functional.py:7042)"
CALLED = FrameShare(
    *(0.2, f"multi_head_attention_forward {FUNCTIONAL}", "EncoderLayer.forward (train.py:92)"),
    phase="forward",
    samples=100,
    in_net=True,
    line="h, _ = self.attn(h, h, h)",
)
SOFTMAX = replace(CALLED, share=0.05, frame=f"softmax {FUNCTIONAL}")
REST = replace(
    CALLED, share=0.1, frame="Linear.forward (torch/nn/modules/linear.py:134)", line="x = f(x)"
)


def stacks_of(*places: FrameShare) -> Stacks:
    return Stacks(100, places or (CALLED, SOFTMAX, REST), 0, (), None, main_unplaced=0.0)


def seen(
    *places: FrameShare, weights: AttentionWeights | None = WEIGHTS, **settings: Any
) -> StepWindow:
    return window(
        even(60, **STEP),
        settings=Settings(attention_weights=weights, **settings),
        stacks=stacks_of(*places),
    )


def on_gpu(busy: float | None = 99.0, autocast: str = "bfloat16") -> StepWindow:
    return gpu_window(
        even(60, **STEP),
        {**STEP, "lag_ms": 80.0},
        activity=activity(busy),
        settings=Settings(attention_weights=WEIGHTS, autocast=autocast),
        stacks=stacks_of(),
    )


def test_weights_that_are_thrown_away_are_the_verdict() -> None:
    found = attention_weights(seen())
    assert found is not None
    assert found.share == pytest.approx(300 / 315 * (0.25 / 0.35) * 0.45)
    assert found.headline == "attention weights that nobody looks at take 31% of each step"
    assert found.advice[0].startswith("need_weights=False where attention is called, in Encoder")
    assert found.evidence[0].text.startswith("12 calls of attention on up to 1,214 positions")
    judged = Engine().judge(seen()).finding
    assert (judged.kind, judged.sub) == ("compute", "attention-weights")


def test_wide_heads_gain_less_on_a_cpu() -> None:
    narrow, wide = (attention_weights(seen(weights=replaced(width=one))) for one in (32, 64))
    assert narrow is not None
    assert wide is not None
    assert (wide.share or 0.0) < 0.5 * (narrow.share or 0.0)
    assert wide.share_low is not None
    assert wide.share_low < 0.02


def replaced(**fields: Any) -> AttentionWeights:
    return AttentionWeights(**{name: getattr(WEIGHTS, name) for name in NAMES} | fields)


NAMES = AttentionWeights.__struct_fields__


def test_a_gpu_reads_and_writes_them() -> None:
    """An audio transformer on an H200: 64 % of its step."""
    found = attention_weights(on_gpu())
    assert found is not None
    assert 0.55 < (found.share or 0.0) < 0.7


@pytest.mark.parametrize(
    "given",
    [
        seen(weights=None),
        seen(weights=replaced(dropped=True)),
        seen(weights=replaced(length=64)),
        seen(REST),
        seen(replace(CALLED, library="timm")),
        seen(replace(CALLED, line="h, weights = self.attn(h, h, h)")),
        on_gpu(busy=50.0),
        on_gpu(busy=None),
        on_gpu(autocast=""),
    ],
    ids=[
        *("no weights", "dropout on a CPU", "short", "no such call", "a library's", "kept"),
        *("a GPU that waits", "a GPU that is not read", "fp32 on a GPU"),
    ],
)
def test_nothing_is_named(given: StepWindow) -> None:
    assert attention_weights(given) is None


def test_in_fp32_on_a_gpu_it_is_a_note() -> None:
    note = attention_in_steps(on_gpu(autocast=""))
    assert note is not None
    assert "EncoderLayer.forward (train.py:92): with need_weights=False" in note.text
    assert note.cost == "25% of main-thread samples are in it"


@pytest.mark.parametrize(
    ("line", "thrown"),
    [
        ("h, _ = self.attn(h, h, h)", True),
        ("x, _weights = self.attn(q, k, v, attn_mask=mask)", True),
        ("x = x + self.drop(self.attn(x, x, x, key_padding_mask=pad)[0])", True),
        ("return self.attn(q, k, v, need_weights=True)[0]", True),
        ("h, _ = self.attn(h, h, h, need_weights=False)", False),
        ("return self.attn(q, k, v, None, False)[0]", False),
        ("h, weights = self.attn(h, h, h)", False),
        ("out = self.attn(h, h, h)", False),
        ("x = self.encoder(x)", False),
        ("h, _ = self.attn(h, h, h, **options)", False),
        ("h, _ = self.attn(*qkv)", False),
        ("weights = self.attn(h, h, h)[1]", False),
    ],
)
def test_who_throws_them_away(line: str, thrown: bool) -> None:
    assert throws_away(line) is thrown


@pytest.mark.parametrize(
    ("in_one_call", "places", "is_known"),
    [(0, (CALLED,), True), (3, (CALLED,), False), (3, (CALLED, SOFTMAX), True)],
)
def test_a_call_over_several_lines(
    in_one_call: int, places: tuple[FrameShare, ...], is_known: bool
) -> None:
    """`need_weights=False` may stand in a line that was not read."""
    first = [replace(one, line="x, _ = self.attn(") for one in places]
    settings = Settings(attention_weights=replaced(in_one_call=in_one_call))
    assert bool(weights_thrown_away(first, settings)) is is_known
