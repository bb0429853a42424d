"""Nets of plain tensors: no module is called, and no loader."""

from typing import Final

import pytest
from msgspec import structs

from gpuwatch.tui.model.observations import StackCount
from gpuwatch.tui.model.stack_shares import summarise
from gpuwatch.tui.session.stack_phases.classify import phase_of
from gpuwatch.tui.verdict.stack_samples import Stacks

LOOP: Final = "<module> (train.py:20)"
MODULE: Final = "Module._call_impl (torch/nn/modules/module.py:1779)"


def at(count: int, line: str, *frames: str) -> StackCount:
    return StackCount(
        role="main", pid=1, thread="MainThread", frames=frames, count=count, line=line
    )


def seen(*more: StackCount) -> Stacks:
    backward = "_engine_run_backward (torch/autograd/graph.py:979)"
    return summarise(
        (at(40, "loss.backward()", "<module> (train.py:24)", backward), *more), phase_of
    )


ROWS: Final = at(10, "self.out = self.weight[ids]", LOOP, "Embedding.__call__ (train.py:5)")
TANH: Final = at(20, "self.out = torch.tanh(x)", LOOP, "Tanh.__call__ (train.py:9)")
LOSS: Final = at(5, "loss = (out - y).pow(2).mean()", "<module> (train.py:22)")
UPDATE: Final = at(15, "p.data += -lr * p.grad", "<module> (train.py:26)")
DRAWS: Final = at(10, "ids = torch.randint(0, len(x), (32,))", "<module> (train.py:18)")


def test_a_net_by_hand_is_no_hidden_loader() -> None:
    """Of Karpathy's makemore in plain tensors 58 % of the samples were "beside the net", so that
    the verdict was "no loader seen"; drawing its batches takes 3 %."""
    assert seen(ROWS, TANH, LOSS, UPDATE, DRAWS).main_unplaced == pytest.approx(0.1)


def test_its_lines_that_call_nothing_of_torch_are_the_nets() -> None:
    """`self.weight[ids]` was "10% of each step is Python that launches nothing"."""
    rows = next(one for one in seen(ROWS, TANH).main if "Embedding" in one.frame)
    assert (rows.phase, rows.in_net) == ("forward", True)


def test_beside_modules_a_users_call_is_no_net() -> None:
    """A transform is called as well."""
    net = at(20, "", LOOP, MODULE, "Linear.forward (torch/nn/modules/linear.py:134)")
    crop = at(
        20, "return image[top:, left:]", "<module> (train.py:18)", "Crop.__call__ (data.py:5)"
    )
    found = seen(net, crop)
    assert found.main_unplaced == pytest.approx(0.25)
    assert next(one for one in found.main if "Crop" in one.frame).phase == "other"


def test_a_function_that_is_called_net_is_one() -> None:
    """The book of d2l writes its nets so."""
    net = at(40, "return relu(X @ W1 + b1) @ W2 + b2", LOOP, "net (train.py:7)")
    assert seen(net, DRAWS).main_unplaced == pytest.approx(1 / 9)


def test_what_is_called_after_the_update_and_computes_no_tensors_is_no_net() -> None:
    """A logger of 40 % of a step was "the GPU waits for the next kernel": no sample met a module,
    for the host hardly works in a net whose kernels are large."""
    log = at(
        20, "values = numpy.clip(values, 0, 1)", "<module> (train.py:30)", "Log.__call__ (a:5)"
    )
    found = next(one for one in seen(TANH, log).main if "Log" in one.frame)
    assert (found.phase, found.in_net) == ("other", False)
    scores = at(20, "return x @ w", "<module> (train.py:30)", "Net.__call__ (net.py:5)")
    checked = StackCount(**{**structs.asdict(scores), "computes": True})
    assert next(one for one in seen(TANH, checked).main if "Net" in one.frame).in_net


def test_a_logger_that_writes_by_torch_is_no_net() -> None:
    """TensorBoard's writer, and tensors printed: PyTorch's own frames, which compute nothing."""
    writer = at(
        20,
        "self.writer.add_scalar('loss', loss, step)",
        *("<module> (train.py:30)", "Log.__call__ (train.py:5)"),
        "add_scalar (torch/utils/tensorboard/writer.py:380)",
    )
    net = at(20, "return x @ w", LOOP, "Net.__call__ (train.py:9)")
    found = seen(net, writer).main
    assert [one.in_net for one in found if "add_scalar" in one.line] == [False]


@pytest.mark.parametrize("how", ["Tensor.__format__", "Tensor.__deepcopy__", "__repr__"])
def test_a_tensor_that_is_written_down_or_copied_computes_nothing(how: str) -> None:
    """`print(f"{loss:.4f}")` in a logger's `__call__`."""
    frames = ("<module> (train.py:30)", "Log.__call__ (train.py:5)", f"{how} (torch/_tensor.py:9)")
    net = at(20, "return x @ w", LOOP, "Net.__call__ (train.py:9)")
    found = seen(net, at(20, "self.best = loss", *frames)).main
    assert [one.in_net for one in found if "self.best" in one.line] == [False]


def test_of_one_name_in_a_file_each_call_is_looked_at() -> None:
    """Before Python 3.11 frames name no class."""
    net = at(20, "return x @ w", LOOP, "__call__ (train.py:9)")
    log = at(20, "numpy.clip(values, 0, 1)", "<module> (train.py:30)", "__call__ (train.py:15)")
    found = {one.frame: one.in_net for one in seen(net, log).main}
    assert found["__call__ (train.py:9)"]
    assert not found["__call__ (train.py:15)"]
