"""Several backwards of one step that go through one graph, kept by `retain_graph=True`: each makes
gradients of the same products again, which one backward from the sum of the losses makes once."""

import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from weakref import ref

from ..loaders import is_dispatched
from .autocast import name_of
from .graph_rows import OPERANDS, flops_of
from .operations import PAUSE
from .users import Users, parameter_of, users_below

REPEATED_BACKWARD: Final = "repeated_backward"
"""As `settings.Settings` has it."""
MOST_LEAVES: Final = 16
"""Parameters whose gradients are looked at before and after each backward."""
LEAST: Final = 0.001
"""Of all arithmetic: what a node or two share is nothing."""

Repeated = tuple[float, int]
"""The fields of `settings.RepeatedBackward`."""


class Backwards:
    """Of one step of the loop, from the first of its backwards to the optimizer's step. Belongs to
    the training thread. It holds nodes until the step, for their numbers are a thread's own."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._are_several = False
        """In some step that was seen; else none is walked through."""
        self._again_ns: int | None = None
        self._took_ns = 0
        self._products: set[Any] = set()
        self._flops = self._flops_again = 0
        self._walked: int | None = None
        """Backwards of the step that were looked at; None where not all before it were, or they are
        no sum's."""
        self._leaves: list[Any] = []
        """Of the graph that was looked at last, some parameters…"""
        self._left: list[_Gradient] = []
        """…and their gradients as its backward has left them."""

    def look(self, root: Any, number: int) -> None:
        """At the graph of the step's backward of that number, from 1, `root` being the node that it
        starts from. Where the second shares nothing with the first no more are looked at."""
        begun_ns = self._now_ns()
        if number == 1:
            due = self._again_ns is None or begun_ns >= self._again_ns
            self._forget()
            self._walked = 0 if self._are_several and due else None
        if self._walked is None or self._walked != number - 1:
            return
        if number > 1 and not all(one.is_there() for one in self._left):
            self._forget()  # cleared, clipped or projected: not those of a sum
            return
        users = users_below(root)[1]
        if not is_dispatched(sys.modules["torch"]):
            self._add(users)
            self._walked = number if number == 1 or self._flops_again else None
        else:
            self._walked = None
        parameters = [one for leaf in users if (one := parameter_of(leaf)) is not None]
        self._leaves = list(map(ref, parameters[:: max(1, len(parameters) // MOST_LEAVES)]))
        ended_ns = self._now_ns()
        self._took_ns += ended_ns - begun_ns
        self._again_ns = ended_ns + PAUSE * self._took_ns

    def ended(self) -> None:
        """The backward that was looked at: each has added to the gradient of each parameter of its
        graph, unless it was asked for some alone."""
        if self._walked is None or not self._leaves:
            return
        before = {id(one.parameter()): one for one in self._left}
        parameters = [one for leaf in self._leaves if (one := leaf()) is not None]
        self._leaves, self._left = [], []
        for parameter in parameters:
            old = before.get(id(parameter))
            if parameter.grad is None or (old is not None and old.is_there()):
                self._forget()
                return
            self._left.append(
                _Gradient(ref(parameter), ref(parameter.grad), parameter.grad._version)
            )

    def stepping(self, backwards: int) -> dict[str, Any]:
        """The field, after so many backwards of the step; nothing where not all were looked at."""
        self._are_several = self._are_several or backwards > 1
        walked, flops, again = self._walked, self._flops, self._flops_again
        self._forget()
        if walked is None or walked != backwards or not flops:
            return {}
        part = again / flops
        return {REPEATED_BACKWARD: (part, walked) if part > LEAST else None}

    def _add(self, users: Users) -> None:
        for node in users:
            if name_of(node) not in OPERANDS:
                continue
            flops = flops_of(node)
            self._flops += flops
            self._flops_again += flops * (node in self._products)
            self._products.add(node)

    def _forget(self) -> None:
        self._walked, self._leaves, self._left = None, [], []
        self._products, self._flops, self._flops_again, self._took_ns = set(), 0, 0, 0


class _Gradient(NamedTuple):
    """Of a parameter, as a backward has left it."""

    parameter: Any
    """Its weak reference."""
    gradient: Any
    """The gradient's."""
    version: int

    def is_there(self) -> bool:
        """Nothing has changed it since."""
        parameter: Any = self.parameter()
        gradient: Any = getattr(parameter, "grad", None)
        same = gradient is not None and gradient is self.gradient()
        return same and bool(gradient._version == self.version)
