"""Several backwards of one step that go through one graph, kept by `retain_graph=True`: each makes
gradients of the same products again, which one backward from the sum of the losses makes once."""

import sys
from collections.abc import Callable
from math import prod
from typing import Any, Final

from ..loaders import is_dispatched
from .autocast import is_leaf, name_of
from .graph_rows import OPERANDS, inputs_of, result_of
from .operations import PAUSE
from .users import Users, users_below

REPEATED_BACKWARD: Final = "repeated_backward"
"""As `settings.Settings` has it."""
LEAST: Final = 0.001
"""Of all arithmetic: what a node or two share is nothing."""

Repeated = tuple[float, int]
"""The fields of `settings.RepeatedBackward`."""


class Backwards:
    """Of one step of the loop, from the first of its backwards to the optimizer's step. Belongs to
    the training thread, and holds no graph: a node has a number of its own."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._are_several = False
        """In some step that was seen; else none is walked through."""
        self._again_ns: int | None = None
        self._took_ns = 0
        self._products: dict[int, int] = {}
        """Arithmetic of each of the step, by its node's number."""
        self._flops = self._flops_again = 0
        self._walked: int | None = None
        """Backwards of the step that were looked at; None where not all before it were, or they are
        no sum's."""

    def look(self, root: Any, number: int) -> None:
        """At the graph of the step's backward of that number, from 1, `root` being the node that it
        starts from. Where the second shares nothing with the first no more are looked at."""
        begun_ns = self._now_ns()
        if number == 1:
            due = self._again_ns is None or begun_ns >= self._again_ns
            self._walked = 0 if self._are_several and due else None
            self._products, self._flops, self._flops_again, self._took_ns = {}, 0, 0, 0
        if self._walked is None or self._walked != number - 1:
            return
        is_sum = self._is_of_a_sum(users_below(root)[1])
        self._walked = number if is_sum and (number == 1 or self._flops_again) else None
        ended_ns = self._now_ns()
        self._took_ns += ended_ns - begun_ns
        self._again_ns = ended_ns + PAUSE * self._took_ns

    def stepping(self, backwards: int) -> dict[str, Any]:
        """The field, after so many backwards of the step; nothing where not all were looked at."""
        self._are_several = self._are_several or backwards > 1
        walked, self._walked = self._walked, None
        if walked is None or walked != backwards or not self._flops:
            return {}
        again = self._flops_again / self._flops
        return {REPEATED_BACKWARD: (again, walked) if again > LEAST else None}

    def _is_of_a_sum(self, users: Users) -> bool:
        """Losses add up to one only while nobody clears the gradients that one has made before the
        next comes."""
        torch = sys.modules["torch"]
        if is_dispatched(torch):
            return False
        is_shared = False
        for node in users:
            if name_of(node) not in OPERANDS or not hasattr(node, "_sequence_nr"):
                continue
            number = int(node._sequence_nr())
            flops = 2 * prod(result_of(node)) * inputs_of(node)
            again = number in self._products
            is_shared |= again
            self._flops += flops
            self._flops_again += flops * again
            self._products[number] = flops
        return not is_shared or any(is_leaf(one) and one.variable.grad is not None for one in users)
