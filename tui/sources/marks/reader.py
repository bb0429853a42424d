"""What the probe sends, as the steps that the monitor keeps: one reader for one process's marks.

Pure: bytes in, a `Batch` out. It runs on the source's thread.
"""

from array import array
from collections.abc import Iterable
from typing import Final, TypeVar

from msgspec.structs import replace

from ....probe.wire import marks
from ...messages import (
    BatchSeen,
    Bye,
    Collectives,
    Dump,
    Greeting,
    Loader,
    Marks,
    MemorySeen,
    Noted,
    Passed,
    Profiled,
    decode_reply,
)
from ...steps import Batch, GpuClock, GpuStep, Step
from .ledger import Ledger
from .loaders import Description
from .merging import merge_gpu_steps, merge_steps
from .plain import FEWEST_MARKS, Mark
from .timeline import Timeline

Decoded = Greeting | Batch | Dump | Collectives | Profiled | MemorySeen | Bye
"""What a probe sends, its marks as batches of steps."""

T = TypeVar("T")

ROWS_A_TURN: Final = 100
FULL: Final = 0.9
"""Of those rows: a run of plain steps ends where a batch is looked at, and leaves a shorter one."""
HISTORY_ROWS: Final = 2048
CLOCK_NS: Final = 1_000_000_000
MOST_SWITCHED: Final = 4_096
MOST_BESIDE: Final = 32_768
"""Of each kind of thing that stands beside marks, until its mark comes."""


def columns_of(body: bytes) -> "tuple[array[int], array[int]]":
    """(times, words) of marks as they cross. Raises ValueError for cut ones."""
    count, rest = divmod(len(body), marks.MARK_BYTES)
    if rest:
        raise ValueError(f"{len(body)} bytes of marks")
    return array("q", body[: 8 * count]), array("q", body[8 * count :])


class MarkReader:
    """The state of one process: its timeline, its loaders, its device's clock."""

    def __init__(self) -> None:
        self._timeline = Timeline()
        self._number = 0
        """Of the next mark that bounds something: the timeline misses one by its number."""
        self._position = 0
        """In the probe's count of all marks, of the next."""
        self._described: dict[int, Description] = {}
        self._batches: dict[int, BatchSeen] = {}
        self._stamped: dict[int, int] = {}
        """Number of the mark, by the detail of the STAMPED mark behind it."""
        self._names: list[str] = []
        self._loaders: list[Loader] = []
        """As they were last handed on."""
        self._clock_ns = 0
        self._clocked = 0
        """Steps by the last clocks."""
        self._measured = self._clocked_measured = 0
        """Steps seen on the device's clock: in all, and by the last clocks."""
        self._behind_ns: int | None = None
        self._begun = False

    @property
    def unknown(self) -> int:
        """Marks of kinds that this monitor does not know."""
        return self._timeline.unknown

    @property
    def behind_ns(self) -> int:
        """How far the device was behind the host at the last step that it reported."""
        return self._behind_ns or 0

    @property
    def measured(self) -> int:
        """Steps that were seen on the device's clock."""
        return self._measured

    def read(self, message: Marks) -> Batch:
        """The steps that these marks complete. Raises ValueError where they are malformed."""
        timeline, ledger = self._timeline, self._timeline.ledger
        if message.names:
            self._names = message.names
        fed = self._marks(message)
        ledger.switched.extend(self.numbered(message.switched))
        while len(ledger.switched) > MOST_SWITCHED:
            ledger.switched.popleft()
        rows = ROWS_A_TURN if self._begun else HISTORY_ROWS
        a_row = 1
        if len(fed) > rows * FEWEST_MARKS:
            a_row += int(len(fed) / (FULL * rows * FEWEST_MARKS))
        if not self._begun:
            self._begin(message, fed)
        steps = timeline.feed_all(fed, a_row)
        for passed in message.passed:
            if (known := self.passed(passed)).times:
                ledger.take(known, timeline.steps)
        for aligned in message.aligned:
            ledger.take(aligned, timeline.steps)
        for allocated in message.allocated:
            ledger.take(allocated, timeline.steps)
        on_device = ledger.steps()
        if on_device:
            self._behind_ns = on_device[-1].lag_start_ns
        memory, ledger.memory = ledger.memory, []
        return Batch(
            sequence=message.sequence,
            sent_ns=message.sent_ns,
            steps=merge_steps(steps, rows),
            open=timeline.open(),
            loaders=self._changed_loaders(),
            lost_marks=timeline.lost_marks,
            rss_bytes=message.rss_bytes,
            mark_cost_ns=message.mark_cost_ns,
            marks=message.marks,
            fault=message.fault,
            gpu_steps=merge_gpu_steps(on_device, rows),
            gpu_memory=memory,
            gpu_clocks=self._clocks(message, on_device, ledger),
            settings=message.settings,
            file_bytes=message.file_bytes,
            refused=message.refused,
            unended=timeline.unended,
            notes=[*message.notes, *_tokens(message)],
            padding=timeline.loaders.take_padding(),
            update_wrapper_ns=message.update_wrapper_ns,
        )

    def numbered(self, details: Iterable[tuple[int, T]]) -> list[tuple[int, T]]:
        """Numbers of the marks in place of the details of the STAMPED ones behind them; left out
        are those that were never seen."""
        return [(self._stamped[at], what) for at, what in details if at in self._stamped]

    def passed(self, passed: Passed) -> Passed:
        """The same with the marks' numbers."""
        return replace(passed, times=self.numbered(passed.times))

    def page_steps(self, first: int, body: bytes, steps: int) -> list[Step]:
        """The steps of a page's marks, without what stands beside them: names, and which loader
        is which. `steps`: how many the run has made."""
        fed = self._read(first, body)
        if not self._begun:
            self._begun = True
            self._number_as_run(first, steps, fed)
        return self._timeline.feed_all(fed)

    # ------------------------------------------------------------------------------------------

    def _begin(self, message: Marks, fed: list[Mark]) -> None:
        self._begun = True
        self._number_as_run(message.first, message.steps, fed)
        for at, loader, _, iterator in message.loaders:
            if at in self._described:  # its mark is not among these
                self._timeline.loaders.iterated(iterator, loader)

    def _number_as_run(self, first: int, steps: int, fed: list[Mark]) -> None:
        """Number the steps as the run does: it has made some before these marks."""
        if first:
            seen = Timeline()
            seen.feed_all(fed)
            self._timeline.joins(max(0, steps - seen.steps))

    def _marks(self, message: Marks) -> list[Mark]:
        """The marks that bound something, with what stands beside them."""
        for at, loader, grad, _ in message.loaders:
            _remember(self._described, at, (loader, grad))
        for at, seen in message.batches:
            _remember(self._batches, at, seen)
        return self._read(message.first, message.body)

    def _read(self, first: int, body: bytes) -> list[Mark]:
        out: list[Mark] = []
        self._number += max(0, first - self._position)
        times, words = columns_of(body)
        self._position = first + len(times)
        for t_ns, word in zip(times, words, strict=True):
            kind, detail = marks.kind_and_detail(word)
            if kind == marks.STAMPED:
                _remember(self._stamped, detail, self._number - 1)
                continue
            if kind == marks.BATCH:
                seen = self._batches.pop(detail, None)
                if seen is not None and out and out[-1][1] == marks.FETCH_LEAVE:
                    out[-1] = (*out[-1][:3], seen)
                continue
            if kind:  # none: it was lost, and is missed by its number
                out.append((self._number, kind, t_ns, self._beside(kind, detail)))
            self._number += 1
        return out

    def _beside(self, kind: int, detail: int) -> object:
        if kind in (marks.FETCH_ENTER, marks.ITERATION):
            return detail
        if kind == marks.LOADER:
            unknown = Loader(detail, "", None, None, False, False, None, None, (), ""), True
            return self._described.pop(detail, unknown)
        if kind == marks.READY:
            return None if detail < 0 else detail
        if kind in (marks.PHASE_ENTER, marks.PHASE_LEAVE):
            return self._names[detail] if 0 <= detail < len(self._names) else "a phase"
        return None

    def _changed_loaders(self) -> list[Loader]:
        now = self._timeline.loaders.all()
        changed = [one for one in now if one not in self._loaders]
        self._loaders = now
        return changed

    def _clocks(self, message: Marks, on_device: list[GpuStep], ledger: Ledger) -> list[GpuClock]:
        """Once a second, how the device's clock is read: one step in how many, at what cost."""
        self._measured += sum(row.count for row in on_device)
        if message.stamp_cost_ns is None or message.sent_ns < self._clock_ns:
            return []
        self._clock_ns = message.sent_ns + CLOCK_NS
        measured = self._measured - self._clocked_measured
        every = max(1, round((self._timeline.steps - self._clocked) / max(1, measured)))
        self._clocked, self._clocked_measured = self._timeline.steps, self._measured
        return [
            GpuClock(
                device,
                ledger.uncertain_ns(device, message.sent_ns),
                every,
                message.stamp_cost_ns,
                message.stamps_dropped,
            )
            for device in ledger.devices
        ]


class ReplyReader:
    """The replies of one probe, its marks as batches."""

    def __init__(self) -> None:
        self.marks = MarkReader()

    def read(self, frame: bytes) -> Decoded:
        """What a probe sent. Raises ValueError for a frame that is malformed."""
        reply = decode_reply(frame)
        if isinstance(reply, Greeting):
            self.marks = MarkReader()  # it sends all anew
        return self.marks.read(reply) if isinstance(reply, Marks) else reply


def _tokens(message: Marks) -> list[Noted]:
    """How many tokens a sample has, by the batches that were looked at."""
    return [
        Noted(message.sent_ns, "tokens", "", seen.tokens / seen.samples)
        for _, seen in message.batches
        if seen.tokens and seen.samples
    ]


def _remember(some: dict[int, T], at: int, one: T) -> None:
    if len(some) >= MOST_BESIDE:
        del some[next(iter(some))]
    some[at] = one
