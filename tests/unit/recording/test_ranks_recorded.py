"""Ranks in a recording: they come back whole, cost little, and older recordings have none."""

from pathlib import Path

from gpuwatch.tui.model.observations import CollectivesSeen, RanksSeen, RankUse
from gpuwatch.tui.recording.format import Entry
from gpuwatch.tui.recording.tape import kept
from gpuwatch.tui.verdict.job.exchange import Fabric, StepExchange
from tests.unit.recording.a_run import START, a_run
from tests.unit.recording.files import read, recorded
from tests.unit.session.making import MS, S

MOST_BYTES_A_LOOK = 200
"""Of eight ranks."""


def looks(seconds: int) -> list[Entry]:
    """Eight ranks once a second, each with some jitter."""
    return [
        kept(
            RanksSeen(
                t_ns=START + second * S + 1_234_567,
                world_size=16,
                interval_ns=S + second % 7 * 10_001,
                ranks=tuple(_use(rank, second) for rank in range(8)),
            )
        )
        for second in range(seconds)
    ]


def _use(rank: int, second: int) -> RankUse:
    jitter = (rank * 37 + second * 101) % 997 * 1_000
    return RankUse(
        rank=rank,
        pid=4_000 + rank,
        running=second < 50 or rank != 5,
        state=1,
        steps=12 * second,
        open_kind=3 if second % 2 else 6,
        open_since_ns=START + second * S - jitter * 13,
        heartbeat_ns=START + second * S - 40 * MS - jitter,
        counted=12,
        wall_ns=S + jitter,
        data_ns=300 * MS + jitter,
        forward_ns=200 * MS + jitter,
        backward_ns=450 * MS - jitter,
        optimizer_ns=40 * MS,
        device=rank,
        device_busy_percent=90.0 + (second + rank) % 9,
        device_memory_bytes=60 * 1024**3,
        device_total_bytes=140 * 1024**3,
    )


def test_they_come_back_whole_and_cost_little(tmp_path: Path) -> None:
    entries = looks(60)
    assert read(tmp_path, recorded(entries)) == (entries, None)
    assert len(recorded(entries)) - len(recorded([])) < 60 * MOST_BYTES_A_LOOK


def test_among_everything_else_they_come_back_too(tmp_path: Path) -> None:
    run: list[Entry] = [kept(one) for one in a_run(5)]
    entries = sorted([*run, *looks(5)], key=lambda entry: entry.t_ns)
    assert read(tmp_path, recorded(entries)) == (entries, None)


def test_rows_of_times_by_rank_are_kept_as_they_are() -> None:
    """Live, every observation is rounded first: a row of times is no time."""
    step = StepExchange(
        number=1,
        wall_ns=30_000_500,
        collectives=4,
        bytes=1 << 20,
        transfer_ns=700_123,
        waiting_ns=(1_001, 0),
        late_ns=(0, 1_001),
        ahead_ns=(0, 1_234),
        node_late_ns=(0, 1_001),
    )
    fabric = Fabric(1 << 20, 700_123, 650_789)
    seen = CollectivesSeen(t_ns=START, ranks=(0, 1), steps=(step,), fabric=fabric)
    (found,) = kept(seen).steps
    assert kept(seen).fabric == Fabric(1 << 20, 700_000, 650_000)
    assert found.wall_ns == 30_000_000
    assert (found.ahead_ns, found.node_late_ns) == (step.ahead_ns, step.node_late_ns)
    assert (found.waiting_ns, found.late_ns) == (step.waiting_ns, step.late_ns)
