"""A parametrized weight that a loop within a net computes anew in each turn, though it is the same
in all: by the text of the user's functions that lead to it."""

import ast
import re
from collections.abc import Sequence
from typing import Final

from ...verdict.syntax import name_of
from .places import FUNCTIONS, LOOPS, Comprehension, Place, heads, holds, sources
from .turns import made_from, names_in
from .value_flow import stored

COMPUTES: Final = re.compile(r" \(torch/nn/utils/(parametrize|weight_norm|spectral_norm)\.py")
"""Files of PyTorch's that compute a weight where a layer asks for it."""
KEEPS: Final = "cached"
"""Of torch.nn.utils.parametrize: within it each such weight is computed once."""
OVER_ALL: Final = frozenset(("zip", "enumerate", "reversed", "list", "tuple", "iter", "tqdm"))
OF_MODULES: Final = frozenset(("items", "values", "children", "named_children"))


def parametrized_at(frames: Sequence[str]) -> int | None:
    """Index of the frame in which such a weight begins to be computed; None where none is."""
    return next((at for at, one in enumerate(frames) if COMPUTES.search(one)), None)


def computed_anew(inner: Sequence[Place], way: Sequence[Place]) -> str:
    """The frame with the outermost such loop, `inner` being the net's frames above the weight and
    `way` those above the net, innermost first; "" where there is none. A loop around the net may
    update it."""
    if any(map(_keeps, (*inner, *way))):
        return ""
    looped = ""
    for place in inner:
        loops = (one for one in place.around() if isinstance(one, LOOPS))
        if any(_asks_one(one, place.line) for one in loops):
            looped = place.frame
        if isinstance(place.scope, FUNCTIONS):
            given = {one.arg for one in ast.walk(place.scope.args) if isinstance(one, ast.arg)}
            if _picks(place.scope.body, place.line, given - {"self"}):
                break  # what calls it may ask for another layer each time: `self.layer_of(i, x)`
    return looped


def _keeps(place: Place) -> bool:
    around = (one for one in place.around() if isinstance(one, (ast.With, ast.AsyncWith)))
    contexts = [item.context_expr for one in around for item in one.items]
    if isinstance(place.scope, FUNCTIONS):
        contexts += place.scope.decorator_list
    calls = (one for context in contexts for one in ast.walk(context))
    return any(isinstance(one, ast.Call) and name_of(one.func) == KEEPS for one in calls)


def _asks_one(loop: ast.AST, line: int) -> bool:
    """What its turns call at the line is the same in each: no layer after the other."""
    body = _turn(loop)
    if not any(holds(one, line) for one in body) or any(map(_are_modules, sources(loop))):
        return False
    parts = names_in(loop.test) if isinstance(loop, ast.While) else set[str]()
    parts = parts.union(*(stored(one.target) for one in heads(loop)))
    names = parts if isinstance(loop, Comprehension) else made_from(body, parts)
    return not _picks(body, line, names)


def _turn(loop: ast.AST) -> Sequence[ast.AST]:
    if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return loop.body
    if isinstance(loop, ast.DictComp):
        return [loop.key, loop.value]
    return [loop.elt] if isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) else []


def _picks(body: Sequence[ast.AST], line: int, names: set[str]) -> bool:
    """What is called at the line depends on these: `layer(x)`, `layers[i](x)`, `self.layers[i]` in
    whatever way, `getattr(self, f"layer{i}")(x)`; not `x.float()`."""
    for one in (node for each in body for node in ast.walk(each) if holds(node, line)):
        if isinstance(one, ast.Subscript):
            if _root(one) == "self" and names_in(one.slice) & names:
                return True
        elif isinstance(one, ast.Call) and isinstance(
            one.func, (ast.Name, ast.Subscript, ast.Call)
        ):
            of = one.func.slice if isinstance(one.func, ast.Subscript) else one.func
            if names_in(of) & names:
                return True
    return False


def _are_modules(over: ast.expr) -> bool:
    """`self.layers`, `zip(self.layers, self.norms)`, `self.heads.values()`."""
    if isinstance(over, ast.Call):
        if name_of(over.func) in OVER_ALL:
            return any(map(_are_modules, over.args))
        called = over.func if name_of(over.func) in OF_MODULES else None
        return isinstance(called, ast.Attribute) and _are_modules(called.value)
    if isinstance(over, ast.Subscript):
        return _are_modules(over.value)
    return isinstance(over, ast.Attribute) and _root(over) == "self"


def _root(one: ast.expr) -> str:
    """ "self" of `self.layers[0].norms`."""
    while isinstance(one, (ast.Attribute, ast.Subscript)):
        one = one.value
    return name_of(one)
