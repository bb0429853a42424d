"""What is around the steps: loaders, stacks, processes, and what happened."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from ...probe.wire.messages import Loader
from ..model.observations import GpuUse, ProcessUse
from ..model.snapshot import Event, MemoryView, Rank, Sawtooth, Snapshot
from ..model.stack_trees import StacksOf
from ..model.straggler import late_of
from ..timeseries.series import Series
from ..timeseries.step_edges import NO_STEPS
from ..verdict.memory.trends import MemoryTrend
from ..verdict.window import FrameShare, Stacks
from ..wording import numbers
from ..wording.gpu import (
    alike_words,
    allocator_words,
    count_words,
    does_words,
    late_words,
    memory_words,
    state_words,
    trouble_words,
)
from ..wording.processes import (
    cores_used,
    cores_words,
    full_words,
    interval_words,
    state_of,
    trend_words,
)
from ..wording.rhythm import beat_ns, period_of, rhythm_of, rhythm_words
from ..wording.steps import (
    NAMES,
    WORTH,
    samples_words,
    share_interval_words,
    share_words,
    step_words,
)
from ..wording.words import time_of_day
from .report_lines import joined, labelled

# The processes: the launcher, the ranks, the workers, and what they come to.

MOST_ROWS: Final = 16
_MIB: Final = 1024 * 1024


def process_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The cores, a row for each process, and the sum of the target's own."""
    own = snapshot.processes
    if not own:
        return []
    around = snapshot.surroundings.around if snapshot.surroundings else ()
    everyone = (*around, *own)
    cores = (*cores_words(snapshot), "in the last second")
    rows = [joined(cores), *(_row(use) for use in everyone[:MOST_ROWS])]
    if len(everyone) > MOST_ROWS:
        rows.append(f"and {len(everyone) - MOST_ROWS} more")
    return labelled("procs", [*rows, _sum(own)], width)


def _row(use: ProcessUse) -> str:
    """ "worker 48231 · 99% of a core · 563 MiB PSS · reads 21.0 MiB/s · 1 thread · running"."""
    name = use.role if use.role in ("main", "worker") else use.name
    rank = "" if use.rank is None else f"rank {use.rank}"
    said = [f"{name} {use.pid}", rank, _cores(use.cpu_percent)]
    if use.thread_cpu_percent is not None:
        said.append(f"main thread {use.thread_cpu_percent:.0f}%")
    if use.pin_cpu_percent is not None:
        said.append(f"pin thread {use.pin_cpu_percent:.0f}%")
    said.append(f"{numbers.size(_held_bytes(use))} {'RSS' if use.pss_bytes is None else 'PSS'}")
    return joined([*said, *_moved([use]), _threads(use.threads), state_of(use)[0]])


def _sum(own: Sequence[ProcessUse]) -> str:
    """Sums of resident sizes count what is shared many times."""
    used = cores_used(own)
    bound = "≤ " if len(own) > 1 and any(use.pss_bytes is None for use in own) else ""
    held = f"{bound}{numbers.size(sum(_held_bytes(use) for use in own))}"
    cores = _cores(None if used is None else 100 * used)
    threads = _threads(sum(use.threads for use in own))
    return joined([f"{len(own)} in all", cores, held, *_moved(own), threads])


def _held_bytes(use: ProcessUse) -> int:
    return use.rss_bytes if use.pss_bytes is None else use.pss_bytes


def _cores(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.0f}% of a core"


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _moved(uses: Sequence[ProcessUse]) -> list[str]:
    """What is read and written, where that is told and any."""
    read = sum(use.read_bytes_s or 0.0 for use in uses)
    wrote = sum(use.write_bytes_s or 0.0 for use in uses)
    told = (("reads", read), ("writes", wrote))
    return [f"{word} {rate / _MIB:,.1f} MiB/s" for word, rate in told if rate]


# Memory of the host and of torch: how much, whether it grows, and when it is full.

WHOSE: Final = {"tensors": "tensors", "process": "the process", "workers": "the workers"}


def memory_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The host's, the allocator's, and every trend."""
    rows = _host(snapshot.memory, "steps" if snapshot.sampled is None else "s")
    if snapshot.gpu_memory:
        newest = snapshot.gpu_memory[-1]
        rows.append(f"torch's allocator: {' · '.join(allocator_words(newest))}   [hook]")
    rows += [_trend(trend) for trend in snapshot.trends]
    return labelled("memory", rows, width)


def _host(memory: MemoryView, unit: str) -> list[str]:
    if memory.host_rss_bytes is None:
        return []
    rss, held = numbers.size(memory.host_rss_bytes), memory.held_bytes
    own = rss if held is None else numbers.size(held)
    said = [f"process {own}" if own == rss else f"process {own} ({rss} RSS, with pages of files)"]
    if memory.workers_bytes is not None:
        said.append(f"workers {numbers.size(memory.workers_bytes)}")
    if memory.available_bytes is not None and memory.total_bytes is not None:
        total = numbers.size(memory.total_bytes)
        said.append(f"{numbers.size(memory.available_bytes)} of {total} available")
    if memory.slope_bytes_per_100_steps is not None:
        said.append(numbers.growth(memory.slope_bytes_per_100_steps))
    if memory.growing:
        said.append("growing")
    if len(memory.host) >= 2:
        said.append(f"over {numbers.count(memory.host[-1].step - memory.host[0].step)} {unit}")
    return [f"{' · '.join(said)}   [proc]"]


def _trend(trend: MemoryTrend) -> str:
    """ "the process ◆ grows +38 MiB (36 to 41) per 100 steps, over 193 steps · time to full 9h"."""
    glyph, word, _ = trend_words(trend)
    text = f"{WHOSE[trend.whose]} {glyph} {word} {interval_words(trend)} per 100 {trend.unit}, "
    text += f"over {numbers.count(trend.steps)} {trend.unit}"
    full = full_words(trend)
    return f"{text} · time to full {full}" if full else text


# What samples of the main thread tell where no probe tells of steps.


def sampled_lines(snapshot: Snapshot, width: int) -> list[str]:
    """A row for each thing that the thread did, with the interval of its share."""
    told = snapshot.sampled
    if told is None or not told.samples:
        return []
    rows = [f"of {samples_words(told)}: {' · '.join(share_words(told))}   [py-spy]"]
    rows += [
        f"{NAMES.get(name, name)} {share_interval_words(told, name)}, nine times in ten"
        for name, share in told.shares.items()
        if name == "data" and share.mean >= WORTH
    ]
    return labelled("sampled", [*rows, step_words(told)], width)


# What the GPUs did, how they are, and how the other ranks of the job fare.

WINDOW_NS: Final = 60 * 10**9
"""As the verdict's."""
SAID: Final = ("mean", "peak")
RANK_ROWS: Final = 16


def use_lines(snapshot: Snapshot, width: int) -> list[str]:
    """Utilisation with its source, the GPUs one by one, the ranks."""
    rows: list[str] = []
    sawtooth = snapshot.sawtooth
    if sawtooth is not None and (told := _told(sawtooth.series)):
        rhythm = " · ".join((told, *_rhythm(sawtooth, beat_ns(snapshot.steps) > 0)))
        rows.append(f"{sawtooth.title} {rhythm}   [{sawtooth.source}]")
        if sawtooth.tensor is not None and (told := _told(sawtooth.tensor)):
            rows.append(f"tensor cores % {told}   [{sawtooth.source}]")
        if sawtooth.note:
            rows.append(sawtooth.note)
    rows += [_gpu(snapshot, gpu) for gpu in snapshot.gpus]
    return labelled("use", rows, width) + labelled("ranks", _ranks(snapshot), width)


def _told(series: Series) -> str:
    """ "mean 34 · peak 92 over the last 60 s"; "" where nothing was sampled."""
    since_ns = max(series.start_ns, series.end_ns - WINDOW_NS)
    told = series.over(since_ns, series.end_ns, series.levels[0])
    if told is None:
        return ""
    span = numbers.span((series.end_ns - since_ns) / 1e9)
    return f"mean {told.mean:.0f} · peak {told.high:.0f} over the last {span}"


def _rhythm(saw: Sawtooth, alike: bool) -> list[str]:
    """ "duty 41%", "period 1.24 s", "trough 1", where it goes up and down."""
    since_ns = max(saw.series.start_ns, saw.series.end_ns - WINDOW_NS)
    edges = saw.step_starts_ns if alike else NO_STEPS
    guess_ns = None if edges else period_of(saw.series, saw.series.end_ns)
    rhythm = rhythm_of(saw.series, edges, since_ns, saw.series.end_ns, guess_ns)
    return [word for word in rhythm_words(rhythm) if word.split()[0] not in SAID] if rhythm else []


def _gpu(snapshot: Snapshot, gpu: GpuUse) -> str:
    said = [word for one in snapshot.activity if one.index == gpu.index for word in does_words(one)]
    said += state_words(gpu)
    if gpu.memory_clock_mhz is not None:
        said.append(f"memory clock {numbers.count(gpu.memory_clock_mhz)} MHz")
    said += [f"held down: {reason}" for reason in gpu.throttle_reasons]
    said += [f"memory {' · '.join(memory_words(gpu))}"]
    return f"GPU {gpu.index} {gpu.name}: " + " · ".join(said)


def _ranks(snapshot: Snapshot) -> list[str]:
    """How many, what is wrong with them or which is late, and each in a row."""
    ranks = snapshot.ranks
    if not ranks:
        return []
    late = late_of(ranks)
    told = trouble_words(ranks, snapshot.t_ns) + ([late_words(late)] if late else [])
    told = told or [alike_words(ranks)]
    rows = [" · ".join((count_words(ranks, snapshot.world_size), *told))]
    rows += [_rank(rank) for rank in ranks[:RANK_ROWS]]
    more = len(ranks) - RANK_ROWS
    return [*rows, f"and {more} more"] if more > 0 else rows


def _rank(rank: Rank) -> str:
    said = [f"r{rank.rank} pid {rank.pid}{' (this one)' if rank.is_target else ''} {rank.state}"]
    if rank.device is not None:
        said.append(f"GPU {rank.device}")
    said.append(f"{numbers.count(rank.steps)} steps")
    if rank.step_ms is not None:
        said.append(f"{numbers.milliseconds(rank.step_ms)} a step")
    shares = {"data wait": rank.data_share, "backward": rank.backward_share}
    said += [f"{name} {numbers.percent(part)}" for name, part in shares.items() if part is not None]
    if rank.memory_bytes is not None:
        said.append(f"GPU memory {numbers.size(rank.memory_bytes)}")
    return " · ".join(said)


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
    if trees is not None and trees.sorted_by == "dump":
        lines += labelled("stacks", _by_probe(trees.all), width)
    elif trees is not None and trees.sorted_by != "none" and trees.idle.samples:
        when = "while the GPU is idle" if trees.sorted_by == "gpu" else "while it waits for data"
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
