"""Stack samples of the last minute, and where the main thread was last."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..model.frames import at_prompt, summarise, waits_for_work, way_to, worth_naming
from ..model.observations import DumpSeen, StackCount, StacksSeen
from ..model.stack_trees import Merged, StacksOf, StackTrees, Tree
from ..verdict.window import SeenBy, WorkersAt
from .open_step import FRAME_AGE_NS
from .stack_tree import branches_of

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


# Where the loader's workers are, each by its newest samples.


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
    """Where the loader's workers are."""
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

    def main_frame(self, now_ns: int, since_ns: int | None = None) -> str | None:
        """Where the main thread was last seen most: the innermost frame worth naming."""
        frames = self._main(now_ns, since_ns)
        return worth_naming(frames) if frames else None

    def main_way(self, now_ns: int, since_ns: int | None = None) -> tuple[str, ...]:
        """How it came there: a few frames, outermost first; () when not known."""
        return way_to(self._main(now_ns, since_ns))

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
