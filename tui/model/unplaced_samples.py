"""What of the training thread's samples lies beside net, loss, backward and update: it may make
batches, where no mark tells."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..verdict.code_origin import is_users, where_in
from ..verdict.stack_samples import StackPhase
from .frames import is_of_loop, place_of, worth_naming
from .loop_frames import (
    CALL_OF_NET,
    LEARNS,
    Call,
    PhaseOf,
    last_lines,
    net_at,
    own_lines,
    runs_net,
)
from .observations import StackCount

FORWARD: Final = re.compile(r"([\w<>]+\.)*forward \(")
"""A frame of a module's own."""
OF_GRADIENTS: Final = re.compile(r"\.grad\b")
"""In a line that updates parameters by hand, or sets their gradients to nothing."""
LinesThatTrain = Mapping[tuple[str, str], tuple[int, int]]
"""Of a user's function, by name and file: the last line that calls the net before the backward or
the update, and the last line of those."""


def unplaced_share(
    main: list[StackCount], phase_of: PhaseOf | None, library: str, by_hand: frozenset[Call]
) -> float:
    """As in `Stacks`. Of all stacks: those of a large net are at more places than are kept."""
    whole = samples_of(main)
    if phase_of is None or not whole:
        return 1.0
    unplaced = [
        one
        for one in main
        if _is_unplaced(one.frames, phase_of(one), by_hand)
        and not (one.beside or OF_GRADIENTS.search(one.line))
    ]
    if not unplaced:
        return 0.0
    trains = _lines_that_train(main, phase_of, library, by_hand)
    nets = _classes_of_nets(main, phase_of, library)
    apart = [
        one
        for one in unplaced
        if not _is_after_net(one.frames, trains, library)
        and nets.isdisjoint(_classes(one.frames, library))
    ]
    return samples_of(apart) / whole


def _is_unplaced(frames: tuple[str, ...], phase: StackPhase, by_hand: frozenset[Call]) -> bool:
    if phase not in ("other", "synchronisation", "waiting", "forward"):
        return False
    if net_at(frames, by_hand) is not None:
        return False
    if any(FORWARD.match(frame) for frame in frames):
        return False  # a module's, called without the module
    return phase in ("other", "waiting") or is_users(where_in(worth_naming(frames)))


def _classes_of_nets(
    main: list[StackCount], phase_of: PhaseOf, library: str
) -> frozenset[tuple[str, str]]:
    """The user's classes whose methods call modules and never lead to the backward or the update,
    as a trainer's do: nets, and not only by their `forward` (a CRF's `neg_log_likelihood`)."""
    calling, learning = set[tuple[str, str]](), set[tuple[str, str]]()
    for stack in main:
        if phase_of(stack) in LEARNS:
            learning.update(_classes(stack.frames, library))
        elif runs_net(stack.frames):
            below = next(i for i, one in enumerate(stack.frames) if CALL_OF_NET in one)
            calling.update(_classes(stack.frames[:below], library)[-1:])
    return frozenset(calling - learning)


def _classes(frames: tuple[str, ...], library: str) -> list[tuple[str, str]]:
    """Of the user's methods in a stack, outermost first, with their files: from Python 3.11 on
    functions are named with their class."""
    own = (
        (frame.partition(" (")[0], place_of(frame)[0])
        for frame in frames
        if is_of_loop(frame, library)
    )
    named = ((name.partition(".<locals>")[0].rpartition(".")[0], file) for name, file in own)
    return [(name, file) for name, file in named if name]


def _lines_that_train(
    main: list[StackCount], phase_of: PhaseOf, library: str, by_hand: frozenset[Call]
) -> LinesThatTrain:
    net: dict[tuple[str, str], set[int]] = {}
    beside: list[StackCount] = []
    for stack in main:
        below = net_at(stack.frames, by_hand)
        if below is None:
            beside.append(stack)
            continue
        for function, line in own_lines(stack.frames[:below], library):
            net.setdefault(function, set()).add(line)
    update = last_lines(beside, phase_of, library)
    called = {
        function: max((line for line in net.get(function, ()) if line < last), default=0)
        for function, last in update.items()
    }
    return {function: (line, update[function]) for function, line in called.items() if line}


def _is_after_net(frames: tuple[str, ...], trains: LinesThatTrain, library: str) -> bool:
    """Between the net and the update of the function that calls both: the loss, norms of gradients.
    A function of the user's that is called there is looked at by itself: some fetch there."""
    own = own_lines(frames, library)
    if not own or own[-1][0] not in trains:
        return False
    function, line = own[-1]
    net, update = trains[function]
    return net < line <= update


def samples_of(stacks: Iterable[StackCount]) -> int:
    """How many samples were in these stacks, all together."""
    return sum(stack.count for stack in stacks)
