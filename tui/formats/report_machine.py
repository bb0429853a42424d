"""What the machine does: GPUs, ranks, memory and processes."""

from collections.abc import Sequence
from typing import Final

from ..model.observations import GpuUse, ProcessUse
from ..model.snapshot import MemoryView, Rank, Sawtooth, Snapshot
from ..timeseries.series import NO_STEPS, Series
from ..verdict.memory.trends import MemoryTrend
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
from .report_layout import joined, labelled

WINDOW_NS: Final = 60 * 10**9
"""As long as the verdict's."""
RANK_ROWS: Final = 16
PROCESS_ROWS: Final = 16
WHOSE: Final = {"tensors": "tensors", "process": "the process", "workers": "the workers"}
_MIB: Final = 1024 * 1024


def use_lines(snapshot: Snapshot, width: int) -> list[str]:
    """Utilisation with its source, each GPU, the ranks."""
    rows: list[str] = []
    sawtooth = snapshot.sawtooth
    if sawtooth is not None and (levels := _levels(sawtooth.series)):
        rhythm = " · ".join((levels, *_rhythm(sawtooth, beat_ns(snapshot.steps) > 0)))
        rows.append(f"{sawtooth.title} {rhythm}   [{sawtooth.source}]")
        if sawtooth.tensor is not None and (levels := _levels(sawtooth.tensor)):
            rows.append(f"tensor cores % {levels}   [{sawtooth.source}]")
        if sawtooth.note:
            rows.append(sawtooth.note)
    rows += [_gpu(snapshot, gpu) for gpu in snapshot.gpus]
    return labelled("use", rows, width) + labelled("ranks", _ranks(snapshot), width)


def _levels(series: Series) -> str:
    """ "mean 34 · peak 92 over the last 60 s"; "" where nothing was sampled."""
    since_ns = max(series.start_ns, series.end_ns - WINDOW_NS)
    summary = series.over(since_ns, series.end_ns, series.levels[0])
    if summary is None:
        return ""
    span = numbers.span((series.end_ns - since_ns) / 1e9)
    return f"mean {summary.mean:.0f} · peak {summary.high:.0f} over the last {span}"


def _rhythm(saw: Sawtooth, alike: bool) -> list[str]:
    """ "duty 41%", "period 1.2 s", "trough 1", where it goes up and down."""
    since_ns = max(saw.series.start_ns, saw.series.end_ns - WINDOW_NS)
    edges = saw.step_starts_ns if alike else NO_STEPS
    guess_ns = None if edges else period_of(saw.series, saw.series.end_ns)
    rhythm = rhythm_of(saw.series, edges, since_ns, saw.series.end_ns, guess_ns)
    return (
        [word for word in rhythm_words(rhythm) if word.split()[0] not in ("mean", "peak")]
        if rhythm
        else []
    )


def _gpu(snapshot: Snapshot, gpu: GpuUse) -> str:
    words = [
        word for one in snapshot.activity if one.index == gpu.index for word in does_words(one)
    ]
    words += state_words(gpu)
    if gpu.memory_clock_mhz is not None:
        words.append(f"memory clock {numbers.count(gpu.memory_clock_mhz)} MHz")
    words += [f"clocks limited: {reason}" for reason in gpu.throttle_reasons]
    words += [f"memory {' · '.join(memory_words(gpu))}"]
    return f"GPU {gpu.index} {gpu.name}: " + " · ".join(words)


def _ranks(snapshot: Snapshot) -> list[str]:
    """How many, what is wrong or late, and a row for each."""
    ranks = snapshot.ranks
    if not ranks:
        return []
    late = snapshot.job.late if snapshot.job else None
    news = trouble_words(ranks, snapshot.t_ns) + ([late_words(late)] if late else [])
    news = news or [alike_words(ranks)]
    rows = [" · ".join((count_words(ranks, snapshot.world_size), *news))]
    rows += [_rank(rank) for rank in ranks[:RANK_ROWS]]
    more = len(ranks) - RANK_ROWS
    return [*rows, f"and {more} more"] if more > 0 else rows


def _rank(rank: Rank) -> str:
    facts = [f"r{rank.rank} pid {rank.pid}{' (this one)' if rank.is_target else ''} {rank.state}"]
    if rank.device is not None:
        facts.append(f"GPU {rank.device}")
    facts.append(f"{numbers.count(rank.steps)} steps")
    if rank.step_ms is not None:
        facts.append(f"{numbers.milliseconds(rank.step_ms)} per step")
    shares = {"data wait": rank.data_share, "backward": rank.backward_share}
    facts += [
        f"{name} {numbers.percent(part)}" for name, part in shares.items() if part is not None
    ]
    if rank.memory_bytes is not None:
        facts.append(f"GPU memory {numbers.size(rank.memory_bytes)}")
    return " · ".join(facts)


def memory_lines(snapshot: Snapshot, width: int) -> list[str]:
    """Of the host, of torch's allocator, and every trend."""
    rows = _host(snapshot.memory, "steps" if snapshot.sampled is None else "s")
    if snapshot.gpu_memory:
        newest = snapshot.gpu_memory[-1]
        rows.append(f"torch allocator: {' · '.join(allocator_words(newest))}   [hook]")
    rows += [_trend(trend) for trend in snapshot.trends]
    return labelled("memory", rows, width)


def _host(memory: MemoryView, unit: str) -> list[str]:
    if memory.host_rss_bytes is None:
        return []
    rss, held = numbers.size(memory.host_rss_bytes), memory.held_bytes
    own = rss if held is None else numbers.size(held)
    facts = [f"process {own}" if own == rss else f"process {own} ({rss} RSS with file pages)"]
    if memory.workers_bytes is not None:
        facts.append(f"workers {numbers.size(memory.workers_bytes)}")
    if memory.available_bytes is not None and memory.total_bytes is not None:
        total = numbers.size(memory.total_bytes)
        facts.append(f"{numbers.size(memory.available_bytes)} of {total} available")
    if memory.slope_bytes_per_100_steps is not None:
        facts.append(numbers.growth(memory.slope_bytes_per_100_steps))
    if memory.growing:
        facts.append("growing")
    if len(memory.host) >= 2:
        facts.append(
            f"seen over {numbers.count(memory.host[-1].step - memory.host[0].step)} {unit}"
        )
    return [f"{' · '.join(facts)}   [proc]"]


def _trend(trend: MemoryTrend) -> str:
    """ "tensors ◆ grows +38 MiB (36 to 41) per 100 steps, over 193 steps · time to full 9 h"."""
    glyph, word, _ = trend_words(trend)
    text = f"{WHOSE[trend.whose]} {glyph} {word} {interval_words(trend)} per 100 {trend.unit}, "
    text += f"over {numbers.count(trend.steps)} {trend.unit}"
    full = full_words(trend)
    return f"{text} · time to full {full}" if full else text


def process_lines(snapshot: Snapshot, width: int) -> list[str]:
    """The cores, a row for each process, and the total of the target's own."""
    own = snapshot.processes
    if not own:
        return []
    around = snapshot.surroundings.around if snapshot.surroundings else ()
    everyone = (*around, *own)
    cores = (*cores_words(snapshot), "in the last second")
    rows = [joined(cores), *(_row(use) for use in everyone[:PROCESS_ROWS])]
    if len(everyone) > PROCESS_ROWS:
        rows.append(f"and {len(everyone) - PROCESS_ROWS} more")
    return labelled("procs", [*rows, *_total(own)], width)


def _row(use: ProcessUse) -> str:
    """ "worker 48231 · 99% of a core · 563 MiB PSS · reads 21.0 MiB/s · 1 thread · running"."""
    name = use.role if use.role in ("main", "worker") else use.name
    rank = "" if use.rank is None else f"rank {use.rank}"
    facts = [f"{name} {use.pid}", rank, _cores(use.cpu_percent)]
    if use.thread_cpu_percent is not None:
        facts.append(f"main thread {use.thread_cpu_percent:.0f}%")
    if use.pin_cpu_percent is not None:
        facts.append(f"pin thread {use.pin_cpu_percent:.0f}%")
    facts.append(f"{numbers.size(_held_bytes(use))} {'RSS' if use.pss_bytes is None else 'PSS'}")
    return joined([*facts, *_moved([use]), _threads(use.threads), state_of(use)[0]])


def _total(own: Sequence[ProcessUse]) -> list[str]:
    """ "≤": a total of resident sizes counts shared memory many times."""
    if len(own) == 1:
        return []
    used = cores_used(own)
    bound = "≤ " if any(use.pss_bytes is None for use in own) else ""
    held = f"{bound}{numbers.size(sum(_held_bytes(use) for use in own))}"
    cores = _cores(None if used is None else 100 * used)
    threads = _threads(sum(use.threads for use in own))
    return [joined([f"{len(own)} in all", cores, held, *_moved(own), threads])]


def _held_bytes(use: ProcessUse) -> int:
    return use.rss_bytes if use.pss_bytes is None else use.pss_bytes


def _cores(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.0f}% of a core"


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _moved(uses: Sequence[ProcessUse]) -> list[str]:
    """What is read and written, where it is known and not zero."""
    read = sum(use.read_bytes_s or 0.0 for use in uses)
    wrote = sum(use.write_bytes_s or 0.0 for use in uses)
    rates = (("reads", read), ("writes", wrote))
    return [f"{word} {rate / _MIB:,.1f} MiB/s" for word, rate in rates if rate]
