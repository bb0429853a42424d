"""Batches that are mostly padding: what is claimed of them, and where nothing is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gpuwatch.tui.settings import Settings, StepOperations
from gpuwatch.tui.steps import Padding
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.findings import Finding
from gpuwatch.tui.verdict.rules.padding import lengths_of, padding
from gpuwatch.tui.verdict.stack_samples import FrameShare, StackPhase, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.noted import settings
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import MIB, MS, even, loader, stacks, window

ON_CPU = Settings(parameters=28, parameter_bytes=1 * MIB, parameter_device="cpu")
NET: dict[str, Any] = {"data_ms": 1, "forward_ms": 40, "backward_ms": 80, "optimizer_ms": 4}
ON_GPU: dict[str, Any] = {
    "forward_ms": 30,
    "backward_ms": 60,
    "optimizer_ms": 5,
    "other_ms": 0,
    "lag_ms": 60,
}
HOST: dict[str, Any] = {"data_ms": 0.1, "forward_ms": 30, "backward_ms": 60, "optimizer_ms": 5}


def masks(rows: Sequence[tuple[int, int, int]]) -> tuple[Padding, ...]:
    """Batches of 16: length, mean of what is kept, the longest text."""
    return tuple(
        Padding(at * 250 * MS, 1, 16, length, 16 * kept, longest)
        for at, (length, kept, longest) in enumerate(rows, 1)
    )


FIXED = masks([(128, 30, 64), (128, 34, 60), (128, 32, 70), (128, 33, 66), (128, 31, 60)] * 2)
"""A quarter of them is text, and half of them would be with padding to the longest."""
VARIED = masks([(70, 30, 70), (64, 34, 64), (90, 32, 90), (80, 33, 80), (76, 31, 76)] * 2)
FULL = masks([(128, 128, 128)] * 10)


def found_of(seen: StepWindow) -> Finding:
    found = padding(seen)
    assert found is not None
    return found


def on_cpu(seen: tuple[Padding, ...], **fields: Any) -> StepWindow:
    given: dict[str, Any] = {"settings": ON_CPU, "loaders": (loader(0),), **fields}
    return window(even(60, **NET), padding=seen, **given)


def test_lengths_are_sums_and_not_means_of_shares() -> None:
    seen = lengths_of(FIXED)
    assert seen is not None
    assert (seen.batches, seen.longest, seen.lengths, seen.mean) == (10, 70, (128, 128), 32)
    assert seen.kept == pytest.approx(32 / 128)
    assert seen.padding.mean == pytest.approx(0.75)
    assert seen.to_longest == pytest.approx(64 / 128)
    assert seen.is_fixed
    varied = lengths_of(VARIED)
    assert varied is not None
    assert not varied.is_fixed
    assert varied.to_longest == 1.0


def test_what_many_operations_cost_once_does_not_go_with_the_tokens() -> None:
    """Adapters train few tensors of many: 2.0x was said by those, and 1.2x measured."""
    by_tensors = found_of(on_cpu(FIXED))
    traced = msgspec.structs.replace(ON_CPU, step_operations=StepOperations(2, 8_000, 110_000, 0))
    found = found_of(on_cpu(FIXED, settings=traced))
    assert by_tensors.share is not None
    assert found.share is not None
    assert found.share < 0.25 < 0.6 < by_tensors.share


def test_on_a_gpu_a_batch_is_padded_to_a_multiple() -> None:
    seen = lengths_of(FIXED, 48)
    assert seen is not None
    assert seen.to_longest == pytest.approx(96 / 128)
    beyond = lengths_of(FIXED, 96)
    assert beyond is not None
    assert beyond.to_longest == pytest.approx(96 / 128)
    varied = lengths_of(VARIED, 64)
    assert varied is not None
    assert varied.to_longest == 1.0, "no more than there is"


def test_padding_to_one_length_is_trimmed_first_and_forecast_so() -> None:
    found = found_of(on_cpu(FIXED))
    once_ms = 28 * 0.11 + MIB * 0.26e-6
    gone = (120 - once_ms) / 125
    assert found.share == pytest.approx(gone * (1 - 0.25 * 1.05), abs=0.01)
    assert found.headline == "75% of the tokens in a batch are padding"
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(1 / (1 - gone / 2), rel=0.01)
    assert found.forecast.kind == "at-least"
    first, second, third = found.advice
    assert first.startswith("pad each batch to its own longest text, 1.9x or more: no padding=")
    assert second.startswith("and then batches of texts of about one length")
    assert second.endswith("3.2x or more together")
    assert third.startswith("or pack texts")
    texts = [evidence.text for evidence in found.evidence]
    assert texts[0].startswith("75% of all positions in 10 batches (7")
    assert texts[1] == "texts have 32 tokens in the mean and 70 at most, batches 128"


def test_batches_of_all_lengths_are_grouped() -> None:
    found = found_of(on_cpu(VARIED))
    assert found.advice[0].startswith("batches of texts of about one length: a batch sampler")
    assert "lengths[part.indices]" in found.advice[1], "one that is there may sort by others"
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(found.speedup)
    assert Engine().judge(on_cpu(VARIED)).finding.kind == "padding"


def forward_in(unpacked: bool, by_position: bool = True, part: float = 0.5) -> Stacks:
    places = (
        FrameShare(part, "LSTM.forward (torch/nn/modules/rnn.py:9)", None, phase="forward",
                   in_net=True, unpacked=unpacked, by_position=by_position, samples=50),
        FrameShare(0.7 - part, "Linear.forward (torch/nn/modules/linear.py:9)", None,
                   phase="forward", in_net=True, unpacked=True, samples=50),
    )  # fmt: skip
    return replace(stacks(main=[(0.3, "x (y.py:1)", None)]), main=places)


def test_without_a_mask_it_is_asked_whether_texts_are_packed() -> None:
    by_ids = tuple(msgspec.structs.replace(one, by_ids=True) for one in FIXED)
    assert padding(on_cpu(by_ids)) is None, "no source was read"
    assert padding(on_cpu(by_ids, stacks=forward_in(unpacked=False))) is None
    found = found_of(on_cpu(by_ids, stacks=forward_in(unpacked=True)))
    assert found.advice[0].startswith("batches of texts of about one length")
    assert found.advice[0].endswith("pad_sequence, in the loader's collate_fn")
    assert not any("pack" in action for action in found.advice)
    assert found.forecast is not None
    with_masks = found_of(on_cpu(FIXED)).speedup
    assert found.speedup is not None
    assert with_masks is not None
    assert 1.0 < found.forecast.speedup == found.speedup < with_masks
    assert found.evidence[-1].text.startswith("without a mask: one id fills the rows up")


def test_of_packed_texts_what_follows_may_compute_padding_again() -> None:
    by_ids = tuple(msgspec.structs.replace(one, by_ids=True) for one in FIXED)

    def seen(part: float) -> Stacks:
        both = forward_in(unpacked=False, part=0.7 - part)
        scores = replace(
            both.main[1], unpacked=False, padded_again=True, caller="forward (net.py:9)"
        )
        return replace(both, main=(both.main[0], scores))

    found = found_of(on_cpu(by_ids, stacks=seen(0.4)))
    assert found.headline == "50% of what follows the packed layer is padding", (
        "32 of 64, not of 128"
    )
    assert found.advice[0].startswith(
        "no scores of padding, 1.2x or more: compute forward (net.py:9)"
    )
    assert found.forecast is not None
    assert found.forecast.kind == "at-least"
    assert padding(on_cpu(by_ids, stacks=seen(0.1))) is None, "a small layer"
    on_gpu = replace(on_cpu(by_ids, stacks=seen(0.4)), gpu_present=True)
    assert padding(on_gpu) is None, "which layer takes the GPU's time is not known"


def test_without_a_mask_a_part_of_the_net_computes_by_the_position() -> None:
    """Of a recommender only what embeds the padded history does: 2.4x was said, 1.05x measured."""
    by_ids = tuple(msgspec.structs.replace(one, by_ids=True) for one in FIXED)

    def share(stacks: Stacks) -> float | None:
        found = padding(on_cpu(by_ids, stacks=stacks))
        return None if found is None else found.share

    assert share(forward_in(unpacked=True, by_position=False)) is None
    assert share(forward_in(unpacked=True, part=0.2)) is None
    half, most = share(forward_in(True, part=0.4)), share(forward_in(True, part=0.65))
    assert half is not None
    assert most is not None
    assert half < most
    layers = forward_in(unpacked=True, part=0.65)
    by_hand = replace(layers.main[0], caller="MultiHeadAttention.forward (layers.py:9)")
    attends = share(replace(layers, main=(by_hand, *layers.main[1:])))
    assert attends is not None
    assert attends > most, "attention goes by the square of the positions"
    with_masks = on_cpu(FIXED, stacks=forward_in(unpacked=True, by_position=False))
    assert padding(with_masks) is not None


def test_a_call_of_the_users_is_as_good_as_a_layer() -> None:
    by_ids = tuple(msgspec.structs.replace(one, by_ids=True) for one in FIXED)
    place = FrameShare(0.7, "Net.forward (net.py:9)", None, "x = F.conv1d(x, w)", "forward",
                       in_net=True, unpacked=True, samples=50)  # fmt: skip
    seen = replace(stacks(main=[(0.3, "x (y.py:1)", None)]), main=(place,))
    assert padding(on_cpu(by_ids, stacks=seen)) is not None
    other = replace(seen, main=(replace(place, line="x = self.mlp(x.mean(1))"),))
    assert padding(on_cpu(by_ids, stacks=other)) is None


def test_a_forward_counts_as_far_as_it_is_below_a_module() -> None:
    """Of one that is longer than its backward samples show whether it is the net's: dropout draws
    its numbers there. Without samples no more counts than the backward takes."""
    rows = even(60, data_ms=1, forward_ms=80, backward_ms=30, optimizer_ms=4)
    given: dict[str, Any] = {"padding": VARIED, "settings": ON_CPU, "loaders": (loader(0),)}

    def share(in_net: float | None) -> float:
        if in_net is None:
            return found_of(window(rows, **given)).share or 0.0
        places = (
            FrameShare(0.7 * in_net, "dropout (torch/nn/functional.py:9)", None, phase="forward",
                       in_net=True),
            FrameShare(0.7 * (1 - in_net), "augment (train.py:9)", None, phase="forward"),
        )  # fmt: skip
        seen = replace(stacks(main=[(0.3, "x (y.py:1)", None)]), main=places)
        return found_of(window(rows, stacks=seen, **given)).share or 0.0

    gone = 1 - 1.05 * 32 / 76
    assert share(1.0) == pytest.approx(gone * (110 - 3.4) / 115, abs=0.01)
    assert share(0.5) == pytest.approx(gone * (70 - 3.4) / 115, abs=0.01)
    assert share(None) == pytest.approx(gone * (60 - 3.4) / 115, abs=0.01)


def test_few_batches_an_epoch_are_sorted_worse() -> None:
    many = found_of(on_cpu(VARIED, loaders=(loader(0, batches=1_000),)))
    few = found_of(on_cpu(VARIED, loaders=(loader(0, batches=40),)))
    assert (few.share or 0) < (many.share or 0)


@pytest.mark.parametrize(
    "seen", [(), FULL, FIXED[:4], masks([(128, 125, 128)] * 10), masks([(128, 0, 0)] * 10)],
    ids=["no masks", "packed", "few", "hardly any", "masks of nothing"],
)  # fmt: skip
def test_nothing_is_claimed(seen: tuple[Padding, ...]) -> None:
    found = padding(on_cpu(seen))
    if seen and not any(one.kept for one in seen):
        assert found is not None  # all of it is padding, and dividing by nothing is no matter
        return
    assert found is None


def test_a_net_whose_operators_are_the_time_gains_nothing() -> None:
    """150 tensors that take 0.11 ms each, whatever the batch."""
    small = replace_settings(ON_CPU, 1_060)
    assert padding(on_cpu(FIXED, settings=small)) is None


def replace_settings(given: Settings, tensors: int) -> Settings:
    return Settings(parameters=tensors, parameter_bytes=given.parameter_bytes)


def test_what_the_optimizer_and_the_loader_take_stays() -> None:
    slow = even(60, data_ms=100, forward_ms=10, backward_ms=20, optimizer_ms=60)
    found = found_of(window(slow, padding=FIXED, loaders=(loader(0),)))
    assert found.share == pytest.approx(0.74 * 30 / 190, abs=0.01)


def on_gpu(seen: tuple[Padding, ...], host: dict[str, Any], **fields: Any) -> StepWindow:
    given: dict[str, Any] = {
        "settings": settings(),
        "loaders": (loader(4, pin_memory=True),),
        "activity": activity(99, sm=95, tensor=30, fp32=3, dram=40),
        **fields,
    }
    return gpu_window(even(60, **host), ON_GPU, padding=seen, **given)


def test_on_a_gpu_that_is_the_limit_its_kernels_take_as_much_less() -> None:
    found = found_of(on_gpu(VARIED, HOST))
    left = 32 / 76 * 1.05
    kernels = (90 * (1 - (95 / 99 / 0.97) * (1 - left)) + 5) / 95
    assert found.speedup == pytest.approx(1 / kernels, rel=0.05)
    assert found.forecast is not None
    assert found.forecast.speedup == pytest.approx(0.95 * (found.speedup or 0))


def test_on_a_gpu_that_waits_for_launches_nothing_is_claimed() -> None:
    """The host needs all of the step: fewer tokens are as many launches."""
    host = {"data_ms": 0.2, "forward_ms": 40, "backward_ms": 45, "optimizer_ms": 5, "other_ms": 5}
    device = {**ON_GPU, "forward_ms": 40, "backward_ms": 45, "lag_ms": 0.02}
    seen = gpu_window(
        even(60, **host),
        device,
        padding=VARIED,
        settings=settings(),
        loaders=(loader(4, pin_memory=True),),
        activity=activity(40, sm=30, tensor=10, fp32=3, dram=20),
    )
    assert padding(seen) is None


def test_kernels_that_fill_no_gpu_take_as_long_for_fewer_tokens() -> None:
    thin = activity(99, sm=4, tensor=2, fp32=1, dram=2)
    assert padding(on_gpu(VARIED, HOST, activity=thin)) is None


def test_a_recurrent_layer_has_kernels_for_each_position() -> None:
    """Though they fill no GPU, and though the host needs all of the step to launch them."""
    layer = FrameShare(0.6, "LSTM.forward (torch/nn/modules/rnn.py:9)", None, phase="forward",
                       in_net=True, samples=50)  # fmt: skip
    seen = replace(stacks(main=[(0.4, "x (y.py:1)", None)]), main=(layer,))
    thin = activity(83, sm=45, tensor=2, fp32=1, dram=2)
    found = found_of(on_gpu(VARIED, HOST, activity=thin, stacks=seen))
    assert found.share == pytest.approx(90 / 95.1 * (1 - 32 / 76 * 1.05), abs=0.01)
    assert padding(on_gpu(VARIED, HOST, activity=None, stacks=seen)) is None
    linear = replace(layer, frame="Linear.forward (torch/nn/modules/linear.py:9)")
    other = replace(seen, main=(linear,))
    assert (found_of(on_gpu(VARIED, HOST, stacks=other)).share or 0) != found.share


def test_python_between_a_batch_and_its_backward_is_not_the_recurrent_nets() -> None:
    """Texts that are cleaned for 70 % of each step, within the forward by the marks."""
    host = {"data_ms": 0.1, "forward_ms": 80, "backward_ms": 10, "optimizer_ms": 10}
    thin = activity(15, sm=5, tensor=1, fp32=1, dram=2)

    def share(python: float, phase: StackPhase = "other") -> float:
        places = (
            FrameShare(python, "augment (train.py:20)", None, "words = clean(words)", phase),
            FrameShare(0.8 - python, "LSTM.forward (torch/nn/modules/rnn.py:9)", None,
                       phase="forward", in_net=True),
        )  # fmt: skip
        seen = replace(stacks(main=[(0.2, "x (y.py:1)", None)]), main=places)
        return found_of(on_gpu(VARIED, host, activity=thin, stacks=seen)).share or 0.0

    gone = 1 - 32 / 76 * 1.05
    assert share(0.7) == pytest.approx(0.2 * gone, abs=0.01)
    assert share(0.4) == pytest.approx(0.5 * gone, abs=0.01)
    assert share(0.4, "checkpoint") == pytest.approx(0.6 * gone, abs=0.01), "no more than is left"


def test_without_the_counters_nothing_is_claimed_of_a_gpu() -> None:
    assert padding(on_gpu(VARIED, HOST, activity=None)) is None


def test_users_of_the_trainer_read_its_arguments() -> None:
    seen = stacks(main=[(0.5, "training_step (transformers/trainer.py:2)", None)])
    trains: Stacks = replace(seen, framework="transformers")
    found = Engine().judge(on_cpu(VARIED, stacks=trains)).finding
    assert found.kind == "padding"
    assert found.advice[0].startswith("group_by_length=True, in transformers 5 train_sampling_")
