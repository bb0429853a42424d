"""Whose loop trains, the user's own or that of a library that was handed a net; and where a stack
calls a net."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from ..verdict.code_origin import MACHINERY, is_users, where_in
from ..verdict.frameworks import LOOPS
from ..verdict.stack_samples import StackPhase
from .frames import is_of_loop, place_of
from .observations import StackCount

LEARNS: Final[tuple[StackPhase, ...]] = ("backward", "optimizer")
_PYTORCH: Final = "torch/"
CALL_OF_NET: Final = "_call_impl (torch/nn/modules/module.py"
BY_HAND: Final = re.compile(r"([\w<>]+\.)*(forward|__call__|net|model|network) \(")
"""A function of the user's own that is a net, or a layer of one, in a program that calls no module:
"from scratch", of plain tensors (d2l's book, Karpathy's lectures)."""
COMPUTES_NOTHING: Final = (
    *("torch/utils/data/", "torch/utils/tensorboard/"),
    *("torch/serialization.py", "torch/_tensor_str.py"),
)
"""PyTorch's loaders, TensorBoard's writer, files, and tensors as text."""
COPIES_OR_WRITES: Final = re.compile(
    r"(\w+\.)?__(format|repr|str|deepcopy|reduce_ex)__ \(torch/_tensor\.py"
)
"""Nor does a tensor that is written down or copied."""
_INSTALLED: Final = "-packages/"
BY_POSITION: Final = re.compile(
    r" \(torch/nn/modules/(rnn|transformer)\.py"
    r"|Conv1d\._conv_forward \(torch/nn/modules/conv\.py"
    r"|MultiheadAttention\.forward \(torch/nn/modules/activation\.py"
    r"|multi_head_attention_forward \(torch/nn/functional\.py"
    r"| \(transformers/models/\w+/modeling_"
)
"""Layers whose time goes with the positions of a text. Before Python 3.11 frames name no class."""
BY_HAND_AT_POSITIONS: Final = re.compile(
    r"(Attention|\w*(SelfAttention|CrossAttention|MultiHead\w*|ScaledDotProduct\w*)"
    r"|Position_?[Ww]ise\w*|\w*Transformer\w*(Block|Layer))\.\w+ \("
)
"""Such layers of the user's own, by their class: the parts of a net, not the net itself, whose name
may be that of what it ends with."""
MOST_STACKS: Final = 1_024
"""A run is at the same places again and again, and its stacks are read every few seconds."""

Function = tuple[str, str]
"""Its name and its file."""
Call = tuple[str, Function]
"""The frame that calls, with its line, and the function: before Python 3.11 every `__call__` of a
file has one name."""
PhaseOf = Callable[[StackCount], StackPhase]
"""The phase of a stack of the main thread."""


def package_of_loop(stacks: Iterable[tuple[StackCount, StackPhase]]) -> str:
    """ "stable_baselines3/", where the innermost function that leads to the backward and to the
    update is a library's: the user's line above it only starts it, and is at the root of every
    sample. "" where that function is the user's own, as beside Accelerate, or none was seen."""
    seen: dict[StackPhase, Counter[tuple[Function, ...]]] = {phase: Counter() for phase in LEARNS}
    for stack, phase in stacks:
        if any(where_in(frame).startswith(LOOPS) for frame in stack.frames):
            return ""  # its users know that loop by its arguments
        if phase in seen:
            seen[phase][_functions(stack.frames)] += stack.count
    ways = [set().union(*of_phase) for of_phase in seen.values()]
    both = set.intersection(*map(set, ways))
    packages: Counter[str] = Counter()
    for of_phase in seen.values():
        for way, count in of_phase.items():
            file = next((one[1] for one in reversed(way) if one in both), "")
            packages["" if not file or is_users(file) else _package(file)] += count
    (most, _), *_ = packages.most_common(1) or [("", 0)]
    return most


@lru_cache(maxsize=MOST_STACKS)
def _functions(frames: tuple[str, ...]) -> tuple[Function, ...]:
    """Outermost first, without PyTorch's."""
    files = [(frame.partition(" (")[0], where_in(frame).partition(":")[0]) for frame in frames]
    return tuple(one for one in files if not one[1].startswith((_PYTORCH, *MACHINERY)))


def _package(file: str) -> str:
    before, installed, below = file.rpartition(_INSTALLED)
    top, folder, _ = below.partition("/")
    return f"{before}{installed}{top}/" if folder else file


def library_of_net(frames: tuple[str, ...], net: int) -> str:
    """ "transformers/", whose modules are the first below a call of a net that neither the user nor
    PyTorch has written; "" where there are none."""
    files = (file for _, file in _functions(frames[net:]))
    return next((_package(file) for file in files if not is_users(file)), "")


@lru_cache(maxsize=MOST_STACKS)
def runs_net(frames: tuple[str, ...]) -> bool:
    """Whether a stack is below a call of a module."""
    return any(CALL_OF_NET in frame for frame in frames)


@lru_cache(maxsize=MOST_STACKS)
def is_by_position(frames: tuple[str, ...]) -> bool:
    """Whether a stack is in such a layer, or below one."""
    called = [at for at, frame in enumerate(frames) if CALL_OF_NET in frame]
    parts = frames[called[1] :] if len(called) > 1 else ()
    return any(map(BY_POSITION.search, frames)) or any(map(BY_HAND_AT_POSITIONS.match, parts))


def nets_by_hand(stacks: Sequence[StackCount], phase_of: PhaseOf | None) -> frozenset[Call]:
    """Calls of the user's own functions that are nets, in a program that calls no module. A logger
    has a `__call__` too: what is called after the update, and hardly computes tensors, is none."""
    if any(runs_net(stack.frames) for stack in stacks):
        return frozenset()
    last = {} if phase_of is None else last_lines(stacks, phase_of, "")
    nets, seen, computing = set[Call](), Counter[Call](), Counter[Call]()
    for stack in stacks:
        for at, frame in enumerate(stack.frames):
            if not BY_HAND.match(frame) or not is_users(where_in(frame)):
                continue
            call, above = _call(stack.frames, at), own_lines(stack.frames[:at], "")
            if not any(line > last.get(function, line) for function, line in above):
                nets.add(call)
            seen[call] += stack.count
            computing[call] += stack.count if _computes(stack) else 0
    return frozenset(nets | {call for call, n in seen.items() if 2 * computing[call] >= n})


@lru_cache(maxsize=MOST_STACKS)
def net_at(frames: tuple[str, ...], by_hand: frozenset[Call] = frozenset()) -> int | None:
    """Index of the frame that calls a module, or is one of the user's own nets where the program
    has no modules (`by_hand`); None where there is neither."""
    for at, frame in enumerate(frames):
        if CALL_OF_NET in frame or (by_hand and _call(frames, at) in by_hand):
            return at
    return None


def last_lines(
    stacks: Iterable[StackCount], phase_of: PhaseOf, library: str
) -> dict[Function, int]:
    """Of the functions that lead to a backward or an update, the last line that does."""
    last: dict[Function, int] = {}
    for stack in stacks:
        if phase_of(stack) in LEARNS:
            for function, line in own_lines(stack.frames, library):
                last[function] = max(line, last.get(function, 0))
    return last


def own_lines(frames: tuple[str, ...], library: str) -> list[tuple[Function, int]]:
    """The user's functions in a stack, or the library's, outermost first, each with its line."""
    found = []
    for frame in frames:
        line = place_of(frame)[1]
        if line and is_of_loop(frame, library):
            found.append((_function(frame), line))
    return found


def _call(frames: tuple[str, ...], at: int) -> Call:
    return frames[at - 1] if at else "", _function(frames[at])


def _function(frame: str) -> Function:
    return frame.partition(" (")[0], place_of(frame)[0]


def with_solvers(stacks: Sequence[StackCount], phase_of: PhaseOf) -> PhaseOf:
    """Of a library that is handed a net and calls it, as an ODE's solver, what it computes beside
    the net is of the same phase: "forward", or "evaluation" where the net does not learn there; its
    Python, as a tokenizer's, is not. By the user's line that calls the library, unless that line
    leads to a backward or an update too, as a trainer's does."""
    phases: dict[str, set[StackPhase]] = {}
    learning: set[str] = set()
    for stack in stacks:
        phase, at = phase_of(stack), net_at(stack.frames)
        if phase in LEARNS:
            learning.add(_calls_library(stack.frames))
        elif at is not None and phase in ("forward", "evaluation"):
            phases.setdefault(_calls_library(stack.frames[:at]), set()).add(phase)
    solving = {line: found for line, found in phases.items() if line and line not in learning}
    if not solving:
        return phase_of

    def phase_with_solvers(stack: StackCount) -> StackPhase:
        phase = phase_of(stack)
        if phase != "forward" and not (phase == "other" and _computes(stack)):
            return phase
        at = net_at(stack.frames)
        found = solving.get(_calls_library(stack.frames[:at]), set())
        return next(iter(found)) if len(found) == 1 else phase

    return phase_with_solvers


def _computes(stack: StackCount) -> bool:
    """In PyTorch itself, or on a line of tensors."""
    if stack.computes or not stack.frames:
        return stack.computes
    innermost = where_in(stack.frames[-1])
    written = innermost.startswith(COMPUTES_NOTHING) or COPIES_OR_WRITES.match(stack.frames[-1])
    return innermost.startswith(_PYTORCH) and not written


@lru_cache(maxsize=MOST_STACKS)
def _calls_library(frames: tuple[str, ...]) -> str:
    """The innermost line of the user's, where it calls a library's function that is neither
    PyTorch's nor Python's; else ""."""
    files = [where_in(frame) for frame in frames]
    own = max((at for at, file in enumerate(files) if is_users(file)), default=len(files))
    called = (one for one in files[own + 1 :] if not one.startswith((_PYTORCH, *MACHINERY)))
    return frames[own] if any(called) else ""
