"""A step as CUDA graphs: of a batch's forward, loss and backward, and of the update."""

from collections.abc import Callable, Sequence
from typing import Final

import torch

from generated.families import Batch

WARM_UP: Final = 3
"""Steps before a capture, as PyTorch asks: libraries and optimizers make what they keep."""


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
