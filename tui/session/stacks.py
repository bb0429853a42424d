"""Stack samples of the last minute, as trees, and where the main thread was last."""

import re
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from ..model.frames import (
    MOST_FRAMES,
    MOST_STACKS,
    at_prompt,
    place_of,
    waits_for_work,
    way_to,
    worth_naming,
)
from ..model.observations import DumpSeen, StackCount, StacksSeen
from ..model.stack_shares import summarise
from ..model.stack_trees import Branch, Merged, StacksOf, StackTrees, Tree
from ..verdict.code_origin import is_users
from ..verdict.stack_samples import WorkersAt
from ..verdict.window import SeenBy
from .open_step import FRAME_AGE_NS

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
        node, named = root, _innermost_own(frames) if stack.line else -1
        for depth, frame in enumerate(frames):
            node = node.below.setdefault(frame, _Node())
            node.samples += stack.samples
            if depth == named:
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


@lru_cache(maxsize=MOST_FRAMES)
def _is_own(frame: str) -> bool:
    return is_users(place_of(frame)[0])


# The probe's own dump of its threads, which holds until something moves.

ROLES: Final = {"main": "main", "pin": "pin", "other": "threads"}


@dataclass(frozen=True, slots=True)
class HeldDump:
    """A dump that still holds."""

    frame: str
    """Where the training thread is."""
    way: tuple[str, ...]
    """How it came there: a few frames, outermost first."""
    trees: StackTrees
    at_prompt: bool | None


class DumpStore:
    """The last one."""

    def __init__(self) -> None:
        self._taken_ns: int | None = None
        self._standing: HeldDump | None = None

    def seen(self, seen: DumpSeen) -> None:
        """Take a dump."""
        self._taken_ns = seen.taken_ns
        self._standing = _standing(seen.stacks)

    def standing(self, marked_ns: int | None) -> HeldDump | None:
        """The dump, if the training thread has not made a mark since it was taken."""
        if self._taken_ns is None or (marked_ns is not None and marked_ns > self._taken_ns):
            return None
        return self._standing


def _standing(stacks: Sequence[StackCount]) -> HeldDump | None:
    main = next((stack.frames for stack in stacks if stack.role == "main"), ())
    if not main:
        return None
    all_of_them = _stacks_of(stacks)
    trees = StackTrees("dump", False, all_of_them, all_of_them, all_of_them)
    return HeldDump(worth_naming(main), way_to(main), trees, at_prompt(main))


def _stacks_of(stacks: Sequence[StackCount]) -> StacksOf:
    """Each thread is one sample of its role."""
    known = (one for one in stacks if one.role in ROLES)
    merged = tuple(Merged(ROLES[one.role], one.frames, 1, one.line) for one in known)
    trees = []
    for role in ROLES.values():
        own = [one for one in merged if one.role == role]
        if own:
            trees.append(Tree(role, len(own), len(own), branches_of(own), once=True))
    return StacksOf(summarise(stacks), tuple(trees), merged)


def workers_at(stacks: Sequence[StackCount], apart: Collection[int] = ()) -> tuple[WorkersAt, ...]:
    """The workers of one chunk, but for these pids, by the place that each was seen at most: those
    that make a batch first, then the place where most are."""
    seen: dict[int, StackCount] = {}
    for stack in stacks:
        if stack.role != "worker" or stack.pid in apart or not stack.frames:
            continue
        before = seen.get(stack.pid)
        if before is None or stack.count > before.count:
            seen[stack.pid] = stack
    places: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
    for pid, stack in sorted(seen.items()):
        waits = waits_for_work(stack.frames)
        way = (worth_naming(stack.frames),) if waits else way_to(stack.frames)
        places.setdefault((waits, way), []).append(pid)
    ranked = sorted(places.items(), key=lambda one: (one[0][0], -len(one[1])))
    return tuple(WorkersAt(tuple(pids), way, waits) for (waits, way), pids in ranked)


SPAN_NS: Final = 60_000_000_000
"""The window of the verdict; a chunk is a second or so."""
HELD_CHUNKS: Final = 240
"""Bounds the memory when chunks come faster than that: some hundred stacks each."""
FRESH_NS: Final = 25_000_000_000
"""An older sample does not say where the thread is now, unless nothing has moved since. Of a probed
run chunks of the main thread end 20 s apart at most (`tui.sources.stacks`)."""


class Where(NamedTuple):
    """Where the main thread is."""

    frame: str | None
    """The innermost frame worth naming; None when not known."""
    way: tuple[str, ...]
    """How it came there: a few frames, outermost first."""
    seen_by: SeenBy
    workers: tuple[WorkersAt, ...] = ()
    at_prompt: bool | None = None
    """It is a notebook's, and waits for a cell to run; None when not known."""


class StackStore:
    """Chunks in time order; and what the probe itself saw."""

    def __init__(self) -> None:
        self.dumps = DumpStore()
        self._chunks: deque[StacksSeen] = deque(maxlen=HELD_CHUNKS)

    def seen(self, seen: StacksSeen) -> None:
        """Take a chunk."""
        self._chunks.append(seen)
        while seen.t_ns - self._chunks[0].t_ns > SPAN_NS:
            self._chunks.popleft()

    @property
    def chunks(self) -> Collection[StacksSeen]:
        """Those of the last minute, oldest first."""
        return self._chunks

    def where(self, now_ns: int, marked_ns: int | None) -> Where:
        """By the samples; else by the probe's own look, if no mark has been made since."""
        frames, standing = self._main(now_ns, marked_ns), self.dumps.standing(marked_ns)
        if not frames and standing is not None:
            return Where(standing.frame, standing.way, "probe", (), standing.at_prompt)
        workers = self.workers_at(now_ns, marked_ns)
        frame = worth_naming(frames) if frames else None
        return Where(frame, way_to(frames), "py-spy", workers, at_prompt(frames))

    def workers_at(self, now_ns: int, since_ns: int | None = None) -> tuple[WorkersAt, ...]:
        """Where the loader's workers were when all of them were last sampled; () when that is
        not known. `since_ns`: nothing has moved since."""
        for chunk in reversed(self._chunks):
            workers = any(stack.role == "worker" for stack in chunk.stacks)
            if workers and len(chunk.among) <= 1:
                return workers_at(chunk.stacks) if _holds(chunk, now_ns, since_ns) else ()
        return ()

    def _main(self, now_ns: int, since_ns: int | None) -> tuple[str, ...]:
        for chunk in reversed(self._chunks):
            main = [stack for stack in chunk.stacks if stack.role == "main"]
            if main:
                most = max(main, key=lambda stack: stack.count)
                return most.frames if _holds(chunk, now_ns, since_ns) else ()
        return ()


def _holds(chunk: StacksSeen, now_ns: int, since_ns: int | None) -> bool:
    """Whether it says where the threads are now: while they move, where they were lately; where
    nothing has moved for a while, where they have been since, for most of the chunk."""
    if since_ns is None or now_ns - since_ns < FRAME_AGE_NS:
        return now_ns - chunk.t_ns <= FRESH_NS
    return chunk.started_ns + chunk.t_ns > 2 * since_ns
