"""Where the loader's workers stand while the training thread waits for their batch."""

from collections.abc import Sequence

from tui.verdict.findings import Evidence
from tui.verdict.window import WorkersAt

NAMED = 2
"""Pids that are named; of more it says how many."""


def where(workers: Sequence[WorkersAt]) -> str:
    """ "worker 48231 in answer (stalled.py:88)" of those that make a batch; "" where none does or
    nobody knows."""
    making = [one for one in workers if not one.wait_for_work]
    return f"{_who(making[0], plain=True)} in {making[0].way[-1]}" if making else ""


def look_at(held: str) -> str:
    """What to do about workers that stand there (`where`)."""
    return f"see what holds {held}: a lock, a disk, a server without a timeout"


def shows(workers: Sequence[WorkersAt]) -> tuple[Evidence, ...]:
    """Their way there, the innermost frame first: a narrow screen cuts the end."""
    if not workers:
        return ()
    if all(one.wait_for_work for one in workers):
        count = sum(len(one.pids) for one in workers)
        have = f"all its {count} workers wait" if count > 1 else "its worker waits"
        return (Evidence(f"{have} for work: none makes the batch that it waits for", "py-spy"),)
    first, *others = workers
    text = f"{_who(first)}: {' ← '.join(reversed(first.way))}"
    if others:
        rest = sum(len(one.pids) for one in others)
        waits = "waits for work" if rest == 1 else "wait for work"
        text += f"; {rest} more {waits if others[0].wait_for_work else 'elsewhere'}"
    return (Evidence(text, "py-spy"),)


def _who(workers: WorkersAt, plain: bool = False) -> str:
    pids = workers.pids
    if len(pids) == 1:
        return f"worker {pids[0]}"
    if plain or len(pids) > NAMED:
        return f"{len(pids)} workers"
    return f"workers {' and '.join(str(pid) for pid in pids)}"
