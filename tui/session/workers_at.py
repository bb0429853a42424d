"""Where the loader's workers are, each by the newest look at it."""

from collections.abc import Collection, Sequence

from tui.observations import StackCount
from tui.sources.frames import waits_for_work, way_to, worth_naming
from tui.verdict.window import WorkersAt


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
