"""Stacks that begin alike become one tree, in which only what tells something has a row."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ..model.frames import MOST_STACKS, is_users, place_of
from ..model.stack_trees import Branch, Merged

LEAST_SHARE: Final = 0.01
"""A branch with a smaller part of its role's samples is left out."""
CALLS_ON: Final = re.compile(r"(Module\.)?_(wrapped_)?call_impl \(torch/nn/modules/module\.py")
"""Between a net and each of its modules: they say nothing, and would be every other row."""


@dataclass(slots=True)
class _Node:
    samples: int = 0
    line: str = ""
    below: dict[str, "_Node"] = field(default_factory=dict)


def branches_of(stacks: Iterable[Merged]) -> tuple[Branch, ...]:
    """The tree of one role's stacks, without branches too small, chains in one piece."""
    root = _Node()
    for stack in stacks:
        root.samples += stack.samples
        frames = _without_calls(stack.frames)
        node, told = root, _innermost_own(frames) if stack.line else -1
        for depth, frame in enumerate(frames):
            node = node.below.setdefault(frame, _Node())
            node.samples += stack.samples
            if depth == told:
                node.line = stack.line
    return _below(root, root.samples)


@lru_cache(maxsize=MOST_STACKS)
def _without_calls(frames: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(frame for frame in frames if not CALLS_ON.match(frame))


def _innermost_own(frames: Sequence[str]) -> int:
    """Which of them a stack's `line` is the text of."""
    return next((i for i in range(len(frames) - 1, -1, -1) if _is_own(frames[i])), -1)


def _below(node: _Node, whole: int) -> tuple[Branch, ...]:
    return tuple(_branch(frame, below, whole) for frame, below in _kept(node, whole))


def _kept(node: _Node, whole: int) -> list[tuple[str, _Node]]:
    """What is large enough, most samples first, then by name."""
    large = [item for item in node.below.items() if item[1].samples >= LEAST_SHARE * whole]
    return sorted(large, key=lambda item: (-item[1].samples, item[0]))


def _branch(frame: str, node: _Node, whole: int) -> Branch:
    samples, own, frames = node.samples, _is_own(frame), [frame]
    kept = _kept(node, whole)
    while len(kept) == 1 and node.samples - kept[0][1].samples < LEAST_SHARE * whole:
        if _is_own(kept[0][0]) is not own:
            break
        frame, node = kept[0]
        frames.append(frame)
        kept = _kept(node, whole)
    return Branch(
        frames=tuple(frames),
        samples=samples,
        share=samples / whole,
        own=own,
        line=node.line,
        branches=_below(node, whole),
    )


def _is_own(frame: str) -> bool:
    return is_users(place_of(frame)[0])
