"""Which stacks are shown, and why others cannot be, in words."""

from ..model.snapshot import Snapshot
from ..model.stack_trees import SAMPLES_WORTH, SortedBy, StacksWhen, StackTrees
from ..verdict.findings import find_missing
from .numbers import count

# Frames, "function (file:line)", in fewer cells.


def short_frame(frame: str, with_class: bool = True) -> str:
    """ "Image.load (PIL/Image.py:3)" as "Image.load (Image.py:3)", or "load (Image.py:3)"."""
    function, bracket, place = frame.rpartition(" (")
    if not bracket:
        return frame
    if not with_class:
        function = function.rpartition(".")[2] or function
    return f"{function} ({place.rpartition('/')[2]}"


def function_of(frame: str) -> str:
    """ "load" of "ImageFile.load (PIL/ImageFile.py:3)"."""
    return frame.partition(" (")[0].rpartition(".")[2]


_GPU = {"idle": "while the GPU is idle", "busy": "while the GPU is busy"}
_HOST = {"idle": "while the step waits for data", "busy": "while the step has its data"}
_SHORT_GPU = {"idle": "GPU idle", "busy": "GPU busy"}
_SHORT_HOST = {"idle": "data wait", "busy": "no data wait"}


def title(when: StacksWhen, sorted_by: SortedBy, short: bool = False) -> str:
    """ "Stacks while the GPU is idle"; short "Stacks, GPU idle"."""
    if sorted_by == "dump":
        return "Stacks, by the probe" if short else "Stacks, dumped once by the probe"
    if when == "all":
        return "Stacks" if short else "Stacks at any time"
    if short:
        return f"Stacks, {(_SHORT_HOST if sorted_by == 'host' else _SHORT_GPU)[when]}"
    return f"Stacks {(_HOST if sorted_by == 'host' else _GPU)[when]}"


def notes(trees: StackTrees, when: StacksWhen) -> list[str]:
    """ "main + 4 workers", "312 samples", "non-blocking 10 Hz"."""
    chosen = trees.of(when)
    threads = {tree.role: tree.threads for tree in chosen.trees}
    if trees.sorted_by == "dump":
        every = sum(threads.values())
        return [f"{every} thread{'s' * (every > 1)}", "py-spy not permitted"]
    workers = threads.get("workers", 0)
    names = {"main": "main", "pin": "pin", "workers": f"{workers} worker{'s' * (workers > 1)}"}
    who = [names[role] for role in ("main", "workers", "pin") if role in threads]
    return [" + ".join(who), f"{count(chosen.samples)} samples", "non-blocking 10 Hz"]


def why_no_samples(snapshot: Snapshot, when: StacksWhen) -> str:
    """Why none can be shown, and what changes that."""
    if snapshot.trees is not None:
        return f"{_why_none(snapshot.trees, when)} · i shows others"
    missing = find_missing(snapshot.status.missing, "stacks")
    return missing.reason if missing else "no samples yet"


def why_not_idle(trees: StackTrees) -> str:
    """Why all samples are shown and not those while the GPU is idle; "" where these can be."""
    have = trees.idle.summary.main_samples
    if trees.sorted_by == "dump":
        return ""
    if have == 0:
        return f"all samples shown: {_why_none(trees, 'idle')}"
    if have >= SAMPLES_WORTH:
        return ""
    kind = title("idle", trees.sorted_by).removeprefix("Stacks ")
    return f"all samples shown: only {have} {kind}"


def _why_none(trees: StackTrees, when: StacksWhen) -> str:
    if not trees.timed:
        return "this recording has no sample times"
    if trees.sorted_by == "none":
        return "no step has ended yet, and GPU idle times are unknown"
    if trees.sorted_by == "host":
        return f"no sample {'during' if when == 'idle' else 'outside'} a data wait yet"
    return f"no sample while the GPU was surely {when}: steps are shorter than its readings"
