"""What one stack shows: the place in it that is worth naming, who called it, how the thread came
there, and what the thread does or waits for."""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from ..verdict.code_origin import LOADERS, MACHINERY, NOWHERE, is_users, where_in
from ..verdict.frameworks import LOOPS
from ..verdict.thresholds.samples import (
    COLLECTIVE_FILES,
    COPY_FRAMES,
    ENVIRONMENT_PACKAGES,
    ROLLOUTS,
)

WAY: Final = 5
WAY_OF_USERS: Final = 3
"""Frames kept of the way to a place, and how many of them may be the user's own."""
MOST_STACKS: Final = 1_024
MOST_FRAMES: Final = 4_096
"""A run is at the same places again and again, and its stacks are read every few seconds."""
FETCHES: Final = "torch/utils/data/_utils/fetch.py"
WAITING: Final = re.compile(
    r" \((threading|selectors|queue|socket|ssl|subprocess|"
    r"multiprocessing/|concurrent/futures/|asyncio/)"
)
"""Files in whose frames a thread ends that waits for another."""
IDLE_WORKER: Final = ("Queue.get (", "get (multiprocessing/queues")
PASSES_ON: Final = "tqdm.__iter__ (tqdm/std.py"
"""A generator that hands a loader's batches on."""
ENDS_WORKERS: Final = ("_shutdown_workers", "_MultiProcessingDataLoaderIter._shutdown_workers")


@lru_cache(maxsize=MOST_FRAMES)
def place_of(frame: str) -> tuple[str, int]:
    """("conv.py", 12) of "forward (conv.py:12)"; number 0 where there is none."""
    path, _, number = where_in(frame).rpartition(":")
    return (path, int(number)) if number.isdecimal() else (where_in(frame), 0)


def worth_naming(frames: tuple[str, ...]) -> str:
    """The innermost frame that shows what is done, not how it waits."""
    for frame in reversed(frames):
        if not where_in(frame).startswith(MACHINERY) and not frame.startswith(PASSES_ON):
            return frame
    return frames[-1] if frames else NOWHERE


def caller_of(frames: tuple[str, ...], named: str, library: str = "") -> str | None:
    """The innermost frame of the user's own code, or of the library's whose loop trains, unless
    that is the one that is named, or only starts the loop of a framework."""
    for frame in reversed(frames):
        if where_in(frame).startswith(LOOPS):
            return None
        if is_of_loop(frame, library):
            return frame if frame != named else None
    return None


@lru_cache(maxsize=MOST_STACKS)
def named_in(frames: tuple[str, ...], library: str) -> tuple[str, str | None, bool]:
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


@lru_cache(maxsize=MOST_FRAMES)
def is_of_loop(frame: str, library: str) -> bool:
    """Whether a frame is the user's own, or of the package whose loop trains."""
    file = where_in(frame)
    of_library = bool(library) and file.startswith(library) and not file.startswith(MACHINERY)
    return of_library or is_users(file)


@lru_cache(maxsize=MOST_STACKS)
def own_line(frames: tuple[str, ...]) -> str:
    """The innermost frame of the user's own in a stack; "" where there is none."""
    return next((frame for frame in reversed(frames) if is_users(where_in(frame))), "")


@lru_cache(maxsize=MOST_STACKS)
def own_functions(frames: tuple[str, ...], library: str) -> tuple[tuple[str, str], ...]:
    """The user's functions in a stack, or the library's, outermost first, each as "function (file"
    and its frame. A script's own level is none."""
    own = (frame for frame in frames if is_of_loop(frame, library))
    named = ((frame.rpartition(":")[0], frame) for frame in own)
    return tuple((name, frame) for name, frame in named if not frame.startswith("<module>"))


def way_to(frames: tuple[str, ...]) -> tuple[str, ...]:
    """The few frames that show how the thread came there, outermost first: the user's innermost
    ones, and the innermost of what they call."""
    useful = [i for i, frame in enumerate(frames) if not where_in(frame).startswith(MACHINERY)]
    own = [i for i in useful if is_users(where_in(frames[i]))][-WAY_OF_USERS:]
    called = [i for i in useful if i not in own and i > min(own, default=-1)]
    return tuple(frames[i] for i in sorted(own + called[-(WAY - len(own)) :]))


def is_waiting(frames: tuple[str, ...]) -> bool:
    """Whether a thread waits there for another thread or process, by Python's own means."""
    return bool(frames) and WAITING.search(frames[-1]) is not None


@lru_cache(maxsize=MOST_STACKS)
def in_collective(frames: tuple[str, ...]) -> bool:
    """Whether a stack is in a call that waits for other ranks."""
    return any(place_of(frame)[0] in COLLECTIVE_FILES for frame in frames)


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


def _function(frame: str) -> str:
    return frame.partition(" (")[0].rpartition(".")[2]


def is_copy(frame: str) -> bool:
    """Whether a frame is such a function."""
    name = _function(frame)
    return name in COPY_FRAMES or (name == "to" and not where_in(frame).startswith("torch/"))


def acts(frames: tuple[str, ...]) -> bool:
    """Whether a library's environment is at work in a stack, or what collects in one."""
    folder, function = ROLLOUTS
    return any(
        where_in(one).startswith(ENVIRONMENT_PACKAGES)
        or (where_in(one).startswith(folder) and _function(one) == function)
        for one in frames
    )


def is_made_here(frames: tuple[str, ...]) -> bool:
    """Whether the training thread makes a batch in a stack."""
    return any(where_in(frame).startswith(FETCHES) for frame in frames)


@lru_cache(maxsize=MOST_STACKS)
def draws_of_stream(frames: tuple[str, ...]) -> bool:
    """Whether a batch of an iterable dataset is made in a stack; before Python 3.11 frames name no
    class, and what is called below tells."""
    return any(
        frame.startswith("_IterableDatasetFetcher.")
        or _function(called) in ("__iter__", "__next__")
        for frame, called in pairwise((*frames, ""))
        if where_in(frame).startswith(FETCHES)
    )
