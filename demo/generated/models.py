"""A run's net and its update; runs that differ in other things only share them."""

import itertools
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, cast

import torch
from torch import nn

from generated.families import Batch, Scale, net_of, samples_of, scale_of
from generated.spec import Spec

LEARNING_RATE: Final = 1e-3
POOL: Final = 4
"""Batches in host memory; whatever hands out batches takes them from there."""
STATISTICS_OF: Final = 12
"""Modules whose activations are looked at."""
WARM_UP: Final = 3
"""Steps before a capture, as PyTorch asks: libraries and optimizers make what they keep."""


class Tempered(nn.Module):
    """Scores divided by a Python number, which a compiler takes for a constant."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, inputs: torch.Tensor, temperature: int) -> torch.Tensor:
        return cast(torch.Tensor, self.net(inputs) / temperature)


_TEMPERATURES: Final = itertools.count(2)
"""Each is compiled for once in a process: models of one class share what was compiled."""


class Model:
    """A net that is trained, and how its parameters are updated."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        set_precision(spec)
        self.net = net_of(spec)
        self.temperature = 1
        self.statistics: list[float] = []
        self.optimizers = self._optimizers()
        self._run: Callable[..., torch.Tensor] = self.net
        self._tempered = spec.cause("recompiles") is not None
        if self._tempered:
            torch._dynamo.config.recompile_limit = 100_000
            torch._dynamo.config.accumulated_recompile_limit = 100_000
            self._run = torch.compile(Tempered(self.net), dynamic=False, backend="aot_eager")
        elif spec.compiled:
            self._run = torch.compile(self.net, backend=backend())
        if spec.cause("statistics"):
            self._watch_activations()
        if spec.graphed:
            self._replay_as_graph()

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        """Scores."""
        if self._tempered:
            return self._run(inputs, self.temperature)
        return self._run(inputs)

    def change_temperature(self) -> None:
        """To one that no model was compiled for."""
        self.temperature = next(_TEMPERATURES)

    def update(self) -> None:
        """Change the parameters by their gradients, and forget those."""
        if not self.optimizers:
            with torch.no_grad():
                for parameter in self.net.parameters():
                    if parameter.grad is not None:
                        parameter.sub_(parameter.grad, alpha=LEARNING_RATE)
                        parameter.grad = None
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()

    def _optimizers(self) -> list[torch.optim.Optimizer]:
        spec = self.spec
        parameters = list(self.net.parameters())
        if spec.table == "sparse" and spec.optimizer == "sgd":
            # The fused one takes no sparse gradients.
            return [torch.optim.SGD(parameters, lr=LEARNING_RATE)]
        if spec.table == "sparse" and spec.family == "recommender":
            fused = spec.optimizer == "adamw-fused" or None
            named = dict(self.net.named_parameters())
            table = [each for name, each in named.items() if "table" in name]
            rest = [each for name, each in named.items() if "table" not in name]
            return [
                torch.optim.SparseAdam(table, lr=LEARNING_RATE),
                torch.optim.AdamW(rest, lr=LEARNING_RATE, fused=fused),
            ]
        if spec.cause("per_parameter"):
            return [torch.optim.AdamW(parameters, lr=LEARNING_RATE, foreach=False)]
        match spec.optimizer:
            case "sgd":
                return [torch.optim.SGD(parameters, lr=LEARNING_RATE, fused=True)]
            case "adamw" | "adamw-fused":
                fused = spec.optimizer == "adamw-fused" or None
                capturable = spec.whole_step
                return [
                    torch.optim.AdamW(parameters, LEARNING_RATE, fused=fused, capturable=capturable)
                ]
            case "hand":
                return []

    def _watch_activations(self) -> None:
        leaves = [each for each in self.net.modules() if not list(each.children())]
        for module in [each for each in leaves if list(each.parameters())][:STATISTICS_OF]:
            module.register_forward_hook(self._look_at)

    def _look_at(self, _module: nn.Module, _inputs: object, output: object) -> None:
        shown = output[0] if isinstance(output, tuple) else output
        if isinstance(shown, torch.Tensor):
            self.statistics[-STATISTICS_OF:] = [shown.detach().float().abs().mean().item()]

    def _replay_as_graph(self) -> None:
        inputs = samples_of(self.spec, scale_of(self.spec).batch)[0].to(self.spec.device)
        graphed = torch.cuda.make_graphed_callables(self.net, (inputs,))
        self._run = cast(Callable[..., torch.Tensor], graphed)


class StepGraph:
    """Replays what a step does on the GPU; the first batch of a step overwrites its gradients, the
    others, where several are accumulated, add to them."""

    def __init__(
        self,
        batch: Batch,
        parameters: Sequence[torch.nn.Parameter],
        gradients: Callable[[torch.Tensor, torch.Tensor], Batch],
        update: Callable[[], None],
    ) -> None:
        inputs, targets = self._batch = batch[0].clone(), batch[1].clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                gradients(inputs, targets)
                update()
        torch.cuda.current_stream().wait_stream(side)
        self._first, self._more, self._update = (torch.cuda.CUDAGraph() for _ in range(3))
        with torch.cuda.graph(self._first):
            self._answer = gradients(inputs, targets)
        with torch.cuda.graph(self._more):
            self._next = gradients(inputs, targets)
        # An update forgets its gradients, which the graphs before it write.
        self._held = [parameter.grad for parameter in parameters]
        with torch.cuda.graph(self._update):
            update()
        self._updated = True

    def gradients(self, inputs: torch.Tensor, targets: torch.Tensor) -> Batch:
        """Scores and loss of a batch, which is copied to where the graph reads it."""
        for held, given in zip(self._batch, (inputs, targets), strict=True):
            held.copy_(given, non_blocking=True)
        graph, answer = (self._first, self._answer) if self._updated else (self._more, self._next)
        graph.replay()
        self._updated = False
        return answer

    def update(self) -> None:
        """Of the parameters, by what has been accumulated since the last one."""
        self._update.replay()
        self._updated = True


class Models:
    """The models, and the data, of a run and of what its switches make of it."""

    def __init__(self) -> None:
        self._models: dict[Spec, Model] = {}
        self._pools: dict[Scale, Batch] = {}

    def pool(self, spec: Spec) -> Batch:
        """Samples for some batches, the same for all of them."""
        scale = scale_of(spec)
        if scale not in self._pools:
            self._pools[scale] = samples_of(spec, POOL * scale.batch)
        return self._pools[scale]

    def model(self, spec: Spec) -> Model:
        """The one that fits; it is built when first asked for."""
        key = replace(
            spec,
            feed="resident",
            workers=0,
            whole_batches=True,
            pinned=False,
            varied=False,
            sync="none",
            sync_every=1,
            log="none",
            log_every=1,
            evaluation="none",
            evaluate_every=1,
            evaluate_batches=1,
            checkpoint_every=0,
            accumulation=1,
            clip=False,
            ready=False,
            copies=True,
            causes=tuple(each for each in spec.causes if each.name in OF_THE_MODEL),
        )
        if key not in self._models:
            self._models[key] = Model(spec)
        return self._models[key]


OF_THE_MODEL: Final = frozenset(
    {"cells", "recompiles", "statistics", "per_parameter", "dense_table"}
)
"""Causes that make another model of it."""


def set_precision(spec: Spec) -> None:
    """Of fp32 products, for the whole process."""
    torch.set_float32_matmul_precision("highest" if spec.precision == "fp32" else "high")
    torch.backends.cudnn.allow_tf32 = spec.precision != "fp32"


def backend() -> str:
    """Of torch.compile: without a compiler of C there is no inductor."""
    there = shutil.which("cc") is not None and sys.platform == "linux"
    return "inductor" if there else "aot_eager"
