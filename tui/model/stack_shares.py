"""From stacks to shares: how much of the samples of a role each place in the code holds."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Final

from ..verdict.frameworks import framework_of, outermost
from ..verdict.stack_samples import FrameShare, Stacks
from .frames import (
    acts,
    draws_of_stream,
    ends_workers,
    is_waiting,
    named_in,
    own_functions,
    own_line,
    takes_to_gpu,
    waits_for_work,
)
from .loop_frames import (
    LEARNS,
    Call,
    PhaseOf,
    is_by_position,
    library_of_net,
    net_at,
    nets_by_hand,
    package_of_loop,
    with_solvers,
)
from .observations import StackCount
from .unplaced_samples import samples_of, unplaced_share

DISPATCHES: Final = re.compile(
    r"(^|\.|_)(emit|fire|notify|trigger|dispatch|(call|run|execute|on)_?(all_)?(callback|hook|event)s?"
    r"(_hooks?)?)$"
)
"""Functions that call whatever was registered with them: what evaluates is below."""
MOST_PLACES: Final = 512
"""Kept for each role, the largest first: small operations lie at a hundred lines, of which no dozen
holds half, and a phase is the sum of its places."""


def summarise(stacks: Iterable[StackCount], phase_of: PhaseOf | None = None) -> Stacks:
    """Shares by role. A worker that waits for its next index is idle and names no place; imports
    are no part of the training, which the first samples of a run are full of.

    `moments` of a main thread's stack are bits as in `Stacks.taken`."""
    kept = list(stacks)
    main = [stack for stack in kept if stack.role == "main"]
    workers = [stack for stack in kept if stack.role == "worker"]
    busy = [stack for stack in workers if not waits_for_work(stack.frames)]
    samples = samples_of(workers)
    trains, library = main, ""
    if phase_of is not None:
        trains = [stack for stack in main if phase_of(stack) != "starting"]
        phase_of = with_solvers(trains, phase_of)
        library = package_of_loop((stack, phase_of(stack)) for stack in trains)
    by_hand = nets_by_hand(trains, phase_of)
    return Stacks(
        main_samples=samples_of(trains),
        main=_shares(trains, phase_of, library, by_hand),
        worker_samples=samples,
        workers=_shares(busy),
        worker_idle_share=1 - samples_of(busy) / samples if samples else None,
        main_unplaced=unplaced_share(trains, phase_of, library, by_hand),
        starting=samples_of(main) - samples_of(trains),
        threads=_beside(kept, main),
        main_waits=_waiting(trains),
        framework=outermost(framework_of(stack.frames) for stack in trains),
        loop_of=library,
        workers_starting=_starting(kept, main),
        streams=any(draws_of_stream(stack.frames) for stack in (*trains, *workers)),
        taken=reduce(or_, (stack.moments for stack in trains), 0),
    )


def _waiting(main: list[StackCount]) -> float:
    whole = samples_of(main)
    return samples_of([one for one in main if is_waiting(one.frames)]) / whole if whole else 0.0


def _beside(stacks: list[StackCount], main: list[StackCount]) -> tuple[FrameShare, ...]:
    """As in `Stacks.threads`."""
    own, whole = {stack.pid for stack in main}, samples_of(main)
    others = [stack for stack in stacks if stack.role == "other" and stack.pid in own]
    part = samples_of(others) / whole if whole else 0.0
    return tuple(
        replace(place, share=place.share * part, samples=whole) for place in _shares(others)
    )


def _starting(stacks: list[StackCount], main: list[StackCount]) -> int:
    own = {stack.pid for stack in main}
    others = (stack for stack in stacks if stack.role == "other" and stack.pid not in own)
    return samples_of([one for one in others if not is_waiting(one.frames)])


def _shares(
    stacks: list[StackCount],
    phase_of: PhaseOf | None = None,
    library: str = "",
    by_hand: frozenset[Call] = frozenset(),
) -> tuple[FrameShare, ...]:
    places: Counter[FrameShare] = Counter()
    moments: dict[FrameShare, int] = {}
    phases = [None if phase_of is None else phase_of(stack) for stack in stacks]
    learning = [one for one, phase in zip(stacks, phases, strict=True) if phase in LEARNS]
    # A library's loop is only below those of the user's lines that lead to a backward or an update:
    # beside them, as at Keras's `predict`, the user's line is named.
    loop = {own_line(stack.frames) for stack in learning}
    loops = {name for stack in learning for name, _ in own_functions(stack.frames, library)}
    training = {
        name
        for stack, phase in zip(stacks, phases, strict=True)
        if phase != "evaluation"
        for name, _ in own_functions(stack.frames, library)
    }
    for stack, phase in zip(stacks, phases, strict=True):
        net = net_at(stack.frames, by_hand)
        in_net = net is not None
        if phase == "other" and in_net:
            phase = "forward"  # a module's own lines are; `self.weight[ids]` calls nothing by name
        looping = library if own_line(stack.frames) in loop else ""
        named, caller, has_line = named_in(stack.frames, looping)
        evaluation = ""
        if phase == "evaluation":
            own = own_functions(stack.frames[:net], library)  # its layers are no function to call
            # What draws pictures of what its net says is met beside the net as well, as `plot`.
            apart = [one for name, one in own if name not in training]
            apart += [one for name, one in own if name not in loops]
            named_well = (one for one in apart if not DISPATCHES.search(one.partition(" (")[0]))
            evaluation = next(named_well, next(iter(apart), ""))
        place = FrameShare(
            0.0,
            named,
            caller,
            stack.line if has_line else "",
            phase,
            ends_workers=ends_workers(stack.frames),
            in_net=in_net,
            copies=takes_to_gpu(stack.frames),
            evaluation=evaluation,
            acts=(acts(stack.frames) or stack.acts) if phase == "evaluation" else None,
            feeds=stack.feeds and phase == "evaluation",
            asked=_asks(stack, net) if phase == "forward" else "",
            fixed=stack.fixed and phase == "forward",
            redrawn=stack.redrawn and phase == "forward",
            beside=stack.beside,
            one_row=stack.one_row if phase == "evaluation" else "",
            library="" if net is None else library_of_net(stack.frames, net),
            computes=stack.computes,
            in_parts=stack.in_parts,
            in_turns=stack.in_turns,
            unpacked=stack.unpacked,
            padded_again=stack.padded_again,
            chooses=stack.chooses,
            by_position=is_by_position(stack.frames),
            anew=stack.anew,
            pairs=stack.pairs,
        )
        places[place] += stack.count
        moments[place] = moments.get(place, 0) | stack.moments
    total = sum(places.values())
    if not total:
        return ()  # no samples, no shares
    return tuple(
        replace(place, share=count / total, samples=total, at=moments[place])
        for place, count in places.most_common(MOST_PLACES)
    )


def _asks(stack: StackCount, net: int | None) -> str:
    """The frame that calls a net without its gradients, for what a training learns in each step."""
    return stack.frames[net - 1] if net and stack.feeds and stack.in_step else ""
