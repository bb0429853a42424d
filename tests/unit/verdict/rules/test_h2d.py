"""Copying batches to the GPU."""

from dataclasses import replace

import pytest
from msgspec import structs

from gpuwatch.tui.messages import Loader
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.h2d import h2d
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.thresholds.gpu import FORWARD_OF_BACKWARD
from tests.unit.verdict.on_gpu import activity, gpu_step, gpu_window
from tests.unit.verdict.windows import even, loader, run

STEPS = even(60, data_ms=0.2, forward_ms=12, backward_ms=8, optimizer_ms=2)

ON_GPU = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 8, "optimizer_ms": 2}


def on_line(share: float, line: str) -> Stacks:
    """Main-thread samples, so many of them on a line that says this."""
    waits = FrameShare(share, "train (train.py:88)", None, line)
    rest = FrameShare(1 - share, "forward (model.py:12)", None, "x = self.layer(x)")
    return Stacks(200, (waits, rest), 0, (), None)


def batches(pinned: bool, mib: float = 60, tensors: int = 2, device: str = "cpu") -> tuple[Loader]:
    """One loader, with batches like that."""
    return (
        loader(
            4, batch_bytes=round(mib * 2**20), batch_tensors=tensors, batch_device=device,
            pinned=pinned if device == "cpu" else None,
        ),
    )  # fmt: skip


def test_the_backward_tells_how_much_of_the_forwards_phase_copies_can_be() -> None:
    """Generated run 817: 57 samples had 75 % of a step on the line that copies, and its net, whose
    backward took 33 ms, would have had 4 ms for its forward. 2.5x was measured, and 3.2x said."""
    steps = even(60, data_ms=1, forward_ms=137, backward_ms=33, optimizer_ms=2)
    on_gpu = {"data_ms": 1, "forward_ms": 137, "backward_ms": 33, "optimizer_ms": 2}
    seen = gpu_window(
        steps, on_gpu, loaders=batches(pinned=False, mib=0.5, tensors=64),
        stacks=on_line(0.75, "extra.to(device)"), activity=activity(19, pcie_rx_mb_s=150.0),
    )  # fmt: skip
    found = h2d(seen)
    assert found is not None
    net_ms = (1 + FORWARD_OF_BACKWARD) * 33
    assert found.speedup == pytest.approx(173 / (net_ms + 2), rel=0.04)


@pytest.mark.parametrize(
    ("loaders", "rx", "sub", "share"),
    [
        (batches(pinned=False), 2950.0, "pageable", 0.5),
        (batches(pinned=True), 13_400.0, "bandwidth", 0.5),
        (batches(pinned=False), 5900.0, "pageable", 0.7),
    ],
    ids=["pageable", "pinned", "not more than the GPU idles"],
)
def test_copies_by_what_pcie_carries(
    loaders: tuple[Loader], rx: float, sub: str, share: float
) -> None:
    seen = gpu_window(STEPS, ON_GPU, loaders=loaders, activity=activity(30, pcie_rx_mb_s=rx))
    found = h2d(seen)
    assert found is not None
    assert found.sub == sub
    assert found.share == pytest.approx(share, abs=0.01)
    assert "of about 27 possible" in found.evidence[0].text
    assert Engine().judge(seen).finding.kind == "h2d"


@pytest.mark.parametrize(
    ("line", "copied_in", "share"),
    [
        ("mask = torch.BoolTensor(x.size()).fill_(0)", "MaskConv.forward (a.py:21)", 0.22),
        ("mask = torch.zeros(batch, length)", "MaskConv.forward (a.py:21)", 0.22),
        ("mask = torch.zeros(n, length, device=x.device)", "MaskConv.forward (a.py:21)", 0.15),
        ("mask = torch.FloatTensor(rows)", "MaskConv.forward (a.py:21)", 0.15),
        ("mask = torch.BoolTensor(x.size()).fill_(0)", "train (b.py:88)", 0.15),
    ],
    ids=["of a type", "without a device", "on the GPU", "a batch", "another function copies"],
)  # fmt: skip
def test_what_is_filled_on_the_host_and_copied_by_the_next_line(
    line: str, copied_in: str, share: float
) -> None:
    """DeepSpeech's masks: launches were blamed, and masks made on the GPU gave 1.36x."""
    places = (
        FrameShare(0.15, copied_in, None, "mask = mask.cuda()", "forward", in_net=True),
        FrameShare(0.07, "MaskConv.forward (a.py:19)", None, line, "forward", in_net=True),
        FrameShare(0.7, "forward (model.py:12)", None, "x = self.layer(x)", "forward"),
    )
    seen = gpu_window(
        STEPS, ON_GPU, loaders=batches(pinned=False), stacks=Stacks(200, places, 0, (), None),
        activity=activity(61, pcie_rx_mb_s=700.0),
    )  # fmt: skip
    found = h2d(seen)
    assert found is not None
    assert found.share == pytest.approx(share, abs=0.01)
    assert found.advice[0].startswith("make it on the GPU") == (share > 0.2)


def test_many_tiny_copies() -> None:
    seen = gpu_window(
        STEPS, ON_GPU, loaders=batches(pinned=False, mib=0.5, tensors=64),
        stacks=on_line(0.6, "batch = [t.to(device) for t in batch]"),
        activity=activity(25, pcie_rx_mb_s=150.0),
    )  # fmt: skip
    found = h2d(seen)
    assert found is not None
    assert found.sub == "tiny"
    assert found.share == pytest.approx(0.6, abs=0.01)
    assert "in 64 tensors" in found.evidence[0].text


@pytest.mark.parametrize(
    ("loaders", "reported"),
    [
        (batches(pinned=False), activity(99, pcie_rx_mb_s=5_000.0)),
        (batches(pinned=False), activity(30, pcie_rx_mb_s=150.0)),
        (batches(pinned=False), activity(30)),
        (batches(pinned=False, device="cuda"), activity(30, pcie_rx_mb_s=5_000.0)),
    ],
    ids=["hidden behind work", "launches alone", "no counter", "batches on the GPU"],
)
def test_no_copies_are_claimed(loaders: tuple[Loader], reported: object) -> None:
    assert h2d(gpu_window(STEPS, ON_GPU, loaders=loaders, activity=reported)) is None


@pytest.mark.parametrize(
    ("reported", "possible"),
    [
        ({"pcie_rx_mb_s": 13_000.0, "link_mb_s": 63_008.0}, "of about 55 possible"),
        ({"pcie_rx_mb_s": 5_000.0, "link_mb_s": 15_760.0}, "of about 14 possible"),
        ({"pcie_rx_mb_s": 13_000.0}, "of about 27 possible"),
        ({"pcie_rx_mb_s": 41_500.0}, "of about 55 possible"),
        ({"pcie_rx_mb_s": 58_000.0, "link_mb_s": 63_008.0}, "of about 58 possible"),
    ],
    ids=["this link", "an older one", "unknown", "unknown, and faster", "never beyond"],
)
def test_what_is_possible_is_this_links(reported: dict[str, float], possible: str) -> None:
    """41.5 GB/s of about 27 possible, it read."""
    seen = gpu_window(
        STEPS, ON_GPU, loaders=batches(pinned=True), activity=activity(10, **reported)
    )
    found = h2d(seen)
    assert found is not None
    assert possible in found.evidence[0].text
    assert found.share is not None
    assert found.share <= 0.9


def test_what_moves_while_nobody_copies_is_pinned() -> None:
    """The host sits in a copy from pageable memory. Where nobody knows whether batches are pinned
    and no sample of 200 is on a line that copies, 1.5 GB/s are not a quarter of the time."""
    counters = activity(59, pcie_rx_mb_s=1_500.0, link_mb_s=63_008.0)
    assert h2d(gpu_window(STEPS, ON_GPU, loaders=(), activity=counters)) is None, (
        "nobody has looked"
    )
    elsewhere = on_line(0.3, "loss.item()")
    assert h2d(gpu_window(STEPS, ON_GPU, loaders=(), activity=counters, stacks=elsewhere)) is None
    there = on_line(0.3, "batch = batch.to(device)")
    found = h2d(gpu_window(STEPS, ON_GPU, loaders=(), activity=counters, stacks=there))
    assert found is not None
    assert found.share == pytest.approx(0.3, abs=0.01)


def test_time_on_lines_that_copy_next_to_nothing_is_many_small_copies() -> None:
    """…but for what they can have waited for the work that was queued: the lag."""
    counters = activity(20, pcie_rx_mb_s=60.0)
    there = on_line(0.4, "extra.to(device)")
    behind = {**ON_GPU, "lag_ms": 20.0}
    found = h2d(gpu_window(STEPS, ON_GPU, activity=counters, stacks=there))
    assert found is not None
    assert found.share == pytest.approx(0.4, abs=0.01)
    assert found.sub == "tiny"
    assert h2d(gpu_window(STEPS, behind, activity=counters, stacks=there)) is None


@pytest.mark.parametrize(("rx", "sub"), [(3_200.0, "pageable"), (24_000.0, "bandwidth")])
def test_copies_that_are_slow_on_their_lines_are_from_pageable_memory(rx: float, sub: str) -> None:
    """The loader's batches are pinned, and 8 GB/s on the lines that copy are something else's."""
    counters = activity(40, pcie_rx_mb_s=rx, link_mb_s=63_008.0)
    there = on_line(0.4, "extra.to(device)")
    found = h2d(gpu_window(STEPS, ON_GPU, loaders=batches(True), activity=counters, stacks=there))
    assert found is not None
    assert found.sub == sub
    assert found.advice[0].startswith(".pin_memory()") == (sub == "pageable")


def test_what_recurrent_layers_read_over_the_link_is_no_copy() -> None:
    """Generated runs 64 and 1019: large LSTMs on an H200 read 8.6 and 12.3 GB/s, the second beside
    batches that lay on the GPU."""
    layer = FrameShare(0.2, "forward (torch/nn/modules/rnn.py:1169)", "f (net.py:3)", "", "forward")
    rest = FrameShare(0.8, "train (train.py:9)", None, "loss.item()", "synchronisation")
    recurrent = Stacks(200, (layer, rest), 0, (), None)
    busy = activity(70, pcie_rx_mb_s=12_300.0)
    small = batches(pinned=True, mib=0.5)
    assert h2d(gpu_window(STEPS, ON_GPU, loaders=small, activity=busy, stacks=recurrent)) is None
    large = batches(pinned=True, mib=100)
    found = h2d(gpu_window(STEPS, ON_GPU, loaders=large, activity=busy, stacks=recurrent))
    assert found is not None
    mb_s = 100 * 2**20 / 22.2e-3 / 1e6
    assert found.share == pytest.approx(mb_s / 26_800, rel=0.02)


@pytest.mark.parametrize("file", ["conv.py:9", "rnn.py:1169"])
def test_lines_that_copy_are_copies_whatever_the_net(file: str) -> None:
    """60 MiB a step from a generator of the program's own: an LSTM was told "0.0 GB/s" of them."""
    copied = FrameShare(0.5, "train (train.py:88)", None, "x = x.to(device)", "forward")
    layer = FrameShare(0.2, f"forward (torch/nn/modules/{file})", "f (net.py:3)", "", "forward")
    rest = FrameShare(0.3, "train (train.py:90)", None, "loss.backward()", "backward")
    seen = gpu_window(
        STEPS, ON_GPU, activity=activity(30, pcie_rx_mb_s=2950.0),
        stacks=Stacks(200, (copied, layer, rest), 0, (), None),
    )  # fmt: skip
    found = h2d(seen)
    assert found is not None
    assert found.sub == "pageable"
    assert found.evidence[0].text.startswith("3.0 GB/s")


def test_a_tensor_of_zeros_is_made_on_the_gpu() -> None:
    """A public seq2seq makes 123 MB of zeros on the host in each step, and was told to pin its
    loader's batches."""
    line = "outputs = torch.zeros(trg_length, batch_size, vocabulary).to(self.device)"
    seen = gpu_window(
        STEPS, ON_GPU, loaders=batches(pinned=False, mib=0.1),
        stacks=on_line(0.44, line), activity=activity(30, pcie_rx_mb_s=1500.0),
    )  # fmt: skip
    found = h2d(seen)
    assert found is not None
    assert found.advice[0].startswith("make it on the GPU, with device=...: `torch.zeros(")
    assert found.headline.startswith("making tensors on the host and copying them to the GPU")
    assert not any("a batch is" in one.text for one in found.evidence)
    wrapped = on_line(0.44, "b = Variable(torch.zeros(x.size(0), 10, 1152)).to(device)")
    old = h2d(gpu_window(STEPS, ON_GPU, stacks=wrapped, activity=activity(30, pcie_rx_mb_s=1500.0)))
    assert old is not None
    assert old.advice[0].startswith("make it on the GPU, with device=...: `Variable(torch.zeros(")
    read = on_line(0.44, "x = torch.tensor(row).to(self.device)")
    other = h2d(gpu_window(STEPS, ON_GPU, stacks=read, activity=activity(30, pcie_rx_mb_s=1500.0)))
    assert other is not None
    assert not other.advice[0].startswith("make it")


def test_idle_time_that_waits_for_data_is_no_copys() -> None:
    """BERT in fp32 on an H200, 91 % busy: its batches' `.to` wait for the GPU, and "copies take
    9 %" stood beside an input of 7 %."""
    steps = even(60, data_ms=5.8, forward_ms=64, backward_ms=12, optimizer_ms=3.5)
    parts = {"data_ms": 5.8, "forward_ms": 27, "backward_ms": 50, "optimizer_ms": 2.3}
    there = on_line(0.58, "return BatchEncoding(data).to(device)")
    seen = gpu_window(
        steps, parts, loaders=batches(False, mib=0.1, tensors=4), stacks=there,
        activity=activity(91, pcie_rx_mb_s=30.0),
    )  # fmt: skip
    assert h2d(seen) is None


NET = FrameShare(0.66, "forward (model.py:12)", None, "x = self.layer(x)", "forward", in_net=True)


def test_a_checkpoint_is_no_wait_that_goes_with_the_copies() -> None:
    """Generated run 1159: many tiny copies, 35 % of the samples, beside a checkpoint now and then,
    which a replay took for time in which the host waits for them: "a fix gives back about 15 %",
    and 2.1x was measured."""
    parts = {"data_ms": 1, "forward_ms": 84, "backward_ms": 26, "optimizer_ms": 1}
    steps = run(60, lambda n: {**parts, "checkpoint_ms": 560 if n % 20 == 0 else 0})
    saved = [
        structs.replace(
            row, checkpoint_ns=step.checkpoint_ns, gpu_end_ns=row.gpu_end_ns + step.checkpoint_ns
        )
        for step, row in ((step, gpu_step(step, **parts)) for step in steps)
    ]
    seen = gpu_window(
        steps, parts, loaders=batches(pinned=False, mib=0.1, tensors=64),
        stacks=on_line(0.35, "extra.to(device)"), activity=activity(14, pcie_rx_mb_s=30.0),
    )  # fmt: skip
    found = h2d(replace(seen, gpu_steps=tuple(saved)))
    assert found is not None
    assert found.share == pytest.approx(0.35)
    assert found.speedup == pytest.approx(1 / (1 - 0.35), rel=0.03)


def advised(*places: FrameShare) -> str:
    """First, of a run that copies."""
    seen = gpu_window(
        STEPS, ON_GPU, loaders=batches(pinned=False), activity=activity(61, pcie_rx_mb_s=700.0),
        stacks=Stacks(200, (*places, NET), 0, (), None),
    )  # fmt: skip
    found = h2d(seen)
    return "" if found is None else found.advice[0]


@pytest.mark.parametrize(
    "line",
    [
        "padded = torch.zeros(len(seqs), longest, dtype=torch.long)",
        "padded = torch.full((len(seqs), longest), PAD)",
        "padded = torch.empty(len(images), 3, height, width)",
    ],
)
@pytest.mark.parametrize("in_net", [True, False])
def test_a_batch_that_is_filled_row_by_row_is_data(line: str, in_net: bool) -> None:
    """ "make it on the GPU": each row would be a copy of its own then."""
    text = "padded[i, : len(s)] = torch.as_tensor(s)"
    made = FrameShare(0.02, "pad (train.py:30)", None, line, "forward", in_net=in_net)
    rows = FrameShare(0.18, "pad (train.py:32)", None, text, "forward", in_net=in_net)
    text = "padded = padded.to(device)"
    copied = FrameShare(0.14, "pad (train.py:33)", None, text, "forward", in_net=in_net)
    assert not advised(made, rows, copied).startswith("make it on the GPU")
    assert advised(made, copied).startswith("make it on the GPU") == in_net


@pytest.mark.parametrize(
    "line",
    [
        "noise = torch.randn(x.shape, device=x.device).to(x.dtype)",
        "mask = torch.ones(n, n, device=device).to(torch.bool)",
        "y = torch.zeros(n, 10).scatter_(1, labels.view(-1, 1), 1).to(device)",
        "table = torch.zeros(n, 10).to(dtype=torch.half)",
    ],
    ids=["on the GPU", "a mask there", "a one-hot of labels", "another type"],
)
def test_what_is_there_already_or_has_data_is_not_to_be_made_on_the_gpu(line: str) -> None:
    made = FrameShare(0.15, "loss (train.py:30)", None, line, "forward")
    assert not advised(made).startswith("make it on the GPU")


@pytest.mark.parametrize(
    ("text", "is_data"),
    [
        ("padded[i, : len(s)].copy_(s)", True),
        ("padded[i][0] = s", True),
        ("padded += rows", True),
        ("padded = padded | rows", True),
        ("padded.scatter_(1, labels, 1)", True),
        ("torch.cumsum(rows, 0, out=padded)", True),
        ("for row, out in zip(rows, padded):", True),
        ("for out in padded:", True),
        ("[out.copy_(row) for row, out in zip(rows, padded)]", True),
        ("self.fill(padded, rows)", True),
        ("np.copyto(padded.numpy(), rows)", True),
        ("fill(rows, into=padded[i])", True),
        ("for i in range(len(padded)):", False),
        ("print(padded.shape, padded.size(0))", False),
        ("x = self.attend(x, padded.to(device))", False),
        ("padded[i].narrow(0, n, rest).fill_(1)", False),
        ("other[i] = padded[i]", False),
    ],
)
def test_what_the_hosts_data_is_written_into_is_data(text: str, is_data: bool) -> None:
    made = FrameShare(
        0.02, "pad (m.py:3)", None, "padded = torch.zeros(n, m)", "forward", in_net=True
    )
    rows = FrameShare(0.18, "pad (m.py:5)", None, text, "forward", in_net=True)
    there = "padded = padded.to(device)"
    copied = FrameShare(0.14, "pad (m.py:6)", None, there, "forward", in_net=True)
    assert advised(made, rows, copied).startswith("make it on the GPU") is not is_data


def test_what_is_handed_on_behind_the_copy_is_on_the_gpu() -> None:
    made = FrameShare(
        0.02, "forward (m.py:3)", None, "mask = torch.zeros(n, m)", "forward", in_net=True
    )
    there = "mask = mask.to(x.device)"
    copied = FrameShare(0.14, "forward (m.py:4)", None, there, "forward", in_net=True)
    text = "x = x.masked_fill(mask, 0)"
    used = FrameShare(0.14, "forward (m.py:9)", None, text, "forward", in_net=True)
    assert advised(made, copied, used).startswith("make it on the GPU")


def test_an_attribute_of_another_object_is_another_tensor() -> None:
    made = FrameShare(
        0.02, "step (train.py:30)", None, "x = torch.zeros(n, m)", "forward", in_net=True
    )
    there = "x_in = batch.x.to(device)"
    copied = FrameShare(0.15, "step (train.py:33)", None, there, "forward", in_net=True)
    assert not advised(made, copied).startswith("make it on the GPU")
