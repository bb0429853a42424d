"""How much an entry weighs, for whoever has to bound how much it holds."""

from ..model.observations import Delivered, DumpSeen, StacksSeen
from .format import Entry


def rows_of(entry: Entry) -> int:
    """How much an entry weighs: the rows in it, at least 1."""
    if isinstance(entry, Delivered):
        return 1 + len(entry.batch.steps) + len(entry.batch.gpu_steps)
    if isinstance(entry, StacksSeen | DumpSeen):
        return 1 + len(entry.stacks)
    return 1
