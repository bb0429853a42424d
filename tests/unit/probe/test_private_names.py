"""Every private name of torch that the probe uses may be gone: what it falls back on then."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from gpuwatch.probe import installed
from gpuwatch.probe.device.events import CudaEvents
from gpuwatch.probe.hooks import checkpoint, compilation, parallel, tracing
from gpuwatch.probe.loaders import describe_iterator, ready_batches
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.settings import flags
from gpuwatch.probe.settings.autocast import autocast_of
from gpuwatch.probe.settings.optimizers import Optimizers
from tests.unit.probe.held_clock import Model, Rows, SlowSGD, phases_ms, watched

PLAIN: dict[str, float] = {"data": 4, "forward": 6, "backward": 9, "optimizer": 3}
LOADER: Any = sys.modules["torch.utils.data.dataloader"]


def steady() -> dict[str, float]:
    """Phases of the third step of a plain loop."""
    with watched() as run:
        model = Model(run.clock)
        optimizer = SlowSGD(model, run.clock)
        for batch in DataLoader(Rows(run.clock, rows=10), batch_size=2):
            model(batch).backward()
            optimizer.step()
        return phases_ms(run.steps()[2])


def test_backward_falls_back_on_the_public_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.autograd.graph, "_engine_run_backward")
    bare = torch.autograd.backward
    assert steady() == PLAIN
    assert torch.autograd.backward is bare


def test_without_the_loaders_iterator_steps_end_with_the_optimizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(LOADER, "_BaseDataLoaderIter")
    assert steady() == {"forward": 10, "backward": 9, "optimizer": 3}


@pytest.mark.parametrize("name", ["_open_zipfile_writer", "_legacy_save"])
def test_checkpoints_fall_back_on_the_public_function(
    monkeypatch: pytest.MonkeyPatch, recorder: Recorder, name: str
) -> None:
    bare = torch.save
    monkeypatch.delattr(torch.serialization, name)
    detach = checkpoint.attach(recorder)
    assert torch.save is torch.serialization.save is not bare
    assert detach() == ()
    assert torch.save is torch.serialization.save is bare


def test_an_iterator_that_cannot_be_reset_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(LOADER._BaseDataLoaderIter, "_reset")
    assert steady() == PLAIN


def test_the_optimizer_asks_the_wider_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.compiler, "is_dynamo_compiling")
    assert steady() == PLAIN


def test_an_iterator_of_another_make_is_reported_without_what_it_does_not_show() -> None:
    row = describe_iterator(object())
    assert row[1:] == ("object", None, None, False, False, None, None, (), "NoneType")
    assert ready_batches(object()) is None
    assert ready_batches(SimpleNamespace(_task_info={})) is None


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    failures: list[Exception] = []
    yield Recorder(arm=lambda _: True, trip=failures.append)
    assert not failures


@pytest.mark.parametrize("hook", [compilation, tracing])
@pytest.mark.parametrize(
    "names", [{}, {"callback_handler": object(), "SKIP_DIRS": [], "add": print}]
)
def test_a_dynamo_with_other_names_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, recorder: Recorder, hook: Any, names: dict[str, Any]
) -> None:
    other = ModuleType(hook.MODULE)
    vars(other).update(names)
    monkeypatch.setitem(sys.modules, hook.MODULE, other)
    assert hook.attach(recorder)() == ()
    assert names.get("SKIP_DIRS", []) == []


def test_the_switches_are_asked_by_public_names_or_not_reported() -> None:
    public = SimpleNamespace(
        _C=SimpleNamespace(),
        backends=SimpleNamespace(cudnn=SimpleNamespace(benchmark=True)),
        get_float32_matmul_precision=lambda: "high",
    )
    assert flags._cudnn_benchmark(public) is True
    assert flags._matmul_precision(public) == "high"
    assert flags._cudnn_tf32(public) is None


def test_a_cpu_multiplies_bf16_where_any_of_its_units_does() -> None:
    def cpu(**supported: bool) -> SimpleNamespace:
        asked = {f"_is_{name}_supported": (lambda has=has: has) for name, has in supported.items()}
        return SimpleNamespace(cpu=SimpleNamespace(**asked))

    assert flags.multiplies_bf16(cpu(avx512_bf16=True, amx_tile=False)) is True
    assert flags.multiplies_bf16(cpu(avx512_bf16=False, amx_tile=True)) is True
    assert flags.multiplies_bf16(cpu(avx512_bf16=False)) is False
    assert flags.multiplies_bf16(cpu()) is None, "an older torch"


@pytest.mark.parametrize(
    ("described", "intel"),
    [("vendor_id\t: GenuineIntel\n", True), ("vendor_id\t: AuthenticAMD\n", False), (None, None)],
)
def test_who_made_the_cpu_is_read_where_linux_tells_it(
    tmp_path: Path, described: str | None, intel: bool | None
) -> None:
    if described is not None:
        (tmp_path / "cpuinfo").write_text("processor\t: 0\n" + described)
    assert flags._cpu_intel(str(tmp_path / "cpuinfo")) is intel


class Node:
    """Of a graph that does not show the types of its results."""

    def __init__(self, name: str, *below: "Node") -> None:
        self._name = name
        self.next_functions = tuple((node, 0) for node in below)

    def name(self) -> str:
        return self._name


def test_a_graph_without_types_does_not_show_autocast() -> None:
    leaf = Node("torch::autograd::AccumulateGrad")
    product = Node("AddmmBackward0", leaf, Node("ToCopyBackward0", leaf))
    loss = SimpleNamespace(grad_fn=product, device=torch.device("cpu"))
    assert autocast_of((loss,)) is None


def test_a_compiled_forward_that_shows_nothing_saved_hides_autocast() -> None:
    compiled = Node("CompiledFunctionBackward", Node("torch::autograd::AccumulateGrad"))
    loss = SimpleNamespace(grad_fn=compiled, device=torch.device("cpu"))
    assert autocast_of((loss,)) is None


def test_a_scaler_with_other_methods_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    assert Optimizers().stepping(optimizer)["scaler"] is False
    monkeypatch.delattr(torch.amp.GradScaler, "_maybe_opt_step")
    assert Optimizers().stepping(optimizer)["scaler"] is None


def test_a_worker_is_known_by_being_a_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.utils.data._utils.worker")
    assert not installed._is_loader_worker()
    worker = SimpleNamespace(current_process=lambda: SimpleNamespace(daemon=True))
    monkeypatch.setitem(sys.modules, "multiprocessing.process", worker)
    assert installed._is_loader_worker()


def test_cuda_is_reached_by_its_public_names() -> None:
    cuda = SimpleNamespace(
        Event=type("Event", (), {"record": 1, "query": 2, "elapsed_time": 3}),
        Stream=object,
        current_device=lambda: 2,
        current_stream=lambda device: SimpleNamespace(cuda_stream=70 + device),
        is_current_stream_capturing=lambda: True,
    )
    events = CudaEvents(SimpleNamespace(_C=SimpleNamespace(), cuda=cuda))
    assert (events.device(), events.handle(2), events.capturing()) == (2, 72, True)
    assert (events.record, events.query, events.elapsed_ms) == (1, 2, 3)
    assert (events.allocator(2), events.fraction(2)) == (None, None)


def test_a_parallel_module_is_known_while_it_lives(
    monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    class Wrapped:
        def __init__(self, module: int) -> None:
            self.module = module

        def _get_ddp_logging_data(self) -> dict[str, int]:
            return {}

    holder = ModuleType(parallel.MODULE)
    holder.DistributedDataParallel = Wrapped  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, parallel.MODULE, holder)
    bare = Wrapped.__init__
    detach = parallel.attach(recorder)
    one = Wrapped(3)
    assert one.module == 3
    assert [seen() for seen in recorder.parallel] == [one]
    del one
    assert [seen() for seen in recorder.parallel] == [None]
    assert detach() == ()
    assert Wrapped.__init__ is bare


def test_parallel_modules_that_do_not_log_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, recorder: Recorder
) -> None:
    class Wrapped:
        pass

    holder = ModuleType(parallel.MODULE)
    holder.DistributedDataParallel = Wrapped  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, parallel.MODULE, holder)
    assert parallel.attach(recorder)() == ()
    assert "__init__" not in vars(Wrapped)


def test_compilations_may_have_been_forgotten_by_a_reset_of_dynamo(recorder: Recorder) -> None:
    import torch._dynamo

    detach = compilation.attach(recorder)
    torch._dynamo.reset()
    assert detach() == ()
