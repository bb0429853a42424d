"""Whether a loop chooses, from what its net says, what the next turn begins with: the word that is
likeliest, an action in an environment. No gradient goes through that, so no graph shows it, nor
through a state that is detached."""

import ast
import re
from collections.abc import Sequence
from typing import Final

from ...verdict.syntax import name_of, root_of
from .places import LOOPS, Place, called_in, learns
from .turns import MODULES
from .value_flow import LOOP_STATEMENTS

CHOICES: Final = re.compile(
    r"(^|_)(argmax|argsort|topk|sort|multinomial|sampled?|bernoulli|categorical|greedy|act|actions?"
    r"|choose|choice|pick|round|sign|where|item|tolist|detach|repackage|numpy)(_|$)",
    re.IGNORECASE,
)
"""In the name of what is called: it chooses, or cuts off the gradient of what goes on."""


def chooses(way: Sequence[Place]) -> bool:
    """In a loop around one of these frames, innermost first, or in a function that is called there.
    What trains in each turn chooses for its metrics."""
    called: list[ast.AST] = []
    for place in way:
        loops = [one for one in place.around() if isinstance(one, LOOPS) and not _trains(one)]
        helpers = [one for loop in loops for one in called_in(loop, place.tree)]
        if loops and any(map(_chooses, (*loops, *helpers, *called))):
            return True
        if learns(place.scope):
            return False
        called.append(place.scope)
    return False


def _trains(loop: ast.AST) -> bool:
    """In each turn: a backward after every sixteenth is of the turns before it."""
    if not isinstance(loop, LOOP_STATEMENTS):
        return False
    return any(learns(one) for one in loop.body if not isinstance(one, ast.If))


def _chooses(node: ast.AST) -> bool:
    return any(_is_choice(one) for one in ast.walk(node))


def _is_choice(node: ast.AST) -> bool:
    """`env.step(action)`, and not `optimizer.step()`; `scores.max(1)`, and not `lengths.max()`;
    `(y > 0).float()`, and `h.data`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "data" or isinstance(node.value, ast.Compare)
    if not isinstance(node, ast.Call):
        return False
    name, given = name_of(node.func), len(node.args) + len(node.keywords)
    if name == "max" and isinstance(node.func, ast.Attribute):
        return given > (1 if root_of(node.func) in MODULES else 0)
    return CHOICES.search(name) is not None or (name == "step" and given > 0)
