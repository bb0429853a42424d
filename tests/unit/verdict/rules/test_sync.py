"""Waiting for the GPU: what costs, and what only looks as if."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuwatch.tui.verdict.code_places import copies_to_gpu, waits_for_gpu
from gpuwatch.tui.verdict.engine import Engine
from gpuwatch.tui.verdict.rules.host import host
from gpuwatch.tui.verdict.rules.launch import launch
from gpuwatch.tui.verdict.rules.sync import NO_WAIT, sync
from gpuwatch.tui.verdict.stack_samples import FrameShare, Stacks
from gpuwatch.tui.verdict.window import StepWindow
from tests.unit.verdict.on_gpu import activity, gpu_window
from tests.unit.verdict.windows import even, loader, stacks

STEPS = even(60, data_ms=0.2, forward_ms=12, backward_ms=8, optimizer_ms=2)

SELDOM = "if step % 10 == 0: log(loss.item())"

ON_GPU = {"data_ms": 0.2, "forward_ms": 12, "backward_ms": 8, "optimizer_ms": 2}


def on_line(share: float, line: str) -> Stacks:
    """Main-thread samples, so many of them on a line that says this."""
    waits = FrameShare(share, "train (train.py:88)", None, line)
    rest = FrameShare(1 - share, "forward (model.py:12)", None, "x = self.layer(x)")
    return Stacks(200, (waits, rest), 0, (), None)


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("total += loss.item()", "loss.item()"),
        ("if torch.isnan(p.grad).any():", "torch.isnan(p.grad).any()"),
        ("scores = logits.argmax(-1).cpu()", "logits.argmax(-1).cpu()"),
        ("running = float(loss)", "float(loss)"),
        ('kept = state.detach().to("cpu", copy=True)', 'state.detach().to("cpu", copy=True)'),
        ("torch.cuda.synchronize()", "torch.cuda.synchronize()"),
        ("kept = x[mask]", "x[mask]"),
        ("log(step, losses[i].item(), rate)", "losses[i].item()"),
        ("print(", "print("),
    ],
)
def test_waits_that_leave_the_gpu_idle(line: str, call: str) -> None:
    seen = gpu_window(STEPS, ON_GPU, stacks=on_line(0.4, line), activity=activity(70))
    found = sync(seen)
    assert found is not None
    assert found.share == pytest.approx(0.30, abs=0.01)
    assert found.advice[0].startswith(f"`{call}` at train.py:88: ")
    assert launch(seen) is None
    assert Engine().judge(seen).finding.kind == "sync"


def test_what_is_read_now_and_then_is_read_more_rarely() -> None:
    """A loss that every tenth step reads: "read it every 6 steps"."""
    found = sync(gpu_window(STEPS, ON_GPU, stacks=on_line(0.14, SELDOM), activity=activity(88)))
    assert found is not None
    assert found.advice[0].endswith("read it 6 times as seldom")


@pytest.mark.parametrize(
    "line",
    [
        'print(f"epoch {epoch}: {text}")',
        "share = sum(int(one) for one in rows) / len(rows)",
        "rows = ids.tolist()",
    ],
)
def test_a_text_or_a_list_is_no_wait_on_a_gpu_that_is_done(line: str) -> None:
    """ "sync, 97 % sure, keep it on the GPU (.detach())" was said of a print."""
    rows = even(60, data_ms=0.2, forward_ms=6, backward_ms=6, optimizer_ms=1, other_ms=9)
    phases = {"data_ms": 0.2, "forward_ms": 6, "backward_ms": 6, "optimizer_ms": 1, "other_ms": 9}

    def seen(text: str, lag_ms: float) -> StepWindow:
        clock = {**phases, "lag_ms": lag_ms}
        return gpu_window(rows, clock, stacks=on_line(0.4, text), activity=activity(55))

    assert sync(seen(line, 0.02)) is None
    assert Engine().judge(seen(line, 0.02)).finding.kind == "host"
    assert sync(seen("total += loss.item()", 0.02)) is not None, "a tensor's alone"


def test_a_wait_that_nothing_reads_is_left_out() -> None:
    line = "torch.cuda.synchronize()"
    found = sync(gpu_window(STEPS, ON_GPU, stacks=on_line(0.4, line), activity=activity(70)))
    assert found is not None
    assert found.advice == (f"`{line}` at train.py:88: {NO_WAIT}",)


def test_a_tensor_whose_elements_are_compared_one_by_one() -> None:
    """C-GCN on an H200: "launch 84 %, a CUDA graph 9.2x"; 3.4 to 3.9x by taking the positions to
    the host at once."""
    line = "subj_pos = [i for i in range(len_) if subj_pos[i] == 0]"
    of_tree = FrameShare(0.6, "head_to_tree (tree.py:71)", None, line, "forward", in_net=True)
    rest = FrameShare(0.4, "forward (model.py:12)", None, "x = self.layer(x)", "forward")
    apart = replace(of_tree, in_net=False)
    for place, busy, is_sync in ((of_tree, 11, True), (apart, 11, False), (of_tree, 1, False)):
        below = Stacks(200, (place, rest), 0, (), None)
        found = sync(gpu_window(STEPS, ON_GPU, stacks=below, activity=activity(busy)))
        assert (found is not None) is is_sync
        if found is not None:
            assert found.share == pytest.approx(0.6, abs=0.02)
            assert "(.tolist())" in found.advice[0]
            assert "subj_pos" in found.advice[0]


def test_elements_that_a_mask_selects_in_a_net_are_a_wait() -> None:
    """The host needs their number for what comes next."""
    line = "loss = self.criterion(logits[labels != -1], labels[labels != -1])"
    selects = FrameShare(0.4, "Head.forward (model.py:71)", None, line, "forward", in_net=True)
    below = Stacks(200, (selects, replace(selects, share=0.6, line="y = f(x)")), 0, (), None)
    found = sync(gpu_window(STEPS, ON_GPU, stacks=below, activity=activity(50)))
    assert found is not None
    assert found.share == pytest.approx(0.4, abs=0.02)
    assert "torch.where(mask, a, b)" in found.advice[0]
    apart = replace(below, main=tuple(replace(one, in_net=False) for one in below.main))
    assert sync(gpu_window(STEPS, ON_GPU, stacks=apart, activity=activity(50))) is None


def test_nvmls_percent_may_hide_the_kernels_of_elements_that_are_compared() -> None:
    line = "subj_pos = [i for i in range(len_) if subj_pos[i] == 0]"
    of_tree = FrameShare(0.6, "head_to_tree (tree.py:71)", None, line, "forward", in_net=True)
    below = Stacks(200, (of_tree,), 0, (), None)
    for source, is_sync in (("gpm", False), ("utilization", True)):
        counted = replace(activity(2), source=source)
        found = sync(gpu_window(STEPS, ON_GPU, stacks=below, activity=counted))
        assert (found is not None) is is_sync


CHECK = "Distribution.__init__ (torch/distributions/distribution.py:76)"
UNCHECKED = "torch.distributions.Distribution.set_default_validate_args(False)"


def test_the_wait_that_comes_next_in_the_net_is_named_as_well() -> None:
    """MONet on an H200: without its `loss.item()` 1.02x, for the distributions of the next forward
    are checked, each on the GPU."""
    reads = FrameShare(0.2, "train (train.py:66)", None, "total += loss.item()")
    checks = FrameShare(0.1, CHECK, "decode (model.py:205)", "Normal(x, s)", "forward", in_net=True)
    asks = FrameShare(0.1, "decode (model.py:205)", None, "n = x.item()", "forward", in_net=True)

    def first(*places: FrameShare) -> str:
        seen = Stacks(200, places, 0, (), None)
        found = sync(gpu_window(STEPS, ON_GPU, stacks=seen, activity=activity(60)))
        assert found is not None
        return found.advice[0]

    assert first(reads, checks).startswith("`loss.item()` at train.py:66: keep it on the GPU")
    assert UNCHECKED in first(reads, checks)
    assert first(reads, asks).endswith("then `x.item()` at model.py:205, where the host waits next")
    assert UNCHECKED in first(replace(checks, share=0.3))
    assert "then" not in first(reads)


@pytest.mark.parametrize(
    ("fields", "waits"),
    [
        ({"pinned": False}, True),
        ({"pinned": True}, False),
        ({"pinned": None}, False),
        ({"pinned": None, "batch_device": "cuda"}, False),
    ],
)
def test_a_copy_from_pageable_memory_waits_as_a_read_does(
    fields: dict[str, Any], waits: bool
) -> None:
    """MONet on an H200: 1.02x without any read or check in a step, for each batch's copy waited."""
    feeds = structs.replace(loader(2, batch_bytes=3_145_728, batch_device="cpu"), **fields)
    seen = gpu_window(
        STEPS, ON_GPU, stacks=on_line(0.4, "loss.item()"), activity=activity(70), loaders=(feeds,)
    )
    found = sync(seen)
    assert found is not None
    assert ("with pin_memory=True and .to(device, non_blocking=True)" in found.advice[0]) is waits


def test_two_lines_that_wait_alike_are_both_named_in_the_code_s_order() -> None:
    def advice(first: float, second: float) -> str:
        waits = {34: (first, "loss.item()"), 41: (second, "norm.item()")}
        places = [FrameShare(n, f"train (train.py:{at})", None, t) for at, (n, t) in waits.items()]
        places.sort(key=lambda place: -place.share)
        seen = Stacks(200, tuple(places), 0, (), None)
        found = sync(gpu_window(STEPS, ON_GPU, stacks=seen, activity=activity(70)))
        assert found is not None
        return found.advice[0].partition(": ")[0]

    both = "`loss.item()` at train.py:34 and `norm.item()` at train.py:41"
    assert advice(0.20, 0.22) == advice(0.22, 0.20) == both
    assert advice(0.08, 0.40) == "`norm.item()` at train.py:41"


def test_a_number_that_the_net_needs_is_not_read_more_rarely() -> None:
    """FastSpeech's length regulator: "read it every 12 steps", and its next line repeats a row so
    often."""
    line = "expand_size = predicted[i].item()"
    waits = FrameShare(0.4, "expand (train.py:575)", None, line, in_net=True)
    rest = FrameShare(0.6, "forward (model.py:12)", None, "x = self.layer(x)", in_net=True)
    places = Stacks(200, (waits, rest), 0, (), None)
    found = sync(gpu_window(STEPS, ON_GPU, stacks=places, activity=activity(70)))
    assert found is not None
    first, second = found.advice
    assert first.startswith("`predicted[i].item()` at train.py:575: work with it on the GPU")
    assert second.startswith("where nothing depends on it: ")


def test_item_in_a_busy_run_costs_nothing() -> None:
    steps = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=127)
    on_gpu = {"data_ms": 0.1, "forward_ms": 46, "backward_ms": 82, "optimizer_ms": 5, "lag_ms": 120}
    line = on_line(0.96, "total += loss.item()")
    seen = gpu_window(steps, on_gpu, stacks=line, activity=activity(99, tensor=60))
    assert sync(seen) is None
    assert Engine().judge(seen).finding.kind == "compute"


def test_a_wait_is_worth_no_more_than_it_takes() -> None:
    seen = gpu_window(STEPS, ON_GPU, stacks=on_line(0.08, "loss.item()"), activity=activity(20))
    found = sync(seen)
    assert found is not None
    assert found.share == pytest.approx(0.08, abs=0.001)
    assert launch(seen) is not None


def test_ordinary_lines_wait_for_nothing() -> None:
    casts = ("scores.masked_fill_(mask.bool(), -float('inf'))", "x = x.float() / int('8')")
    for line in (
        "loss.backward()",
        "x = self.conv(x)",
        "optimizer.step()",
        "for item in x:",
        *casts,
    ):
        assert (
            sync(gpu_window(STEPS, ON_GPU, stacks=on_line(0.5, line), activity=activity(30)))
            is None
        )


def test_waiting_for_the_gpu_in_item_is_nobodys_loss() -> None:
    steps = even(60, data_ms=0.1, forward_ms=2, backward_ms=3, optimizer_ms=1, other_ms=127)
    on_gpu = {"data_ms": 0.1, "forward_ms": 46, "backward_ms": 82, "optimizer_ms": 5, "lag_ms": 120}
    seen = gpu_window(steps, on_gpu, activity=activity(99.0))
    assert host(seen) is None
    assert Engine().judge(seen).finding.kind == "compute"


@pytest.mark.parametrize(
    ("frame", "caller", "waits"),
    [
        ("_conv_forward (torch/nn/modules/conv.py:549)", "train (train.py:9)", False),
        ("train (train.py:9)", None, True),
    ],
    ids=["in the model", "on the line"],
)
def test_only_the_call_that_takes_the_time_waits_for_the_gpu(
    frame: str, caller: str | None, waits: bool
) -> None:
    """`out = model(x).item()`: the samples deep in the model are the model's."""
    at = (0.5, frame, caller, "score = model(x).item()")
    seen = gpu_window(
        even(60, forward_ms=20, backward_ms=10, optimizer_ms=2),
        {"forward_ms": 20, "backward_ms": 10, "optimizer_ms": 2},
        activity=activity(35.0),
        stacks=stacks(main=[at]),
    )
    assert (sync(seen) is not None) == waits


def by_class(waits: float, launches: float, loop: float = 0.4) -> Stacks:
    """A metric that is read class by class: lines that wait, and one that launches for them."""
    places = (
        FrameShare(loop, "_engine_run_backward (torch/autograd/graph.py:869)", "learn (t.py:140)",
                   phase="backward"),
        FrameShare(launches, "accuracy (t.py:245)", None, "picked = wanted == number", "forward"),
        FrameShare(waits, "accuracy (t.py:247)", None, "found[n] = right.mean().item()",
                   "synchronisation"),
        FrameShare(1 - loop - launches - waits, "linear (torch/nn/functional.py:9)",
                   "forward (model.py:12)", phase="forward", in_net=True),
    )  # fmt: skip
    return Stacks(200, places, 0, (), None)


def test_what_is_launched_for_a_result_goes_with_the_wait_for_it() -> None:
    """An accuracy class by class: the lines that wait held 9 and 11 % of two runs on an H100, and
    without the function they were 1.43 and 1.77x as fast; a CUDA graph of the net led."""
    seen = gpu_window(STEPS, ON_GPU, stacks=by_class(0.12, 0.1), activity=activity(40))
    found, alone = sync(seen), sync(
        gpu_window(STEPS, ON_GPU, stacks=by_class(0.12, 0.0), activity=activity(40))
    )  # fmt: skip
    assert found is not None
    assert alone is not None
    assert found.share == pytest.approx(0.22, abs=0.01)
    assert alone.share == pytest.approx(0.12, abs=0.01)
    assert (found.speedup or 0.0) > (alone.speedup or 0.0) + 0.08
    launches = [launch(gpu_window(STEPS, ON_GPU, stacks=one, activity=activity(40)))
                for one in (by_class(0.12, 0.1), by_class(0.12, 0.0))]  # fmt: skip
    held = [one.share for one in launches if one is not None]
    assert held[0] == pytest.approx((held[1] or 0.0) - 0.1, abs=0.01)


@pytest.mark.parametrize(
    "place",
    [
        FrameShare(0.1, "_engine_run_backward (torch/autograd/graph.py:8)", "accuracy (t.py:250)",
                   phase="backward"),
        FrameShare(0.1, "linear (torch/nn/functional.py:9)", "accuracy (t.py:250)", phase="forward",
                   in_net=True),
        FrameShare(0.5, "accuracy (t.py:251)", None, "y = x * 2", "forward"),
    ],
    ids=["the loop itself", "a net's forward", "hardly waits"],
)  # fmt: skip
def test_a_function_that_does_more_than_read_keeps_its_launches(place: FrameShare) -> None:
    stacks = by_class(0.12, 0.1, loop=0.4 - place.share if place.share < 0.4 else 0.0)
    both = Stacks(200, (*stacks.main, place), 0, (), None)
    found = sync(gpu_window(STEPS, ON_GPU, stacks=both, activity=activity(40)))
    assert found is not None
    assert found.share == pytest.approx(0.12, abs=0.01)


def test_python_that_goes_on_with_a_result_is_the_hosts() -> None:
    """A score copies predictions to the host, a tenth of the time, and sorts them there, three."""
    stacks = by_class(0.1, 0.0, loop=0.3)
    sorts = FrameShare(0.3, "accuracy (t.py:250)", None, "ranks = np.sort(p)", "other")
    rest = stacks.main[-1]
    places = (
        *stacks.main[:-1],
        sorts,
        FrameShare(rest.share - 0.3, rest.frame, None, phase="forward"),
    )
    rows = even(60, data_ms=0.2, forward_ms=5, backward_ms=5, optimizer_ms=2, other_ms=8)
    on_gpu = {"data_ms": 0.2, "forward_ms": 5, "backward_ms": 5, "optimizer_ms": 2, "other_ms": 8}
    seen = gpu_window(rows, on_gpu, stacks=Stacks(200, places, 0, (), None), activity=activity(50))
    found, python = sync(seen), host(seen)
    assert found is not None
    assert found.share == pytest.approx(0.1, abs=0.01)
    assert python is not None
    assert python.share == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    ("line", "reads", "copies"),
    [
        ('kept = state.to("cpu", copy=True)', True, False),
        ("kept = state.to(device=torch.device('cpu'))", True, False),
        ('kept = state.to("cpu", non_blocking=True)', False, False),
        ("x = x.to(device)", False, True),
        ('x = x.to("cuda")', False, True),
        ("x = x.to(cpu_or_gpu)", False, True),
    ],
)
def test_what_goes_back_to_the_host_is_no_batch_for_the_gpu(
    line: str, reads: bool, copies: bool
) -> None:
    """A copy of all parameters in each step was "copying batches to the GPU: pin_memory=True"."""
    place = on_line(0.4, line).main[0]
    assert (waits_for_gpu(place), copies_to_gpu(place)) == (reads, copies)
