"""What is around the steps: loaders, stacks, processes, and what happened."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from probe.wire.messages import Loader
from tui.report.lines import joined, labelled
from tui.report.processes import process_lines
from tui.snapshot import Event, Snapshot
from tui.stack_trees import StacksOf
from tui.verdict.window import FrameShare, Stacks
from tui.wording import numbers
from tui.wording.events import time_of_day

STACK_ROWS: Final = 6
DUMP_FRAMES: Final = 6
EVENT_ROWS: Final = 8


def around_lines(snapshot: Snapshot, width: int) -> list[str]:
    """A block for each; of what is not known none."""
    return [
        *labelled("loader", _loaders(snapshot.loaders), width),
        *_stacks(snapshot, width),
        *process_lines(snapshot, width),
        *labelled("events", _events(snapshot), width),
    ]


def _loaders(loaders: Iterable[Loader]) -> list[str]:
    """A script may make one anew each epoch: those that are alike have one line."""
    alike = Counter(map(_loader, loaders))
    return [text if times == 1 else f"{text} · x{times}" for text, times in alike.items()]


def _loader(loader: Loader) -> str:
    told = {
        "num_workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor,
        "batch size": loader.batch_size,
    }
    return joined(
        (
            f"{loader.dataset or loader.kind}",
            *(f"{name} {value}" for name, value in told.items() if value is not None),
            "pinned" if loader.pin_memory else "",
            "evaluation" if loader.evaluation else "",
        )
    )


def _stacks(snapshot: Snapshot, width: int) -> list[str]:
    """Of all moments, and of those at which the GPU had nothing to do."""
    lines: list[str] = []
    if snapshot.stacks is not None:
        lines += labelled("stacks", _places(snapshot.stacks, "all moments"), width)
    trees = snapshot.trees
    if trees is not None and trees.told == "probe":
        lines += labelled("stacks", _by_probe(trees.all), width)
    elif trees is not None and trees.told and trees.idle.samples:
        when = "while the GPU is idle" if trees.told == "gpu" else "while it waits for data"
        lines += labelled("" if lines else "stacks", _places(trees.idle.summary, when), width)
    return lines


def _by_probe(seen: StacksOf) -> list[str]:
    """Each thread whole: nothing moves, and any of them may hold what the others wait for."""
    rows = ["where each thread stands, told once by the probe itself   [probe]"]
    return rows + [f"{one.role} {' → '.join(one.frames[-DUMP_FRAMES:])}" for one in seen.merged]


def _places(stacks: Stacks, when: str) -> list[str]:
    counts = f"main {numbers.count(stacks.main_samples)}"
    if stacks.worker_samples:
        counts += f" · workers {numbers.count(stacks.worker_samples)}"
    rows = [f"{when}: {counts} samples   [py-spy]"]
    rows += _role("main", stacks.main) + _role("workers", stacks.workers)
    idle = stacks.worker_idle_share
    return rows if idle is None else [*rows, f"workers wait for work {numbers.percent(idle)}"]


def _role(role: str, places: tuple[FrameShare, ...]) -> list[str]:
    return [
        f"{role} {numbers.percent(place.share)} {place.frame}"
        + (f" ← {place.caller}" if place.caller else "")
        for place in places[:STACK_ROWS]
    ]


def _events(snapshot: Snapshot) -> list[str]:
    rows: list[str] = []
    for event in snapshot.events[-EVENT_ROWS:]:
        ago = numbers.duration((snapshot.t_ns - event.t_ns) / 1e9)
        rows.append(f"{time_of_day(snapshot, event.t_ns)} {event_line(event)}, {ago} ago")
    return rows


def event_line(event: Event) -> str:
    """ "step 18,000: checkpoint 4.1 s"."""
    return (f"step {numbers.count(event.step)}: " if event.step is not None else "") + event.text
