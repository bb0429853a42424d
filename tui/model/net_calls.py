"""Where a stack calls a net."""

import re
from functools import lru_cache
from typing import Final

from ..verdict.code_origin import is_users, where_in

CALL_OF_NET: Final = "_call_impl (torch/nn/modules/module.py"
BY_HAND: Final = re.compile(r"([\w<>]+\.)*(forward|__call__|net|model|network) \(")
"""A function of the user's own that is a net, or a layer of one, in a program that calls no module:
"from scratch", of plain tensors (d2l's book, Karpathy's lectures)."""
MOST_STACKS: Final = 1_024
"""A run is at the same places again and again, and its stacks are read every few seconds."""


@lru_cache(maxsize=MOST_STACKS)
def runs_net(frames: tuple[str, ...]) -> bool:
    """Whether a stack is below a call of a module."""
    return any(CALL_OF_NET in frame for frame in frames)


@lru_cache(maxsize=MOST_STACKS)
def net_at(frames: tuple[str, ...], by_hand: bool) -> int | None:
    """Index of the frame that calls a module, or is the user's own net where the program has no
    modules (`by_hand`); None where there is neither."""
    for at, frame in enumerate(frames):
        if CALL_OF_NET in frame:
            return at
        if by_hand and BY_HAND.match(frame) and is_users(where_in(frame)):
            return at
    return None
