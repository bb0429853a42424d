"""PyTorch's own attention module where its caller throws the weights away: `nn.MultiheadAttention`
returns them unless it is asked not to, and then makes each in full."""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from ..settings import Settings
from .code_places import is_in_forward
from .place_names import function_of, own_frame, path_of
from .stack_samples import FrameShare
from .syntax import statements_in

FUNCTIONAL: Final = "torch/nn/functional.py"
ATTENDS: Final = "multi_head_attention_forward"
SOFTMAX: Final = "softmax"
WITH_WEIGHTS: Final = (ATTENDS, SOFTMAX, "dropout")
"""What attention with weights is at work in, beside the projection of its inputs."""
NEED_WEIGHTS: Final = 4
"""Which of the call's arguments it is."""
BEGINS: Final = re.compile(r"^\w+, _\w* = [\w.\[\]]+\($|^\w+, _\w* = [\w.\[\]]+\([^()]*,$")
"""A call whose further lines were not read, and whose weights nobody will look at."""


def weights_thrown_away(
    places: Sequence[FrameShare], settings: Settings | None
) -> list[FrameShare]:
    """Places in calls of attention whose weights go nowhere; none where no backward's graph shows
    weights. Of a call that is read in part it is known only by its softmax, or where no attention
    is in one kernel."""
    seen = None if settings is None else settings.attention_weights
    if seen is None:
        return []
    within = [one for one in places if _is_attention(one)]
    softmaxes = {own_frame(one) for one in within if function_of(one.frame) == SOFTMAX}
    return [
        one
        for one in within
        if throws_away(one.line)
        or (BEGINS.search(one.line) and (not seen.in_one_call or own_frame(one) in softmaxes))
    ]


def _is_attention(place: FrameShare) -> bool:
    if not is_in_forward(place) or place.library or place.caller is None:
        return False
    return path_of(place.frame) == FUNCTIONAL and function_of(place.frame) in WITH_WEIGHTS


@lru_cache(maxsize=256)
def throws_away(line: str) -> bool:
    """`h, _ = self.attn(h, h, h)`, `self.attn(h, h, h)[0]`; not with `need_weights=False`, which
    makes none, and not what is kept under a name."""
    return any(_makes_weights(call) for one in statements_in(line) for call in _first_of(one))


def _first_of(statement: ast.stmt) -> Iterator[ast.Call]:
    """Calls of which the first result alone is used."""
    for node in ast.walk(statement):
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=[_, ast.Name(id=name)])], value=ast.Call() as call
            ) if name.startswith("_"):
                yield call
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)):
                yield call


def _makes_weights(call: ast.Call) -> bool:
    """It may be asked not to by what is handed on (`**options`)."""
    named = {one.arg: one.value for one in call.keywords}
    given = call.args[NEED_WEIGHTS] if len(call.args) > NEED_WEIGHTS else None
    asked = named.get("need_weights", given)
    if None in named or any(isinstance(one, ast.Starred) for one in call.args):
        return False
    return not (isinstance(asked, ast.Constant) and asked.value is False)
