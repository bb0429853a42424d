"""What one figure tells about the next: only the difference is worth bytes.

A step begins where the last one ended, lasts as long as its phases, and the device reaches its
marks later than the host by what it was behind before, and by how much longer it took. In a loop
that does what loops do all these differences are 0. They are exact, whatever the loop does: the
prediction costs bytes where it is wrong, and never a figure.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ...probe.wire.messages import Batch, GpuMemory, GpuStep, Open, Step
from ..model.observations import (
    ActivitySeen,
    Delivered,
    DumpSeen,
    PageSeen,
    RanksSeen,
    RankUse,
    StacksSeen,
)
from .format import Entry
from .moment_bits import MOST_MOMENTS, MomentBits

MOST_STEPS: Final = 4_096
"""Steps that are remembered until their device times come."""


class Differences:
    """One direction of one recording: entries go through it in order.

    Packing, it takes entries and gives differences; unpacking, the other way round. Both follow
    the same lines of code, so that they predict the same.
    """

    def __init__(self, packing: bool) -> None:
        self._packing = packing
        self._t_ns: dict[type, int] = {}
        """Of the last entry of each type."""
        self._sequence = 0
        self._marks = 0
        self._number = 0
        self._end_ns = 0
        """Number and end of the last step."""
        self._steps: dict[int, Step] = {}
        self._gpu_number = 0
        self._gpu_end_ns = 0

    def through(self, entry: Entry) -> Entry:
        """The entry's differences, or the entry of differences."""
        kind = type(entry)
        before_ns = self._t_ns.get(kind, 0)
        t_written, t_ns = self._against(entry.t_ns, before_ns)
        self._t_ns[kind] = t_ns
        match entry:
            case Delivered():
                return replace(entry, t_ns=t_written, batch=self._batch(entry.batch, t_ns))
            case PageSeen():
                return replace(
                    entry,
                    t_ns=t_written,
                    open_since_ns=self._written(entry.open_since_ns, t_ns),
                    heartbeat_ns=self._written(entry.heartbeat_ns, t_ns),
                    steps=self._written(entry.steps, self._number),
                )
            case StacksSeen():
                started_ns = self._written(entry.started_ns, t_ns)
                stacks = entry.stacks
                if 0 < len(entry.moments_ms) <= MOST_MOMENTS:
                    bits = MomentBits(len(entry.moments_ms), self._packing)
                    stacks = bits.through(stacks)
                return replace(
                    entry,
                    t_ns=t_written,
                    started_ns=started_ns,
                    stacks=stacks,
                    moments_ms=self._pauses(entry.moments_ms),
                )
            case DumpSeen():
                return replace(entry, t_ns=t_written, taken_ns=self._written(entry.taken_ns, t_ns))
            case ActivitySeen():
                since_ns = t_ns - before_ns
                gpus = tuple(
                    replace(gpu, interval_ns=self._written(gpu.interval_ns, since_ns))
                    for gpu in entry.gpus
                )
                return replace(entry, t_ns=t_written, gpus=gpus)
            case RanksSeen():
                ranks = tuple(self._rank(rank, t_ns) for rank in entry.ranks)
                return replace(entry, t_ns=t_written, ranks=ranks)
        return replace(entry, t_ns=t_written)

    def _pauses(self, moments_ms: Sequence[int]) -> tuple[int, ...]:
        """Between moments; the differences of pauses tell less than those of moments."""
        pauses: list[int] = []
        before_ms = 0
        for moment_ms in moments_ms:
            pause_ms, before_ms = self._against(moment_ms, before_ms)
            pauses.append(pause_ms)
        return tuple(pauses)

    def _rank(self, rank: RankUse, t_ns: int) -> RankUse:
        return replace(
            rank,
            open_since_ns=self._written(rank.open_since_ns, t_ns),
            heartbeat_ns=self._written(rank.heartbeat_ns, t_ns),
        )

    def _against(self, value: int, expected: int) -> tuple[int, int]:
        """What stands in the result for a value, and what the value truly is."""
        if self._packing:
            return value - expected, value
        return value + expected, value + expected

    def _written(self, value: int, expected: int) -> int:
        return self._against(value, expected)[0]

    def _batch(self, batch: Batch, t_ns: int) -> Batch:
        sequence, self._sequence = self._against(batch.sequence, self._sequence + 1)
        marks, self._marks = self._against(batch.marks, self._marks)
        sent, sent_ns = self._against(batch.sent_ns, t_ns)
        return replace(
            batch,
            sequence=sequence,
            sent_ns=sent,
            steps=[self._step(row) for row in batch.steps],
            open=self._open(batch.open, sent_ns),
            marks=marks,
            gpu_steps=[self._gpu_step(row) for row in batch.gpu_steps],
            gpu_memory=[self._gpu_memory(reading, t_ns) for reading in batch.gpu_memory],
        )

    def _open(self, step: Open, sent_ns: int) -> Open:
        started, _ = self._against(step.started_ns, self._end_ns)
        return replace(step, since_ns=self._written(step.since_ns, sent_ns), started_ns=started)

    def _step(self, row: Step) -> Step:
        number, true_number = self._against(row.number, self._number + row.count)
        start, start_ns = self._against(row.start_ns, self._end_ns)
        end, end_ns = self._against(row.end_ns, start_ns + _parts_ns(row))
        most = self._written(row.data_max_ns, row.data_ns)
        differences = replace(row, number=number, start_ns=start, end_ns=end, data_max_ns=most)
        true = row if self._packing else differences
        self._number, self._end_ns = true_number, end_ns
        self._steps[true_number] = true
        if len(self._steps) > MOST_STEPS:
            del self._steps[next(iter(self._steps))]
        return differences

    def _gpu_step(self, row: GpuStep) -> GpuStep:
        number, self._gpu_number = self._against(row.number, self._gpu_number + row.count)
        step = self._steps.get(self._gpu_number, row)
        known = step is not row
        start, start_ns = self._against(row.start_ns, step.start_ns if known else self._gpu_end_ns)
        end, _ = self._against(row.end_ns, step.end_ns if known else start_ns)
        gpu_start, gpu_start_ns = self._against(row.gpu_start_ns, self._gpu_end_ns)
        gpu_end, self._gpu_end_ns = self._against(row.gpu_end_ns, gpu_start_ns + _parts_ns(row))
        wait_ns = step.data_ns + step.startup_ns
        behind_ns = gpu_start_ns - start_ns
        lags: list[int | None] = []
        longer_ns = (
            *(0, row.exposed_ns - wait_ns, row.forward_ns - step.forward_ns),
            *(row.backward_ns - step.backward_ns, row.optimizer_ns - step.optimizer_ns),
        )
        given = (
            *(row.lag_start_ns, row.lag_data_ns, row.lag_forward_ns),
            *(row.lag_backward_ns, row.lag_optimizer_ns),
        )
        for lag_ns, more_ns in zip(given, longer_ns, strict=True):
            written = None
            behind_ns += more_ns
            if lag_ns is not None:
                written, behind_ns = self._against(lag_ns, behind_ns)
            lags.append(written)
        return replace(
            row,
            number=number,
            start_ns=start,
            end_ns=end,
            gpu_start_ns=gpu_start,
            gpu_end_ns=gpu_end,
            host_wait_ns=self._written(row.host_wait_ns, wait_ns),
            lag_start_ns=lags[0],
            lag_data_ns=lags[1],
            lag_forward_ns=lags[2],
            lag_backward_ns=lags[3],
            lag_optimizer_ns=lags[4],
        )

    def _gpu_memory(self, reading: GpuMemory, t_ns: int) -> GpuMemory:
        step = self._written(reading.step, self._number)
        return replace(reading, t_ns=self._written(reading.t_ns, t_ns), step=step)


def _parts_ns(row: Step | GpuStep) -> int:
    named = row.data_ns + row.startup_ns + row.forward_ns + row.backward_ns + row.optimizer_ns
    rest = row.other_ns + row.evaluation_ns + row.checkpoint_ns + row.compile_ns
    return named + rest + sum(row.phases.values())
