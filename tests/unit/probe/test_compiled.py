"""What dynamo compiles is the same with the probe, and what it takes for that is marked."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
import torch

import probe
from gpuwatch.probe import api
from gpuwatch.probe.hooks import compilation
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire.marks import COMPILE_LEAVE, STEP


@pytest.fixture
def _installed() -> Iterator[None]:
    probe.install()
    yield
    probe.uninstall()


def named(x: torch.Tensor) -> torch.Tensor:
    with probe.phase("attention"):
        return x + 1


@probe.phase("attention")
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def logged(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    probe.log(loss=y.detach().sum())
    return y


def counted(x: torch.Tensor) -> torch.Tensor:
    probe.units(tokens=8)
    return x + 1


def ended(x: torch.Tensor) -> torch.Tensor:
    probe.step()
    return x + 1


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("function", [named, decorated, logged, counted, ended])
def test_a_function_that_calls_the_probe_is_one_graph(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    """With a phase in it a whole forward ran uncompiled, and `fullgraph` raised."""
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for _ in range(2):
        assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(graphs) == 1
    assert function(torch.ones(2)).tolist() == [2.0, 2.0], "uncompiled as ever"


@pytest.mark.usefixtures("_installed")
def test_around_what_is_compiled_the_probe_is_called() -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    torch.ones(2, requires_grad=True).sum().backward()
    compiled(torch.ones(2))
    probe.step()
    assert api._installed is not None
    assert api._installed.recorder.newest()[1] == STEP


def test_compilations_behind_a_reset_of_dynamo_are_marked() -> None:
    """Trials of a search, cells of a notebook: what they compiled was "forward"."""
    failures: list[Exception] = []
    recorder = Recorder(lambda _: True, failures.append)
    callbacks: Any = import_module("torch._dynamo.callback").callback_handler
    bare = type(callbacks).clear
    detach = compilation.attach(recorder)
    torch.compiler.reset()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    assert recorder.newest()[1] == COMPILE_LEAVE
    assert len(callbacks.start_callbacks) == len(callbacks.end_callbacks) == 1
    assert detach() == ()
    assert type(callbacks).clear is bare
    assert callbacks.start_callbacks == callbacks.end_callbacks == []
    assert failures == []
