"""The run's own numbers: norms, losses, skipped steps, units, FLOPs."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import is_in_torch_dispatch_mode
from torch.utils.checkpoint import checkpoint

import gpuwatch
from gpuwatch.probe import api, switched
from gpuwatch.probe.dispatch_modes import before_gradients
from gpuwatch.probe.encoding import encode_marks
from gpuwatch.probe.first_number import numerics_of
from gpuwatch.probe.flop_count import PATIENCE, FlopCount
from gpuwatch.probe.hooks import clipping, optimizer
from gpuwatch.probe.notes import HELD, Notes, Row, number_of
from gpuwatch.probe.numerics import EVERY_WATCHED, FIRST
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire.marks import BACKWARD_ENTER, FETCH_ENTER, OPTIMIZER_LEAVE
from gpuwatch.tui.messages import Marks, decode_reply
from tests.unit.probe.held_clock import watched

sys.path.insert(0, str(Path(__file__).parents[2] / "gpu"))
import flops_nets  # type: ignore[import-not-found,unused-ignore]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Whose thread trains, with the hooks of clipping and of the optimizer."""
    failures: list[Exception] = []
    one = Recorder(lambda kind: True, failures.append)
    undo = [clipping.attach(one), optimizer.attach(one)]
    one.mark(BACKWARD_ENTER)
    one.watched = True
    yield one
    assert [left for detach in undo for left in detach()] == []
    assert failures == []


def noted(recorder: Recorder, kind: str) -> list[Row]:
    recorder.notes.turn()
    return [row for row in recorder.notes.to_send(first=True) if row[1] == kind]


def net_and_optimizer() -> tuple[nn.Linear, torch.optim.SGD]:
    net = nn.Linear(4, 1)
    return net, torch.optim.SGD(net.parameters(), lr=0.1)


def step(net: nn.Module, optimizer: Any, factor: float = 1.0) -> torch.Tensor:
    optimizer.zero_grad()
    (net(torch.ones(2, 4)).sum() * factor).backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return norm


def scaled(net: nn.Module, optimizer: Any, scaler: Any, factor: float = 1.0) -> None:
    optimizer.zero_grad()
    scaler.scale(net(torch.ones(2, 4)).sum() * factor).backward()
    scaler.step(optimizer)
    scaler.update()


def test_the_norm_that_clipping_works_out_is_noted(recorder: Recorder) -> None:
    net, sgd = net_and_optimizer()
    norm = step(net, sgd)
    (row,) = noted(recorder, "norm")
    assert row[3] == pytest.approx(norm.item())


def test_of_many_norms_every_second_is_looked_at(recorder: Recorder) -> None:
    net, sgd = net_and_optimizer()
    for _ in range(FIRST + 10):
        step(net, sgd)
    assert len(noted(recorder, "norm")) == FIRST + 10 // EVERY_WATCHED


def test_a_norm_that_is_not_finite_crosses_the_wire(recorder: Recorder) -> None:
    net, sgd = net_and_optimizer()
    step(net, sgd, math.nan)
    (row,) = noted(recorder, "norm")
    assert row[3:] == (0.0, "nan")
    nothing: list[Any] = []
    rows = [nothing] * 4
    head: tuple[Any, ...] = (1, 2, 3, 4, nothing, nothing, nothing, None, None, None, None, None, 0)
    head += (*rows, None, 0, "", [row])
    reply = decode_reply(encode_marks(head))
    assert isinstance(reply, Marks)
    assert reply.notes[0].why == "nan"


def test_clipping_gives_what_it_gave(recorder: Recorder) -> None:
    parameters = [nn.Parameter(torch.ones(3))]
    parameters[0].grad = torch.full((3,), 5.0)
    assert nn.utils.clip_grad_norm_(parameters, 1.0).item() == pytest.approx(75**0.5)
    parameters[0].grad = torch.full((3,), math.nan)
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


@pytest.mark.skipif(
    not hasattr(nn.utils, "get_total_norm"), reason="dynamo cannot trace this torch's clipping"
)
def test_a_compiled_step_that_clips_stays_one_graph(recorder: Recorder) -> None:
    parameters = [nn.Parameter(torch.ones(3))]

    def clip(grad: torch.Tensor) -> torch.Tensor:
        parameters[0].grad = grad
        return nn.utils.clip_grad_norm_(parameters, 1.0)

    compiled = torch.compile(clip, backend="eager", fullgraph=True)
    assert compiled(torch.full((3,), 5.0)).item() == pytest.approx(75**0.5)


@pytest.mark.parametrize("made", [torch.Tensor.as_subclass, None])
def test_what_is_no_plain_scalar_is_passed_over(recorder: Recorder, made: Any) -> None:
    class Other(torch.Tensor):
        pass

    numerics = numerics_of(recorder)
    value = torch.ones(2) if made is None else made(torch.tensor(1.0), Other)
    numerics.log("loss", value)
    numerics.log("loss", "text")
    assert noted(recorder, "log") == []


def test_a_mode_of_the_users_sees_no_look(recorder: Recorder) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    numerics = numerics_of(recorder)
    one = torch.tensor(1.0)
    mode: Any = Mode
    with mode():
        numerics.norm(one)
    assert seen == []


def test_steps_that_a_scaler_skips_are_counted_in_a_row(recorder: Recorder) -> None:
    net, sgd = net_and_optimizer()
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    scaled(net, sgd, scaler, math.inf)
    assert noted(recorder, "skipped") == [], "until it steps once, it looks for its scale"
    for factor in (1.0, math.inf, math.inf, math.inf, 1.0):
        scaled(net, sgd, scaler, factor)
    assert [row[3] for row in noted(recorder, "skipped")] == [1.0, 2.0, 3.0, 0.0]


def test_a_compiled_optimizer_s_steps_are_not_called_skipped(recorder: Recorder) -> None:
    """It puts no marks. "The gradients are not finite" was an alarm of steps that were taken."""
    net, sgd = net_and_optimizer()
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    scaled(net, sgd, scaler)
    compiled: Any = torch.compile(sgd.step, backend="eager")
    sgd.step = compiled  # type: ignore[method-assign]
    before = net.weight.detach().clone()
    for _ in range(3):
        scaled(net, sgd, scaler)
    assert not torch.equal(net.weight, before)
    assert noted(recorder, "skipped") == []
    scaled(net, sgd, scaler, math.inf)
    assert [row[3] for row in noted(recorder, "skipped")] == [1.0]


def test_totals_are_added_up_and_noted_now_and_then() -> None:
    notes = Notes()
    for at_ms in range(200):
        notes.count(at_ms * 1_000_000 + 10**9, "tokens", 512.0)
    rows = [row for row in notes.to_send(first=True)]
    assert [row[3] / 512 for row in rows] == [1, 51, 101, 151]


def test_the_newest_notes_are_held_and_sent_once() -> None:
    notes = Notes()
    for number in range(HELD + 100):
        notes.add(number, "log", "loss", float(number))
    notes.turn()
    assert len(notes.to_send(first=False)) == HELD
    notes.turn()
    assert notes.to_send(first=False) == []
    assert len(notes.to_send(first=True)) == HELD
    assert json.dumps(notes.to_send(first=True))


def test_the_public_calls_do_nothing_without_a_probe() -> None:
    gpuwatch.log(loss=1.0)
    gpuwatch.units(tokens=3)
    assert api._installed is None


@pytest.mark.parametrize("case", ["gpt", "resnet", "mlp"])
def test_flops_of_a_step_are_those_counted_by_hand(recorder: Recorder, case: str) -> None:
    net, batch, by_hand = flops_nets.CASES[case]()
    sgd = torch.optim.SGD(net.parameters(), lr=0.0)
    recorder.count_with(FlopCount(recorder).at)
    for _ in range(3):
        sgd.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            out = net(batch)
        (out if case == "gpt" else out.float().square().mean()).backward()
        sgd.step()
    convolved, row = noted(recorder, "flops")
    assert row[3] == by_hand
    assert convolved[2] == "convolutions"
    part = convolved[3] / row[3]
    assert part > 0.9 if case == "resnet" else part == 0.0
    assert torch._C._len_torch_dispatch_stack() == 0


def test_counting_leaves_every_bit_of_a_step_as_it_was(recorder: Recorder) -> None:
    def trained(count: Callable[[], None]) -> torch.Tensor:
        torch.manual_seed(3)
        net, batch, _ = flops_nets.CASES["gpt"]()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        count()
        for _ in range(3):
            sgd.zero_grad()
            loss = net(batch)
            loss.backward()
            sgd.step()
        return torch.cat([one.detach().flatten() for one in net.parameters()])

    bare = trained(lambda: None)
    assert torch.equal(bare, trained(lambda: recorder.count_with(FlopCount(recorder).at)))
    assert noted(recorder, "flops")


def test_no_count_begins_or_ends_within_a_backward() -> None:
    """Autograd gives a thread back the modes that it had before."""
    net = torch.nn.Linear(8, 8)
    with watched() as run:
        run.recorder.count_with(FlopCount(run.recorder).at)
        for _ in range(2 * PATIENCE):
            x = torch.ones(4, 8, requires_grad=True)
            for _ in range(3):
                x = checkpoint(net, x, use_reentrant=True)
            x.sum().backward()
        assert not is_in_torch_dispatch_mode()
        assert torch._C._len_torch_dispatch_stack() == 0


def test_flops_of_a_loop_that_only_fetches_are_refused(recorder: Recorder) -> None:
    recorder.count_with(FlopCount(recorder).at)
    for _ in range(2 * PATIENCE):
        recorder.mark(FETCH_ENTER)
    (row,) = noted(recorder, "refused")
    assert row[4] == "no optimizer's step and no backward was seen"
    assert recorder.extra is None


class Unreadable(float):
    """A number whose reading fails in the program's own code."""

    def __float__(self) -> float:
        raise ValueError("of the program's own")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *(
            (3, 3.0),
            (True, 1.0),
            (Unreadable(2.5), 2.5),
            (np.float32(0.5), 0.5),
            (np.int64(7), 7.0),
        ),
        *((torch.tensor([4]), 4.0), (torch.ones(2), None), (10**400, None), (None, None)),
        *(("5", None), (torch.ones((), device="meta"), None)),
    ],
)
def test_what_is_no_number_is_passed_over(value: Any, number: float | None) -> None:
    assert number_of(value) == number


def test_another_thread_that_trains_meanwhile_leaves_the_counter_to_its_own(
    recorder: Recorder,
) -> None:
    """Modes belong to a thread. Given up there, it would stay on here for good."""
    count = FlopCount(recorder)
    recorder.count_with(count.at)
    count.at(OPTIMIZER_LEAVE)
    assert torch._C._len_torch_dispatch_stack() == 1
    other = Thread(target=lambda: list(map(count.at, 3 * [OPTIMIZER_LEAVE])))
    other.start()
    other.join()
    switched.mine_off()
    assert torch._C._len_torch_dispatch_stack() == 0


def test_flops_are_not_counted_below_a_mode_of_the_users(recorder: Recorder) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    recorder.count_with(FlopCount(recorder).at)
    with FlopCounterMode(display=False):
        recorder.mark(OPTIMIZER_LEAVE)
    (row,) = noted(recorder, "refused")
    assert "dispatch mode" in row[4]


def test_no_flops_are_counted_where_a_gradient_would_be_another(recorder: Recorder) -> None:
    FlopCount(recorder).at(OPTIMIZER_LEAVE)
    loss = torch.ones(4, requires_grad=True).cumprod(0).sum()
    before_gradients((loss,))
    assert torch._C._len_torch_dispatch_stack() == 0
    (row,) = noted(recorder, "refused")
    assert row[4] == "a gradient is computed in another way while a mode is on"


def test_flops_that_the_run_gives_are_not_counted(recorder: Recorder) -> None:
    """A step ran under a dispatch mode, and what came of it was thrown away."""
    recorder.notes.count(recorder.now_ns(), "flops", 1e9)
    recorder.count_with(FlopCount(recorder).at)
    recorder.mark(OPTIMIZER_LEAVE)
    assert torch._C._len_torch_dispatch_stack() == 0
    (row,) = noted(recorder, "refused")
    assert row[4] == "the program gives them, probe.units(flops=...)"
    assert recorder.extra is None


def test_other_units_leave_the_flops_to_be_counted(recorder: Recorder) -> None:
    recorder.notes.count(recorder.now_ns(), "tokens", 512.0)
    recorder.count_with(FlopCount(recorder).at)
    recorder.mark(OPTIMIZER_LEAVE)
    recorder.mark(OPTIMIZER_LEAVE)
    assert noted(recorder, "refused") == []
    assert noted(recorder, "flops")


def test_a_fork_in_the_counted_step_is_not_below_the_counter(recorder: Recorder) -> None:
    recorder.count_with(FlopCount(recorder).at)
    recorder.mark(OPTIMIZER_LEAVE)
    assert torch._C._len_torch_dispatch_stack() == 1
    recorder.forget()
    assert torch._C._len_torch_dispatch_stack() == 0


def test_of_two_nets_that_clip_in_a_step_both_are_looked_at(recorder: Recorder) -> None:
    numerics = numerics_of(recorder)
    for _ in range(100):
        numerics.norm(torch.tensor(1.0))
        numerics.norm(torch.tensor(2.0))
    seen = [row[3] for row in noted(recorder, "norm")][FIRST:]
    assert seen.count(1.0) > 20
    assert seen.count(2.0) > 20


def test_what_vmap_has_wrapped_is_passed_over(recorder: Recorder) -> None:
    numerics = numerics_of(recorder)

    def inside(x: torch.Tensor) -> torch.Tensor:
        numerics.log("loss", x)
        return x

    torch.vmap(inside)(torch.ones(3))
    assert noted(recorder, "log") == []


def test_the_first_that_was_not_finite_is_sent_though_a_fast_loop_notes_more_than_is_held() -> None:
    notes = Notes()
    notes.add(1, "log", "loss", 2.0)
    notes.turn()
    notes.add(2, "log", "loss", math.nan)
    for number in range(HELD):
        notes.add(3 + number, "log", "norm", 1.0)
    notes.turn()
    sent = notes.to_send(first=False)
    assert sent[0] == (2, "log", "loss", 0.0, "nan")
    assert len(sent) == HELD + 1
    notes.turn()
    assert notes.to_send(first=False) == []


def test_a_monitor_that_comes_late_is_sent_the_first_that_was_not_finite() -> None:
    notes = Notes()
    for number in range(1, 3 * HELD):
        notes.add(number, "norm", "", math.nan if number >= 7 else 1.0)
    assert notes.to_send(first=True)[0][0] == 7
    assert len(notes.to_send(first=True)) == HELD + 1
