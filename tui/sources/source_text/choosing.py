"""Whether a loop chooses, from what its net says, what the next turn begins with: the word that is
likeliest, an action in an environment. No gradient goes through that, so no graph shows it, nor
through a state that is detached."""

import ast
import re
from collections.abc import Sequence
from typing import Final

from ...verdict.syntax import name_of, root_of
from .places import LOOPS, Place, learns
from .turns import MODULES

CHOICES: Final = re.compile(
    r"(^|_)(argmax|topk|multinomial|sampled?|bernoulli|categorical|greedy|act|actions?|choose|choice"
    r"|detach|repackage|numpy)(_|$)",
    re.IGNORECASE,
)
"""In the name of what is called: it chooses, or cuts off the gradient of what goes on."""


def chooses(way: Sequence[Place]) -> bool:
    """In a loop around one of these frames, innermost first, or in a function that is called from
    there. What trains chooses for its metrics."""
    called: list[ast.AST] = []
    for place in way:
        loops = [one for one in place.around() if isinstance(one, LOOPS) and not learns(one)]
        if loops and any(map(_chooses, (*loops, *called))):
            return True
        if learns(place.scope):
            return False
        called.append(place.scope)
    return False


def _chooses(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) and _is_choice(one) for one in ast.walk(node))


def _is_choice(call: ast.Call) -> bool:
    """`env.step(action)`, and not `optimizer.step()`; `scores.max(1)`, and not `lengths.max()`."""
    name, given = name_of(call.func), len(call.args) + len(call.keywords)
    if name == "max" and isinstance(call.func, ast.Attribute):
        return given > (1 if root_of(call.func) in MODULES else 0)
    return CHOICES.search(name) is not None or (name == "step" and given > 0)
