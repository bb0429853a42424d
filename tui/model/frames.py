"""From stacks to the places in the code that are worth naming."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ..verdict.code_origin import MACHINERY, is_users, where_in
from ..verdict.frameworks import LOOPS, framework_of, outermost
from ..verdict.stack_samples import FrameShare, StackPhase, Stacks
from ..verdict.thresholds.samples import COPY_FRAMES
from .loop_frames import (
    CALL_OF_NET,
    LEARNS,
    PhaseOf,
    is_by_position,
    net_at,
    package_of_loop,
    runs_net,
    with_solvers,
)
from .observations import StackCount

MOST_PLACES: Final = 512
"""Kept for each role, the largest first: small operations lie at a hundred lines, of which no dozen
holds half, and a phase is the sum of its places."""

WAY: Final = 5
WAY_OF_USERS: Final = 3
"""Frames kept of the way to a place, and how many of them may be the user's own."""

MOST_STACKS: Final = 1_024
MOST_FRAMES: Final = 4_096
"""A run is at the same places again and again, and its stacks are read every few seconds."""

LOADERS: Final = (
    *("torch/utils/data/", "torchdata/", "webdataset/", "litdata/", "nvidia/dali/"),
    "gpuwatch/probe/wrapped.py",
)
"""Files of loaders: what a stack has above them is the loop that fetches, not what is fetched."""

FETCHES: Final = "torch/utils/data/_utils/fetch.py"

WAITING: Final = re.compile(
    r" \((threading|selectors|queue|socket|ssl|subprocess|"
    r"multiprocessing/|concurrent/futures/|asyncio/)"
)
"""Files in whose frames a thread ends that waits for another."""

IDLE_WORKER: Final = ("Queue.get (", "get (multiprocessing/queues")


PASSES_ON: Final = "tqdm.__iter__ (tqdm/std.py"
"""A generator that hands a loader's batches on."""
FORWARD: Final = re.compile(r"([\w<>]+\.)*forward \(")
"""A frame of a module's own."""
OF_GRADIENTS: Final = re.compile(r"\.grad\b")
"""In a line that updates parameters by hand, or sets their gradients to nothing."""


def summarise(stacks: Iterable[StackCount], phase_of: PhaseOf | None = None) -> Stacks:
    """Shares by role. A worker that waits for its next index is idle and names no place; imports
    are no part of the training, which the first samples of a run are full of."""
    kept = list(stacks)
    main = [stack for stack in kept if stack.role == "main"]
    workers = [stack for stack in kept if stack.role == "worker"]
    busy = [stack for stack in workers if not waits_for_work(stack.frames)]
    samples = _samples(workers)
    trains, library = main, ""
    if phase_of is not None:
        trains = [stack for stack in main if phase_of(stack) != "starting"]
        phase_of = with_solvers(trains, phase_of)
        library = package_of_loop((stack, phase_of(stack)) for stack in trains)
    by_hand = not any(runs_net(stack.frames) for stack in trains)
    return Stacks(
        main_samples=_samples(trains),
        main=_shares(trains, phase_of, library, by_hand),
        worker_samples=samples,
        workers=_shares(busy),
        worker_idle_share=1 - _samples(busy) / samples if samples else None,
        main_unplaced=_unplaced(trains, phase_of, library, by_hand),
        starting=_samples(main) - _samples(trains),
        threads=_beside(kept, main),
        main_waits=_waiting(trains),
        framework=outermost(framework_of(stack.frames) for stack in trains),
    )


def is_waiting(frames: tuple[str, ...]) -> bool:
    """Whether a thread waits there for another thread or process, by Python's own means."""
    return bool(frames) and WAITING.search(frames[-1]) is not None


def _waiting(main: list[StackCount]) -> float:
    whole = _samples(main)
    return _samples([one for one in main if is_waiting(one.frames)]) / whole if whole else 0.0


def _beside(stacks: list[StackCount], main: list[StackCount]) -> tuple[FrameShare, ...]:
    """As in `Stacks.threads`."""
    own, whole = {stack.pid for stack in main}, _samples(main)
    others = [stack for stack in stacks if stack.role == "other" and stack.pid in own]
    part = _samples(others) / whole if whole else 0.0
    return tuple(
        replace(place, share=place.share * part, samples=whole) for place in _shares(others)
    )


def waits_for_work(frames: tuple[str, ...]) -> bool:
    """Whether a worker's stack waits in its index queue rather than make a batch."""
    return len(frames) < 2 or frames[1].startswith(IDLE_WORKER)


def is_notebook(argv: Sequence[str]) -> bool:
    """Whether a process is a notebook's kernel, by what it was started with."""
    return bool(argv) and "kernel_launcher" in os.path.basename(argv[0])


def at_prompt(frames: tuple[str, ...]) -> bool | None:
    """Whether a notebook's main thread waits for a cell to run; None without frames."""
    if not frames:
        return None
    runs_cell = any("run_code (" in one and "interactiveshell.py" in one for one in frames)
    return not runs_cell and any("ipykernel" in where_in(one) for one in frames)


def worth_naming(frames: tuple[str, ...]) -> str:
    """The innermost frame that shows what is done, not how it waits."""
    for frame in reversed(frames):
        if not where_in(frame).startswith(MACHINERY) and not frame.startswith(PASSES_ON):
            return frame
    return frames[-1] if frames else "?"


def caller_of(frames: tuple[str, ...], named: str, library: str = "") -> str | None:
    """The innermost frame of the user's own code, or of the library's whose loop trains, unless
    that is the one that is named, or only starts the loop of a framework."""
    for frame in reversed(frames):
        if where_in(frame).startswith(LOOPS):
            return None
        if _is_of_loop(frame, library):
            return frame if frame != named else None
    return None


@lru_cache(maxsize=MOST_STACKS)
def _own_line(frames: tuple[str, ...]) -> str:
    """The innermost of the user's own in a stack. A library's loop is only below those that lead to
    a backward or an update: beside them, as at Keras's `predict`, the user's line is named."""
    return next((frame for frame in reversed(frames) if is_users(where_in(frame))), "")


def _is_of_loop(frame: str, library: str) -> bool:
    """Whether a frame is the user's own, or of the package whose loop trains."""
    file = where_in(frame)
    of_library = bool(library) and file.startswith(library) and not file.startswith(MACHINERY)
    return of_library or is_users(file)


def way_to(frames: tuple[str, ...]) -> tuple[str, ...]:
    """The few frames that show how the thread came there, outermost first: the user's innermost
    ones, and the innermost of what they call."""
    useful = [i for i, frame in enumerate(frames) if not where_in(frame).startswith(MACHINERY)]
    own = [i for i in useful if is_users(where_in(frames[i]))][-WAY_OF_USERS:]
    called = [i for i in useful if i not in own and i > min(own, default=-1)]
    return tuple(frames[i] for i in sorted(own + called[-(WAY - len(own)) :]))


@lru_cache(maxsize=MOST_FRAMES)
def place_of(frame: str) -> tuple[str, int]:
    """("conv.py", 12) of "forward (conv.py:12)"; number 0 where there is none."""
    path, _, number = where_in(frame).rpartition(":")
    return (path, int(number)) if number.isdecimal() else (where_in(frame), 0)


def _samples(stacks: list[StackCount]) -> int:
    return sum(stack.count for stack in stacks)


@lru_cache(maxsize=MOST_STACKS)
def _place(frames: tuple[str, ...], library: str) -> tuple[str, str | None, bool]:
    """What is named of a stack, who called it, and whether the stack's line belongs to one of the
    two: what makes a batch was not called by the loop that fetches it."""
    named = worth_naming(frames)
    caller = caller_of(frames[_below_loader(frames) or 0 :], named, library)
    return named, caller, is_users(where_in(caller or named))


def _below_loader(frames: tuple[str, ...]) -> int | None:
    """Index of the outermost frame that makes a batch; None where no loader calls anything but its
    own queues."""
    files = [where_in(frame) for frame in frames]
    first = next((i for i, file in enumerate(files) if file.startswith(LOADERS)), None)
    if first is None:
        return None
    made = (i for i in range(first, len(files)) if not files[i].startswith((*LOADERS, *MACHINERY)))
    return next(made, None)


ENDS_WORKERS: Final = ("_shutdown_workers", "_MultiProcessingDataLoaderIter._shutdown_workers")


@lru_cache(maxsize=MOST_STACKS)
def ends_workers(frames: tuple[str, ...]) -> bool:
    """Whether the loader ends its workers in a stack, and waits for them."""
    return any(
        frame.partition(" (")[0] in ENDS_WORKERS and where_in(frame).startswith(LOADERS)
        for frame in frames
    )


@lru_cache(maxsize=MOST_STACKS)
def takes_to_gpu(frames: tuple[str, ...]) -> bool:
    """Whether a batch is taken to the GPU in a stack, and not as a part of making it: by a
    function of a library's, or of a class that has a `to` of its own."""
    return not is_made_here(frames) and any(map(is_copy, frames))


def is_copy(frame: str) -> bool:
    """Whether a frame is such a function."""
    name = frame.partition(" (")[0].rpartition(".")[2]
    return name in COPY_FRAMES or (name == "to" and not where_in(frame).startswith("torch/"))


def is_made_here(frames: tuple[str, ...]) -> bool:
    """Whether the training thread makes a batch in a stack."""
    return any(where_in(frame).startswith(FETCHES) for frame in frames)


def _unplaced(
    main: list[StackCount], phase_of: PhaseOf | None, library: str, by_hand: bool
) -> float:
    """As in `Stacks`. Of all stacks: those of a large net are at more places than are kept."""
    whole = _samples(main)
    if phase_of is None or not whole:
        return 1.0
    unplaced = [
        one
        for one in main
        if _is_unplaced(one.frames, phase_of(one), by_hand) and not OF_GRADIENTS.search(one.line)
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
    return _samples(apart) / whole


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
        if _is_of_loop(frame, library)
    )
    named = ((name.partition(".<locals>")[0].rpartition(".")[0], file) for name, file in own)
    return [(name, file) for name, file in named if name]


LinesThatTrain = Mapping[tuple[str, str], tuple[int, int]]
"""Of a user's function, by name and file: the last line that calls the net before the backward or
the update, and the last line of those."""


def _lines_that_train(
    main: list[StackCount], phase_of: PhaseOf, library: str, by_hand: bool
) -> LinesThatTrain:
    net: dict[tuple[str, str], set[int]] = {}
    update: dict[tuple[str, str], int] = {}
    for stack in main:
        below = net_at(stack.frames, by_hand)
        if below is not None:
            for function, line in _own_lines(stack.frames[:below], library):
                net.setdefault(function, set()).add(line)
        elif phase_of(stack) in ("backward", "optimizer"):
            for function, line in _own_lines(stack.frames, library):
                update[function] = max(line, update.get(function, 0))
    called = {
        function: max((line for line in net.get(function, ()) if line < last), default=0)
        for function, last in update.items()
    }
    return {function: (line, update[function]) for function, line in called.items() if line}


def _is_after_net(frames: tuple[str, ...], trains: LinesThatTrain, library: str) -> bool:
    """Between the net and the update of the function that calls both: the loss, norms of gradients.
    A function of the user's that is called there is looked at by itself: some fetch there."""
    own = _own_lines(frames, library)
    if not own or own[-1][0] not in trains:
        return False
    function, line = own[-1]
    net, update = trains[function]
    return net < line <= update


def _own_lines(frames: tuple[str, ...], library: str) -> list[tuple[tuple[str, str], int]]:
    """The user's functions in a stack, or the library's, outermost first, each with its line."""
    found = []
    for frame in frames:
        file, line = place_of(frame)
        if line and _is_of_loop(frame, library):
            found.append(((frame.partition(" (")[0], file), line))
    return found


def _is_unplaced(frames: tuple[str, ...], phase: StackPhase, by_hand: bool) -> bool:
    if phase not in ("other", "synchronisation", "forward"):
        return False
    if net_at(frames, by_hand) is not None:
        return False
    if any(FORWARD.match(frame) for frame in frames):
        return False  # a module's, called without the module
    return phase == "other" or is_users(where_in(worth_naming(frames)))


@lru_cache(maxsize=MOST_STACKS)
def _own_functions(frames: tuple[str, ...], library: str) -> tuple[tuple[str, str], ...]:
    """The user's functions in a stack, or the library's, outermost first, each as "function (file"
    and its frame. A script's own level is none."""
    own = (frame for frame in frames if _is_of_loop(frame, library))
    named = ((frame.rpartition(":")[0], frame) for frame in own)
    return tuple((name, frame) for name, frame in named if not frame.startswith("<module>"))


def _shares(
    stacks: list[StackCount],
    phase_of: PhaseOf | None = None,
    library: str = "",
    by_hand: bool = False,
) -> tuple[FrameShare, ...]:
    places: Counter[FrameShare] = Counter()
    phases = [None if phase_of is None else phase_of(stack) for stack in stacks]
    learning = [one for one, phase in zip(stacks, phases, strict=True) if phase in LEARNS]
    loop = {_own_line(stack.frames) for stack in learning}
    training = {
        name
        for stack, phase in zip(stacks, phases, strict=True)
        if phase != "evaluation"
        for name, _ in _own_functions(stack.frames, library)
    }
    for stack, phase in zip(stacks, phases, strict=True):
        in_net = net_at(stack.frames, by_hand) is not None
        if phase == "other" and in_net:
            phase = "forward"  # a module's own lines are; `self.weight[ids]` calls nothing by name
        looping = library if _own_line(stack.frames) in loop else ""
        named, caller, has_line = _place(stack.frames, looping)
        evaluation = ""
        if phase == "evaluation":
            own = _own_functions(stack.frames, library)
            apart = (one for name, one in own if name not in training)
            evaluation = next(apart, "")
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
            in_parts=stack.in_parts,
            in_turns=stack.in_turns,
            unpacked=stack.unpacked,
            by_position=is_by_position(stack.frames),
        )
        places[place] += stack.count
    total = sum(places.values())
    if not total:
        return ()  # no samples, no shares
    return tuple(
        replace(place, share=count / total, samples=total)
        for place, count in places.most_common(MOST_PLACES)
    )
