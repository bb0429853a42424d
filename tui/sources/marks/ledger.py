"""Steps on the device's clock: the pieces of a step, and when the device passed their ends.

The timeline says which mark ended which phase; the times of those marks come later, when the device
has passed them. A step of which one mark has no time is not reported: absent, never a guess.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from ...messages import Aligned, Allocated, Passed
from ...steps import GpuMemory, GpuStep
from .alignment import Alignment
from .open_step import (
    BACKWARD,
    CHECKPOINT,
    COMPILE,
    DATA,
    EVALUATION,
    FORWARD,
    OPTIMIZER,
    OTHER,
    PHASE_NAMES,
    STARTUP,
    OpenStep,
)
from .overlays import Name

MOST_WAITING: Final = 2048
"""Steps whose times have not come."""
MOST_TIMES: Final = 16_384
MOST_PIECES: Final = 4_096
"""A step that holds a whole evaluation of more batches is not reported on the device's clock."""


@dataclass(slots=True)
class _Step:
    """The marks that bound a step's pieces, and what each piece is."""

    numbers: list[int]
    """Of the marks: one more than there are pieces."""
    times_ns: list[int]
    """Of the same marks on the host."""
    names: list[Name | None] = field(default_factory=list)
    """None: not known until the phase ends."""
    closed: int = 0
    """Pieces before this one belong to phases that have ended."""
    closed_from: int = 0
    """The first piece of the last of these phases."""
    of: dict[int, list[int]] = field(default_factory=dict)
    """Pieces by the iterator that they are the time of, as long as nobody knows whom it serves."""
    number: int = 0
    count: int = 0
    wait_ns: int = 0
    start_ns: int = 0
    end_ns: int = 0


class Ledger:
    """Fed by the timeline with pieces, and with what the training thread reported."""

    def __init__(self) -> None:
        self.switched: deque[tuple[int, bool]] = deque()
        """At which marks the probe began to ask a device, and ended; empty without one."""
        self.sampling = False
        """The open step's marks are stamped, from its first on."""
        self.memory: list[GpuMemory] = []
        """Taken by the publisher each turn."""
        self._open = _Step([0], [0])
        self._last = (0, 0)
        """Number and time of the mark that ended the last phase."""
        self._sampled = False
        """As of the last mark that `_samples` was asked about."""
        self._waiting: deque[_Step] = deque(maxlen=MOST_WAITING)
        self._passed: dict[int, tuple[int, int]] = {}
        """Mark: (device, ns on its clock)."""
        self._newest = -1
        self._alignments: dict[int, Alignment] = {}

    # -- from the timeline -------------------------------------------------------------------

    def unsampled_before(self) -> int | None:
        """While no step is sampled: a mark before which none begins that is; None: none is known
        of."""
        return self.switched[0][0] if self.switched else None

    def begin(self, number: int, t_ns: int) -> None:
        """A step begins at this mark; what was open is not reported."""
        self._last = number, t_ns
        self.sampling = self._samples(number)
        if self.sampling:
            self._open = _Step([number], [t_ns])

    def piece(self, number: int, t_ns: int, name: Name | None) -> None:
        """A piece ends at this mark; with a phase, so do those before it that had no name."""
        if not self.sampling:
            return
        step = self._open
        if len(step.names) >= MOST_PIECES:
            self.sampling = False
            return
        step.numbers.append(number)
        step.times_ns.append(t_ns)
        step.names.append(name)

    def close(self, number: int, t_ns: int, phase: int) -> None:
        """A phase ends at this mark: what was not named since the last belongs to it."""
        self._last = number, t_ns
        if not self.sampling:
            return
        self.piece(number, t_ns, phase)
        step = self._open
        for at in range(step.closed, len(step.names)):
            if step.names[at] is None:
                step.names[at] = phase
        step.closed_from, step.closed = step.closed, len(step.names)

    def belongs(self, iterator: int) -> None:
        """The phase that ended last is an iterator's, which may turn out to be an evaluation's."""
        if self.sampling:
            step = self._open
            step.of.setdefault(iterator, []).extend(range(step.closed_from, step.closed))

    def trains(self) -> None:
        """A backward: what came before it is the training's."""
        if self.sampling:
            self._open.of.clear()

    def evaluates(self, iterator: int) -> None:
        """It is an evaluation's, with what belongs to it so far."""
        names = self._open.names
        for at in self._open.of.pop(iterator, ()):
            if names[at] in _MOVED:
                names[at] = EVALUATION

    def end(self, closed: OpenStep | None, number: int, count: int, end_ns: int) -> None:
        """The open step ended with its last piece, the next begins. None: it is left out."""
        step = self._open
        if closed is not None and self.sampling and step.names:
            step.number, step.count = number, count
            step.start_ns, step.end_ns = closed.started_ns, end_ns
            step.wait_ns = closed.ns[DATA] + closed.ns[STARTUP]
            self._waiting.append(step)
        self.begin(*self._last)

    # -- from the device ---------------------------------------------------------------------

    def take(self, report: Passed | Aligned | Allocated, steps: int) -> None:
        """Take what the device reported; `steps` are completed by now."""
        if isinstance(report, Passed):
            self._take_times(report)
        elif isinstance(report, Aligned):
            alignment = self._alignment(report.device)
            alignment.at_least(report.before_ns - report.device_ns, report.before_ns)
            alignment.at_most(report.after_ns - report.device_ns, report.after_ns)
        elif isinstance(report, Allocated):
            self.memory.append(
                GpuMemory(
                    t_ns=report.t_ns,
                    step=steps,
                    device=report.device,
                    allocated=report.allocated,
                    reserved=report.reserved,
                    active=report.active,
                    peak_allocated=report.peak_allocated,
                    peak_reserved=report.peak_reserved,
                    at_backward=report.at_backward,
                    retries=report.retries,
                    ooms=report.ooms,
                    inactive_split=report.inactive_split,
                    device_allocs=report.device_allocs,
                    allocations=report.allocations,
                    lowest=report.lowest,
                    fraction=report.fraction,
                    device_frees=report.device_frees,
                )
            )

    def steps(self) -> list[GpuStep]:
        """The steps whose times are all known by now, oldest first; each once."""
        done: list[GpuStep] = []
        while self._waiting and self._waiting[0].numbers[-1] <= self._newest:
            if (row := self._measured(self._waiting.popleft())) is not None:
                done.append(row)
        self._forget()
        return done

    @property
    def devices(self) -> tuple[int, ...]:
        """Devices that have reported their time."""
        return tuple(self._alignments)

    def uncertain_ns(self, device: int, now_ns: int) -> int | None:
        """Half of what the alignment of a device's clock leaves open."""
        seen = self._alignment(device).at(now_ns)
        return None if seen is None else seen[1]

    # ------------------------------------------------------------------------------------------

    def _samples(self, number: int) -> bool:
        """Whether the device is asked for the times of a step that begins at this mark. Asked in
        order of the marks."""
        switched = self.switched
        while switched and switched[0][0] <= number:
            self._sampled = switched.popleft()[1]
        return self._sampled

    def _alignment(self, device: int) -> Alignment:
        return self._alignments.setdefault(device, Alignment())

    def _take_times(self, report: Passed) -> None:
        for number, device_ns in report.times:
            self._passed[number] = (report.device, device_ns)
        number, device_ns = report.times[-1]
        self._newest = max(self._newest, number)
        self._alignment(report.device).at_most(report.t_ns - device_ns, report.t_ns)

    def _measured(self, step: _Step) -> GpuStep | None:
        """The step on the device's clock; None when a mark has no time, or two devices' times
        cannot be compared."""
        passed = [self._passed.get(number) for number in step.numbers]
        seen = [one for one in passed if one is not None]
        if len(seen) < len(passed):
            return None
        before = None
        for one, t_ns in zip(seen, step.times_ns, strict=True):
            if one != before:  # else it shares the event of the mark before, which came earlier
                self._alignment(one[0]).at_least(t_ns - one[1], t_ns)
            before = one
        offsets = {device: self._alignment(device).at(step.end_ns) for device, _ in seen}
        if len(offsets) > 1 and None in offsets.values():
            return None
        ends_ns: list[int] = []
        for device, device_ns in seen:
            offset = offsets[device]
            ends_ns.append(device_ns + (offset[0] if offset else 0))
        uncertain = [offset[1] for offset in offsets.values() if offset is not None]
        if not uncertain:  # not aligned: durations are known, lags are not
            ends_ns = [end_ns - ends_ns[0] + step.start_ns for end_ns in ends_ns]
        return _row(step, ends_ns, seen[0][0], max(uncertain) if uncertain else None)

    def _forget(self) -> None:
        """Times that no step will ask for."""
        oldest = self._waiting[0] if self._waiting else self._open
        first = oldest.numbers[0]
        while self._passed and (number := next(iter(self._passed))) < first:
            del self._passed[number]
        while len(self._passed) > MOST_TIMES:
            del self._passed[next(iter(self._passed))]


_MOVED: Final = (DATA, STARTUP, OTHER)
"""Phases in which an iterator's time may lie."""
_LAG_AT: Final = {DATA: 0, STARTUP: 0, FORWARD: 1, BACKWARD: 2, OPTIMIZER: 3}


def _row(step: _Step, ends_ns: list[int], device: int, uncertain_ns: int | None) -> GpuStep:
    ns = [0] * len(PHASE_NAMES)
    phases: dict[str, int] = {}
    lags: list[int | None] = [None] * 4
    for at, (begin_ns, end_ns) in enumerate(pairwise(ends_ns)):
        name = step.names[at]
        if isinstance(name, str):
            phases[name] = phases.get(name, 0) + end_ns - begin_ns
            continue
        name = OTHER if name is None else name
        ns[name] += end_ns - begin_ns
        if uncertain_ns is not None and (mark := _LAG_AT.get(name)) is not None:
            lags[mark] = end_ns - step.times_ns[at + 1]
    return GpuStep(
        number=step.number,
        count=step.count,
        start_ns=step.start_ns,
        end_ns=step.end_ns,
        device=device,
        gpu_start_ns=ends_ns[0],
        gpu_end_ns=ends_ns[-1],
        data_ns=ns[DATA],
        startup_ns=ns[STARTUP],
        forward_ns=ns[FORWARD],
        backward_ns=ns[BACKWARD],
        optimizer_ns=ns[OPTIMIZER],
        other_ns=ns[OTHER],
        evaluation_ns=ns[EVALUATION],
        checkpoint_ns=ns[CHECKPOINT],
        compile_ns=ns[COMPILE],
        phases=phases,
        host_wait_ns=step.wait_ns,
        lag_start_ns=None if uncertain_ns is None else ends_ns[0] - step.times_ns[0],
        lag_data_ns=lags[0],
        lag_forward_ns=lags[1],
        lag_backward_ns=lags[2],
        lag_optimizer_ns=lags[3],
        uncertain_ns=uncertain_ns,
    )
