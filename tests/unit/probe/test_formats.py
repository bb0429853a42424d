"""Layers of a run that are tried in other formats."""

import signal
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from gpuwatch.probe.settings import formats
from gpuwatch.probe.settings.formats import (
    AT_ONCE_NS,
    FORMATS,
    MOST_LOOKS,
    PAUSE,
    SAME_NET,
    Formats,
)
from gpuwatch.probe.settings.layers import (
    Convolution,
    Format,
    How,
    MatrixProduct,
    Recurrent,
    formats_of,
)
from gpuwatch.probe.settings.sampler import AGAIN_NS, SettingsSampler
from gpuwatch.probe.settings.users import users_below
from tests.unit.probe.held_clock import watched


def net_of(*middle: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), *middle, nn.Flatten(), nn.LazyLinear(4))


def nodes_of(net: nn.Module, samples: int = 4) -> Iterable[Any]:
    loss = cross_entropy(net(torch.randn(samples, 3, 12, 12)), torch.zeros(samples).long())
    return users_below(loss.grad_fn)[1]


def planned(net: nn.Module, tick_ns: int) -> Formats:
    """With a clock that goes on by so much whenever it is read: a run takes one tick."""
    clock = count(0, tick_ns)
    made = Formats(lambda: next(clock))
    for _ in range(SAME_NET):
        made.plan(nodes_of(net))
    return made


def tried(made: Formats, most: int = 10_000) -> dict[str, Any]:
    for _ in range(most):
        if found := made.turn():
            return found
    raise AssertionError("it did not end")


def test_layers_that_are_alike_are_tried_once_and_count_as_often_as_they_are() -> None:
    """Two convolutions of one shape, another one, and a linear layer: each takes a tick."""
    same = [nn.Conv2d(8, 8, 3, padding=1) for _ in range(2)]
    made = planned(net_of(*same), tick_ns=100_000)
    part, now_us, last_us, bf16_us = tried(made)[FORMATS]
    assert part == 1.0
    assert (now_us, last_us, bf16_us) == (400, 400, 400)
    assert made.is_over


def test_what_takes_little_is_not_tried() -> None:
    """A part of the time stands for all of it."""
    many = [nn.Conv2d(8, 8, 1) for _ in range(20)]
    part, now_us, *_ = tried(planned(net_of(*many), tick_ns=100_000))[FORMATS]
    assert part == pytest.approx(20 / 22, abs=1e-9)
    assert now_us == 2_200


def test_trying_takes_a_small_part_of_the_time() -> None:
    """A run of a layer takes 10 ms: 20 ms at once are over after the first layer, of three runs."""
    now = [0]

    def clock() -> int:
        now[0] += 10_000_000
        return now[0]

    made, net = Formats(clock), net_of()
    for _ in range(SAME_NET):
        made.plan(nodes_of(net))
    assert made.turn() == {}
    took_ns, waits = now[0], 0
    assert took_ns > AT_ONCE_NS
    while not made.turn():
        waits += 1
        now[0] += 1_000_000
    assert now[0] > PAUSE * took_ns / 2


def test_what_was_tried_when_the_time_was_over_stands_for_all() -> None:
    """Others take the cores, and runs take ten times as long: so each is of one sample of four."""
    made = planned(net_of(nn.Conv2d(8, 8, 3)), tick_ns=50_000_000)
    part, now_us, *_ = tried(made)[FORMATS]
    assert 0 < part < 1
    assert now_us == pytest.approx(3 * 4 * 50_000, rel=0.01)


@pytest.mark.parametrize("off", ["autocast", "profiler", "mode"])
def test_nothing_of_the_programs_sees_it(off: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    made = planned(net_of(), tick_ns=1_000)
    seen: dict[str, Any] = {
        "autocast": torch.autocast("cpu", torch.bfloat16),
        "profiler": torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
        "mode": FlopCounterMode(display=False),
    }
    with seen[off]:
        assert made.turn() == {}
    assert tried(made)


def test_an_operator_that_fails_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("could not create a primitive")

    made = planned(net_of(), tick_ns=1_000)
    monkeypatch.setattr(Convolution, "made", fails)
    assert tried(made) == {FORMATS: None}
    assert made.is_over


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(3, 4)(torch.empty(0, 3)),
        lambda: nn.Conv2d(3, 4, 3)(torch.empty(0, 3, 8, 8)),
        lambda: torch.ones(5, 3, requires_grad=True) @ torch.ones(3, 0, requires_grad=True),
    ],
    ids=["an expert without words", "no proposals", "no outputs"],
)
def test_layers_of_nothing_are_none(make: Callable[[], torch.Tensor]) -> None:
    """A mixture of experts, and Mask R-CNN: a division by zero disarmed the probe."""
    made = Formats(lambda: 0)
    for _ in range(SAME_NET):
        made.plan(users_below(make().sum().grad_fn)[1])
    assert made.turn() == {}
    assert made.is_over


def test_what_a_handler_of_the_programs_raises_is_the_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A watchdog's timeout was swallowed with what this torch cannot do."""

    class TimeUp(RuntimeError):
        pass

    def alarm(_: int, __: object) -> None:
        raise TimeUp

    def raises(self: Convolution, form: Format) -> object:
        signal.raise_signal(signal.SIGALRM)
        return None

    made = planned(net_of(), tick_ns=1_000)
    monkeypatch.setattr(Convolution, "made", raises)
    before = signal.signal(signal.SIGALRM, alarm)
    try:
        with pytest.raises(TimeUp):
            tried(made)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_two_nets_by_turns_are_not_tried() -> None:
    """A GAN: what one of its nets takes is no part of the step that is known."""
    made, nets = Formats(lambda: 0), (net_of(), net_of(nn.Conv2d(8, 6, 3)))
    for net in (nets[0], nets[0], nets[1]):
        made.plan(nodes_of(net))
    assert made.is_over
    assert made.turn() == {}


def test_a_net_with_volumes_is_not_tried_in_channels_last() -> None:
    """`net.to(memory_format=torch.channels_last)` fails there."""
    volumes = nn.Conv3d(2, 4, 3)

    def nodes() -> Iterable[Any]:
        pictures = nn.Conv2d(3, 8, 3)(torch.randn(2, 3, 12, 12)).mean()
        return users_below((pictures + volumes(torch.randn(1, 2, 9, 9, 9)).mean()).grad_fn)[1]

    clock = count(0, 1_000)
    made = Formats(lambda: next(clock))
    for _ in range(SAME_NET):
        made.plan(nodes())
    assert not any(Format.CHANNELS_LAST in formats_of(layer) for layer, _ in made._left)
    assert len(made._left) == 2


@pytest.mark.parametrize(
    ("shortcut", "orders"),
    [
        (nn.Conv2d(3, 8, 1, stride=2), False),
        (nn.Conv2d(3, 8, 1), True),
        (nn.Conv2d(3, 8, 3, stride=2, padding=1), True),
    ],
    ids=["strided pixels", "pixels", "strided"],
)
def test_a_shortcut_of_few_channels_keeps_a_net_from_channels_last(
    shortcut: nn.Module, orders: bool
) -> None:
    """oneDNN writes beyond its memory there: a trial killed a training."""

    def nodes() -> Iterable[Any]:
        pictures = torch.randn(2, 3, 12, 12)
        out = nn.Conv2d(3, 8, 3)(pictures).mean() + shortcut(pictures).mean()
        return users_below(out.grad_fn)[1]

    clock = count(0, 1_000)
    made = Formats(lambda: next(clock))
    for _ in range(SAME_NET):
        made.plan(nodes())
    assert made._left
    found = [Format.CHANNELS_LAST in formats_of(layer) for layer, _ in made._left]
    assert found == [orders] * len(found)


def test_what_may_break_in_its_own_order_is_not_tried() -> None:
    """Of a net that is in channels_last by now."""

    def nodes() -> Iterable[Any]:
        pictures = torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last)
        out = nn.Conv2d(3, 8, 3)(pictures).mean() + nn.Conv2d(3, 8, 1, stride=2)(pictures).mean()
        return users_below(out.grad_fn)[1]

    clock = count(0, 1_000)
    made = Formats(lambda: next(clock))
    for _ in range(SAME_NET):
        made.plan(nodes())
    assert not made._left


@pytest.mark.parametrize(
    ("dilated", "is_tried"),
    [
        (nn.Conv2d(8, 8, 3, dilation=2), False),
        (nn.Conv2d(8, 8, 3), True),
        (nn.Sequential(nn.Conv2d(8, 64, 3), nn.Conv2d(64, 64, 3, dilation=2)), True),
        (nn.Sequential(nn.Conv2d(8, 64, 3), nn.Conv2d(64, 33, 3, dilation=2)), False),
    ],
    ids=["dilated, 8 channels", "8 channels", "dilated, 64", "dilated, 33"],
)
def test_a_dilated_convolution_of_no_whole_vectors_keeps_a_net_from_bf16(
    dilated: nn.Module, is_tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """oneDNN reads beyond its memory there, which killed a loop of such trials."""
    forms: set[Format] = set()
    made_in = Convolution.made

    def made(self: Convolution, form: Format) -> object:
        forms.add(form)
        return made_in(self, form)

    monkeypatch.setattr(Convolution, "made", made)
    monkeypatch.setattr(formats, "multiplies_bf16", lambda _: True)
    assert tried(planned(net_of(dilated), tick_ns=1_000))[FORMATS]
    assert (Format.BF16 in forms) == is_tried


@pytest.mark.parametrize(
    ("channels", "width", "is_broken"),
    [(4, 16, True), (16, 64, True), (4, 7, False), (32, 16, False)],
)
def test_a_wide_depthwise_convolution_of_few_channels_is_not_tried_in_bf16(
    channels: int, width: int, is_broken: bool
) -> None:
    """oneDNN never ends making code for EEGNet's, which hung in a trial."""
    how = How((1, 1), (0, width // 2), (1, 1), False, (0, 0), channels)
    picture = (32, channels, 1, 750)
    layer = Convolution(picture, (channels, 1, 1, width), picture, how, False, *4 * (True,))
    assert layer.is_broken_in_bf16 == is_broken


@pytest.mark.parametrize(
    ("size", "step", "is_broken"), [(1, 3, True), (1, 1, False), (3, 3, False)]
)
def test_a_volumes_kernel_that_skips_is_not_tried_in_bf16(
    size: int, step: int, is_broken: bool
) -> None:
    how = How((step, 1, 1), (0, 2, 2), (1, 1, 1), False, (0, 0, 0), 1)
    operand, result = (1, 67, 14, 8, 12), (1, 39, 5, 8, 12)
    layer = Convolution(operand, (39, 67, size, 5, 5), result, how, True, *4 * (True,))
    assert layer.is_broken_in_bf16 == is_broken


def test_what_is_cut_has_whole_vectors_of_channels() -> None:
    """A dilated convolution of 256 channels was tried with 100, which oneDNN may break."""
    how = How((1, 1), (2, 2), (2, 2), False, (0, 0), 1)
    whole = Convolution(
        (8, 256, 56, 56), (256, 256, 3, 3), (8, 256, 56, 56), how, True, *4 * (True,)
    )
    for most in (3 * 10**8, 5 * 10**8, 10**9, 7 * 10**9):
        assert not whole.at_most(most).is_broken_in_bf16


def test_what_cannot_be_cut_is_not_tried() -> None:
    """An LSTM of 1,024 on 256 samples side by side stopped the run for 4.5 s."""
    wide = (4_096, 1_024)
    shapes = (wide, wide, (4_096,), (4_096,))
    huge = Recurrent((35, 256, 1_024), shapes, (256, 1_024), (2, 1_024, 1), True, False)
    small = MatrixProduct(0, 64, 64, 64, True, True, True)
    assert formats._to_try({huge: 1, small: 1}) == []
    assert formats._to_try({small: 2}) == [(small, 2)]


def test_commands_that_are_off_keep_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_CONTROL", "0")
    assert Formats(lambda: 0).is_over


def test_a_net_without_products_is_looked_at_a_few_times() -> None:
    made = Formats(lambda: 0)
    for _ in range(MOST_LOOKS):
        assert not made.is_over
        made.plan(users_below((2 * torch.ones(3, requires_grad=True)).sum().grad_fn)[1])
    assert made.is_over


def losses(probed: bool) -> tuple[list[float], dict[str, Any]]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Dropout(0.5), nn.Flatten(), nn.Linear(800, 4))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    found = []
    with watched() as run:
        sampler, ticks = SettingsSampler(run.recorder), count(0, 1_000)
        sampler._formats = Formats(lambda: next(ticks))  # the recorder's clock is held
        for _ in range(40):
            run.clock.work(AGAIN_NS / 1e6)
            if probed:
                sampler.ask()
            optimizer.zero_grad()
            loss = cross_entropy(net(torch.randn(4, 3, 12, 12)), torch.zeros(4).long())
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        assert not run.failures
        return found, sampler.reading


@pytest.mark.skipif(
    not hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata"),
    reason="the graph of this torch (2.4) tells no types",
)
def test_a_loop_under_the_hooks_has_them_and_the_very_same_losses() -> None:
    bare, _ = losses(probed=False)
    seen, reading = losses(probed=True)
    assert seen == bare
    part, *took_us = reading[FORMATS]
    assert part == 1.0
    assert took_us == [2, 2, 2]
