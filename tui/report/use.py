"""What the GPUs did, how they are, and how the other ranks of the job fare."""

from typing import Final

from tui.late_rank import late_of
from tui.observations import GpuUse
from tui.over_time.rhythm import beat_ns, period_of, rhythm_of, rhythm_words
from tui.over_time.series import Series
from tui.over_time.step_edges import NO_STEPS
from tui.report.lines import labelled
from tui.snapshot import Rank, Sawtooth, Snapshot
from tui.wording import numbers
from tui.wording.gpu import does_words, memory_words, state_words
from tui.wording.ranks import alike_words, count_words, late_words, trouble_words

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
