"""How PyTorch is set up, read from real loops through the real hooks."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from gpuwatch.probe.peers import Peer
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.settings import flags
from gpuwatch.probe.settings.optimizers import facts_of
from gpuwatch.probe.settings.sampler import AGAIN_NS, WALK_AGAIN_NS, SettingsSampler
from gpuwatch.tui.settings import Settings
from tests.unit.probe.held_clock import Watched, watched

HALF = torch.bfloat16
TYPED = hasattr(torch.ones(1, requires_grad=True).sum().grad_fn, "_input_metadata")
typed = pytest.mark.skipif(not TYPED, reason="the graph of this torch (2.4) tells no types")
"""Without them autocast is not reported (test_private_names.py)."""


class Asked:
    """A loop under the hooks, of which a publisher asks for the settings."""

    def __init__(self, run: Watched) -> None:
        self.recorder: Recorder = run.recorder
        self.clock = run.clock
        self.failures = run.failures
        self.sampler = SettingsSampler(run.recorder)

    def seen(self, train: Callable[[], None], times: int = 3) -> Settings:
        """What is known after so many questions, a second apart, and two steps after each."""
        for _ in range(times):
            self.clock.work(AGAIN_NS / 1e6)
            self.sampler.ask()
            train()
            train()
        assert not self.failures
        return self.read()

    def read(self) -> Settings:
        """As the monitor has it."""
        return Settings(**self.sampler.reading)


@pytest.fixture
def run() -> Iterator[Asked]:
    with watched() as one:
        yield Asked(one)


def net_of(*middle: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), *middle, torch.nn.Linear(8, 4))


def loss_of(net: torch.nn.Module, autocast: torch.dtype | None = None) -> torch.Tensor:
    x, y = torch.randn(2, 8), torch.tensor([0, 1])
    with torch.autocast("cpu", autocast or HALF, enabled=autocast is not None):
        return torch.nn.functional.cross_entropy(net(x), y)


def plain(net: torch.nn.Module, optimizer: torch.optim.Optimizer, **cast: Any) -> None:
    optimizer.zero_grad()
    loss_of(net, **cast).backward()
    optimizer.step()


def test_a_plain_loop_shows_its_optimizer_and_its_switches(run: Asked) -> None:
    net = net_of()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    seen = run.seen(lambda: plain(net, optimizer))
    assert (seen.threads, seen.cpu_bf16) == (torch.get_num_threads(), flags.multiplies_bf16(torch))
    assert not any((seen.anomaly, seen.deterministic, seen.cudnn_benchmark))
    assert (seen.matmul_precision, seen.cudnn_tf32) == ("highest", True)
    assert (seen.autocast, seen.scaler) == ("" if TYPED else None, False)
    assert (seen.optimizer, seen.foreach, seen.fused) == ("AdamW", False, None)
    assert (seen.parameters, seen.host_parameters, seen.parameter_bytes) == (4, 4, 4 * 108)
    assert (seen.parameter_dtype, seen.parameter_device) == ("float32", "cpu")
    assert seen.capability is None, "no CUDA device holds them"


def test_what_takes_fused_is_told_from_what_refuses_it(run: Asked) -> None:
    class AdamW(torch.optim.Optimizer):
        """As somebody writes it for a course."""

        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 1e-3})

    net = net_of()
    weights = list(net.parameters())
    given: dict[str, Any] = {"lr": 0.1}
    for optimizer, fusible in (
        (torch.optim.AdamW(weights), True),
        (torch.optim.SGD(weights, **given, foreach=True), True),
        (torch.optim.SGD(weights, **given, differentiable=True), False),
        (torch.optim.RMSprop(weights), False),
        (AdamW(weights), False),
    ):
        assert facts_of(optimizer)["fusible"] is fusible
    optimizer = torch.optim.SGD(weights, lr=0.1)
    assert run.seen(lambda: plain(net, optimizer)).fusible is True
    table = torch.nn.Embedding(9, 4, sparse=True)
    table(torch.tensor([3])).sum().backward()
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    assert facts_of(optimizer)["fusible"] is False


def test_the_thread_that_trains_is_named_by_the_kernels_id(run: Asked) -> None:
    """As py-spy names it; the thread that asks is the publisher's."""
    net = net_of()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    seen: list[tuple[int, int | None]] = []

    def train() -> None:
        mine = run.seen(lambda: plain(net, optimizer)).training_thread
        seen.append((threading.get_native_id(), mine))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert seen == [(seen[0][0], seen[0][0])]
    assert seen[0][0] != threading.get_native_id()


def test_nobody_asks_and_nothing_is_read(run: Asked) -> None:
    net = net_of()
    plain(net, torch.optim.SGD(net.parameters(), lr=0.1))
    assert run.sampler.reading == {}


def test_one_question_is_one_look(run: Asked) -> None:
    net = net_of()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    run.seen(lambda: plain(net, optimizer), times=1)
    assert not run.recorder.samples_settings
    run.clock.work(AGAIN_NS / 1e6)
    was = torch.get_num_threads()
    torch.set_num_threads(was + 1)
    try:
        plain(net, optimizer)
        assert run.read().threads == was
        assert run.seen(lambda: plain(net, optimizer)).threads == was + 1
    finally:
        torch.set_num_threads(was)


def test_switches_that_are_on_around_forward_and_backward_only(run: Asked) -> None:
    net = net_of()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train() -> None:
        with torch.autograd.set_detect_anomaly(True):
            optimizer.zero_grad()
            loss_of(net).backward()
        optimizer.step()

    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("high")
    try:
        seen = run.seen(train)
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")
    assert (seen.anomaly, seen.deterministic, seen.matmul_precision) == (True, True, "high")


def test_a_scaler_is_seen_whether_the_optimizer_scales_itself_or_not(run: Asked) -> None:
    for fused in (False, True):
        net = net_of()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, fused=fused)
        for enabled in (True, False):
            scaler = torch.amp.GradScaler("cpu", enabled=enabled)

            def train(
                net: torch.nn.Module = net,
                optimizer: torch.optim.Optimizer = optimizer,
                scaler: Any = scaler,
            ) -> None:
                optimizer.zero_grad()
                scaler.scale(loss_of(net, HALF)).backward()
                scaler.step(optimizer)
                scaler.update()

            run.clock.work(WALK_AGAIN_NS / 1e6)
            seen = run.seen(train)
            assert (seen.scaler, seen.autocast) == (enabled, "bfloat16" if TYPED else None)


def test_gradients_that_live_on_are_distinguished_from_dropped_ones(run: Asked) -> None:
    net = net_of()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train(drop: bool) -> None:
        optimizer.zero_grad(set_to_none=drop)
        loss_of(net).backward()
        optimizer.step()

    run.sampler.ask()
    train(True)
    assert run.read().set_to_none is None, "one step says nothing"
    assert run.seen(lambda: train(True)).set_to_none is True
    assert run.seen(lambda: train(False)).set_to_none is False
    assert run.seen(lambda: train(True)).set_to_none is True


def test_gradients_put_back_between_backwards_are_dropped_ones(run: Asked) -> None:
    """As DDP's views of its buckets are: the same tensors, but gone while the backward begins."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    view = torch.ones(3)

    def train() -> None:
        optimizer.zero_grad()
        (weight * 2).sum().backward()
        weight.grad = view
        optimizer.step()

    assert run.seen(train).set_to_none is True


def test_accumulation_is_not_taken_for_kept_gradients(run: Asked) -> None:
    net = net_of()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train() -> None:
        for _ in range(3):
            loss_of(net).backward()
        optimizer.step()
        optimizer.zero_grad()

    assert run.seen(train).set_to_none is True


def test_the_larger_of_two_optimizers_is_reported_every_time(run: Asked) -> None:
    large, small = net_of(torch.nn.Linear(8, 8)), net_of()
    first = torch.optim.SGD(small.parameters(), lr=0.1)
    second = torch.optim.Adam(large.parameters())

    def train() -> None:
        plain(small, first)
        plain(large, second)

    for _ in range(4):
        seen = run.seen(train, times=1)
        assert (seen.optimizer, seen.parameters, seen.host_parameters) == ("Adam", 6, 10)
        plain(small, first)
    assert seen.set_to_none is True, "though its gradients are there in the other's backward"


def test_a_subclass_that_calls_its_parents_step_is_one_step(run: Asked) -> None:
    class Nested(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    net = net_of()
    optimizer = Nested(net.parameters(), lr=0.1)

    def train() -> None:
        optimizer.zero_grad(set_to_none=False)
        loss_of(net).backward()
        optimizer.step()

    seen = run.seen(train)
    assert (seen.optimizer, seen.set_to_none) == ("Nested", False)


def test_new_groups_are_counted_and_the_old_ones_not_again(run: Asked) -> None:
    net, more = net_of(), torch.nn.Parameter(torch.ones(5))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    assert run.seen(lambda: plain(net, optimizer)).parameters == 4
    optimizer.add_param_group({"params": [more]})
    assert run.seen(lambda: plain(net, optimizer)).parameters == 5


def test_a_module_that_was_never_called_has_no_size(run: Asked) -> None:
    net, unused = net_of(), torch.nn.LazyLinear(4)
    optimizer = torch.optim.SGD([*net.parameters(), *unused.parameters()], lr=0.1)
    assert run.seen(lambda: plain(net, optimizer)).parameters == 4


def test_nothing_is_kept_alive(run: Asked) -> None:
    net = net_of()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        run.sampler.ask()
        plain(net, optimizer)
    missing: list[weakref.ref[Any]] = [weakref.ref(optimizer), *map(weakref.ref, net.parameters())]
    del net, optimizer
    gc.collect()
    assert [one() for one in missing] == [None] * 5


def test_a_loop_without_an_optimizer_shows_its_switches_once_a_second(run: Asked) -> None:
    net = net_of()
    run.sampler.ask()
    loss_of(net, HALF).backward()
    assert run.read().cudnn_benchmark is False, "a first step may take long by it"
    seen = run.seen(lambda: loss_of(net, HALF).backward())
    assert (seen.optimizer, seen.autocast) == (None, "bfloat16" if TYPED else None)
    assert seen.threads == torch.get_num_threads()
    run.clock.work(AGAIN_NS / 1e6)
    torch.set_float32_matmul_precision("high")
    try:
        loss_of(net).backward()
        assert run.read().matmul_precision == "high"
        torch.set_float32_matmul_precision("highest")
        loss_of(net).backward()
        assert run.read().matmul_precision == "high", "a second has not passed"
    finally:
        torch.set_float32_matmul_precision("highest")


@typed
@pytest.mark.parametrize("dtype", [torch.float32, HALF])
def test_without_an_optimizer_the_graph_shows_the_type_of_the_parameters(
    run: Asked, dtype: torch.dtype
) -> None:
    net = net_of().to(dtype)
    x = torch.randn(2, 8, dtype=dtype)
    seen = run.seen(lambda: net(x).float().square().mean().backward())
    assert (seen.optimizer, seen.parameter_dtype) == (None, str(dtype).removeprefix("torch."))


@typed
def test_a_type_that_autocast_casts_to_is_not_the_parameters(run: Asked) -> None:
    net = net_of()
    seen = run.seen(lambda: loss_of(net, HALF).backward())
    assert (seen.autocast, seen.parameter_dtype) == ("bfloat16", "float32")


def test_the_guard_that_failed_is_read(run: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """As dynamo keeps it, of the function that was compiled anew most often."""
    import torch._dynamo.utils as kept

    assert isinstance(kept.guard_failures, dict), "another name in this torch"
    often = ["0/0: s.k == 0", "0/1: s.k == 1    # return x + s.k  # t.py:5 in f\nUser stack trace:"]
    monkeypatch.setattr(kept, "guard_failures", {"once": ["0/0: L['x'] == 1"], "often": often})
    optimizer = torch.optim.SGD((net := net_of()).parameters(), lr=0.1)

    def train() -> None:
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()

    assert run.seen(train).failed_guard == "0/1: s.k == 1 # return x + s.k # t.py:5 in f"
    evaluated = {"often": [*often, "0/2: GLOBAL_STATE changed: grad_mode "]}
    monkeypatch.setattr(kept, "guard_failures", evaluated)
    assert run.seen(train).failed_guard == "0/1: s.k == 1 # return x + s.k # t.py:5 in f", (
        "what was compiled in the other gradient mode never fits"
    )
    monkeypatch.setattr(kept, "guard_failures", {"often": evaluated["often"][-1:]})
    assert run.seen(train).failed_guard == "0/2: GLOBAL_STATE changed: grad_mode"
    monkeypatch.setattr(kept, "guard_failures", {})
    assert run.seen(train).failed_guard is None


def test_dynamo_keeps_the_guard_that_failed(run: Asked) -> None:
    """A Python number that changes; without dynamo's logs switched on."""
    net = net_of()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaled = torch.compile(lambda x, factor: x * factor, backend="eager")
    factors = iter([0.5, 1.5, 2.5, 3.5])

    def train() -> None:
        optimizer.zero_grad()
        scaled(loss_of(net), next(factors)).backward()
        optimizer.step()

    read = run.seen(train, times=2).failed_guard
    assert read is not None
    assert "factor == 0.5" in read.replace("L['factor']", "factor")


def test_what_fails_inside_trips_the_breaker_and_not_the_loop(run: Asked) -> None:
    net = net_of()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("no")

    run.sampler.ask()
    optimizer.param_groups.append(Broken())  # type: ignore[arg-type]
    assert run.recorder.extra is not None
    run.recorder.extra(8, optimizer)  # as the hook does
    assert [str(failure) for failure in run.failures] == ["'Broken' object is not subscriptable"]
    run.failures.clear()


def test_settings_are_reported_first_and_when_they_change() -> None:
    peer = Peer(0, 1)
    assert peer.settings_to_send({}) is None, "nothing is known yet"
    assert peer.settings_to_send({"threads": 4}) == {"threads": 4}
    assert peer.settings_to_send({"threads": 4}) is None
    assert peer.settings_to_send({"threads": 8}) == {"threads": 8}
