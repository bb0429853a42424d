"""A net that does not learn answers in each step, on a CPU."""

from dataclasses import replace
from typing import Any

import pytest

from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.frozen_net import frozen_net
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, window

ASKER = "to_latent.<locals>.<listcomp> (train.py:98)"
CONV = "Conv2d._conv_forward (torch/nn/modules/conv.py:560)"


def net_at(at: str, share: float, **fields: Any) -> FrameShare:
    given = {"phase": "forward", "samples": 100, "in_net": True, "line": "x = self.conv1(x)"}
    return FrameShare(share, CONV, **{"caller": at, **given, **fields})


def seen(*more: FrameShare, **frozen: Any) -> StepWindow:
    encoder = net_at("Encoder.forward (vae.py:50)", 0.6, **{"asked": ASKER, **frozen})
    own = net_at("Memory.forward (rnn.py:64)", 0.1)
    backward = FrameShare(0.25, "_engine_run_backward (torch/autograd/graph.py:1072)", None,
                          phase="backward", samples=100)  # fmt: skip
    stacks = Stacks(100, (encoder, own, backward, *more), 0, (), None, main_unplaced=0.0)
    return window(even(60, forward_ms=70, backward_ms=25, optimizer_ms=5), stacks=stacks)


def test_a_net_that_does_not_learn_is_the_verdict() -> None:
    found = frozen_net(seen())
    assert found is not None
    assert found.headline == "a net that does not learn takes 60% of each step"
    assert "to_latent (train.py:98)" in found.advice[0]
    assert found.forecast is not None
    assert found.forecast.low == 1.0
    assert found.forecast.speedup == pytest.approx(2.5)
    judged = Engine().judge(seen()).finding
    assert (judged.kind, judged.sub) == ("compute", "frozen-net")


def test_the_net_that_learns_may_be_asked_without_gradients_as_well() -> None:
    """Labels that it guesses, an average of it, a target that follows it."""
    also = net_at("Encoder.forward (vae.py:52)", 0.06)
    assert frozen_net(seen(also)) is None
    few = net_at("Head.forward (vae.py:90)", 0.06, asked=ASKER)
    assert frozen_net(seen(also, few)) is None, "what else the same line asks"


def test_a_teacher_of_the_same_class_that_nothing_updates_is_fixed() -> None:
    """TinyBERT on two cores: 2.4x with its teacher's answers stored."""
    student = net_at("Encoder.forward (vae.py:52)", 0.2)
    found = frozen_net(seen(student, fixed=True))
    assert found is not None
    assert found.headline == "a net that does not learn takes 60% of each step"


def test_what_is_asked_about_noise_cannot_be_stored() -> None:
    """A teacher whose texts lose other words in each step."""
    assert frozen_net(seen(redrawn=True)) is None


def test_a_stack_without_the_frame_that_asks_is_no_net_that_learns() -> None:
    """A sample in a hundred is taken while frames are pushed and popped."""
    torn = net_at("Encoder.forward (vae.py:52)", 0.01)
    found = frozen_net(seen(torn))
    assert found is not None
    assert found.headline == "a net that does not learn takes 60% of each step"


@pytest.mark.parametrize(
    "frozen",
    [
        {"asked": ""},
        {"asked": "target_values (dqn.py:30)"},
        {"line": "q = self.target_net(x)"},
        {"line": "k = self.momentum_encoder(x)"},
        {"line": "fakes = netG(z)"},
        {"line": "x = self.generator(z)"},
    ],
)
def test_a_target_moves(frozen: dict[str, Any]) -> None:
    assert frozen_net(seen(**frozen)) is None


def test_a_layer_that_averages_follows_no_net() -> None:
    given = seen(line="x = self.avgpool(x)")
    assert frozen_net(given) is not None


def test_of_a_librarys_net_only_the_call_is_known() -> None:
    """A BERT whose answers a head of the user's learns from may be stored; not where another net of
    that library learns, which may be the same one."""
    call = {"caller": "to_latent (train.py:98)"}
    assert frozen_net(seen(**call)) is None, "one of PyTorch's own, in the user's function"
    bert = {**call, "library": "transformers/"}
    found = frozen_net(seen(**bert))
    assert found is not None
    assert found.headline == "a net that does not learn takes 60% of each step"
    begins = net_at("to_latent (train.py:98)", 0.05, asked=ASKER)
    assert frozen_net(seen(begins, **bert)) is not None, "a sample at PyTorch's call of it"
    student = net_at("train (train.py:60)", 0.1, library="transformers/")
    assert frozen_net(seen(student, **bert)) is None
    head = net_at("train (train.py:60)", 0.1, library="torchvision/")
    assert frozen_net(seen(head, **bert)) is not None


def on_gpu(
    asked: int, learning: int, lag_ms: float, forward_ms: float = 50.0, **fields: Any
) -> StepWindow:
    """A step of 100 ms on the GPU, so many of a hundred samples in either net."""
    encoder = net_at("Encoder.forward (vae.py:50)", asked / 100, asked=ASKER, **fields)
    own = net_at("Memory.forward (rnn.py:64)", learning / 100)
    waits = FrameShare(
        1 - (asked + learning) / 100, "train (train.py:70)", None, "running += loss.item()",
        phase="synchronisation", samples=100,
    )  # fmt: skip
    seen = Stacks(100, (encoder, own, waits), 0, (), None, main_unplaced=0.0)
    host = even(60, forward_ms=80, backward_ms=10, optimizer_ms=10)
    parts = {"forward_ms": forward_ms, "backward_ms": 95 - forward_ms, "optimizer_ms": 5}
    return gpu_window(
        host, {**parts, "lag_ms": lag_ms}, stacks=seen, activity=activity(95.0, sm=80.0)
    )


def test_on_a_gpu_a_forward_as_long_as_its_backward_has_a_net_that_does_not_learn() -> None:
    """DiT with a frozen VAE on an H200: 121 and 111 ms of 250."""
    seen = on_gpu(4, 8, lag_ms=40)
    found = frozen_net(seen)
    assert found is not None
    assert found.share == pytest.approx(0.5 - 0.45 / 1.87)
    assert [one.source for one in found.evidence] == ["py-spy", "event"]
    assert found.evidence[1].text.startswith("the forward takes 50% of each step on the GPU")
    assert found.forecast is not None
    assert found.forecast.low == 1.0
    judged = Engine().judge(seen).finding
    assert (judged.kind, judged.sub) == ("compute", "frozen-net")


def test_a_forward_half_as_long_as_its_backward_has_none_that_takes_time() -> None:
    assert frozen_net(on_gpu(4, 8, lag_ms=40, forward_ms=33)) is None


@pytest.mark.parametrize(("asked", "learning"), [(1, 8), (4, 2), (2, 60)])
def test_few_samples_of_a_host_that_runs_ahead_show_no_such_net(asked: int, learning: int) -> None:
    """The net that learns may only not have been met; or the other is small, and the student's own
    frozen weights shorten its backward."""
    assert frozen_net(on_gpu(asked, learning, lag_ms=40)) is None


def test_where_the_gpu_keeps_up_with_the_host_its_time_is_the_hosts() -> None:
    found = frozen_net(on_gpu(30, 30, lag_ms=0.0))
    assert found is not None
    assert found.share == pytest.approx(0.3)
    assert len(found.evidence) == 1
    assert frozen_net(on_gpu(4, 8, lag_ms=0.0)) is None


def test_without_the_gpus_clock_samples_do_not_show_what_kernels_take() -> None:
    assert frozen_net(replace(seen(), gpu_present=True)) is None


def test_on_a_gpu_products_in_fp32_come_before_a_smaller_net_that_does_not_learn() -> None:
    given = on_gpu(4, 8, lag_ms=40)
    assert given.stacks is not None
    products = tuple(
        replace(one, frame="Linear.forward (torch/nn/modules/linear.py:134)")
        for one in given.stacks.main
    )
    fp32 = replace(
        given,
        stacks=replace(given.stacks, main=products),
        settings=settings(matmul_precision="highest", autocast=""),
        activity=activity(95.0, sm=90.0, fp32=60.0, tensor=0.0, dram=15.0),
    )
    judged = Engine().judge(fp32).finding
    assert (judged.kind, judged.sub) == ("compute", "precision")
