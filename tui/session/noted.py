"""The run's own numbers: its loss and norm, what it gets done, and where they stop being finite."""

from collections import deque
from collections.abc import Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from ..messages import Noted
from ..model.noted import Figure, NotFinite, Numerics, Throughput
from ..model.observations import ActivitySeen, GpusSeen
from ..model.peaks import Precision, mixed_peak_flops_s
from ..model.snapshot import StepStats
from ..recording.format import Past
from ..settings import Settings
from ..steps import Step
from ..verdict.findings import Note
from ..wording.throughput import NORM, not_finite_words
from .events import EventStore

_Row = TypeVar("_Row", bound=tuple[Any, ...])

WINDOW_NS: Final = 60_000_000_000
"""Rates are means over this long, as the verdict's."""
NAMES: Final = {"nan": "NaN"}
"""Of what a number is that is not finite, where it is not written as the probe writes it."""
MOST_FIGURES: Final = 16
"""Names of numbers: a run may log hundreds, and so many fit a panel."""
LAST_FINE: Final = 64
"""Steps at which a number was finite, for each: the last one before the first that was not."""
SKIPPED_IN_A_ROW: Final = 4
"""Steps that a GradScaler skips now and then are its way to the largest scale that holds: two by a
probe of a new scale. Four in a row have halved it sixteenfold without finding one."""
SCALED_STEPS: Final = 32
"""A GradScaler halves its scale at each step that it skips: after 16 nothing is left of the 2^16
that it begins with. A norm is looked at within 16 more."""
FEWEST_SINCE: Final = 5
"""Steps after FLOPs were counted: from fewer no pace is worked out."""
YOUNG_NS: Final = 2_000_000_000
"""Of a total: no slope is worked out of less…"""
MANY_STEPS: Final = 100
"""…and no mean of a step but of so many."""
LATE_NS: Final = 1_000_000_000
"""Notes are taken last of all that a message has, and some are made while it is."""
LAST_STEPS: Final = 512
"""Rows to find the step of a note in; notes come within a turn of the publisher."""
UNITS: Final = ("tokens", "samples", "flops")
"""Totals that the run may log, by the names of `probe.log`."""
LONGEST: Final = 200
"""Characters of a name, as the probe cuts them."""
TOKENS: Final = 30
"""Batches that were looked at, whose mean length counts."""


class _Counters(NamedTuple):
    """GPM's, means over the GPUs, percent; None where none has it."""

    t_ns: int
    tensor: float | None
    dram: float | None


class NotedStore:
    """What the run has noted, and the counters beside it."""

    def __init__(self, events: EventStore) -> None:
        self._events = events
        self.clips = False
        """A norm of all gradients was seen, which is worked out to clip them."""
        self._steps: deque[Step] = deque(maxlen=LAST_STEPS)
        self._figures: dict[str, Figure] = {}
        self._fine: dict[str, deque[int]] = {}
        """The last steps at which a number was finite, by its name."""
        self._not_finite: NotFinite | None = None
        self._skipped = 0
        self._reported_skipped = 0
        self._skipped_ns = 0
        """When the last note of them was made."""
        self._totals: dict[str, deque[tuple[int, float]]] = {}
        self._tokens: deque[float] = deque(maxlen=TOKENS)
        self._flops: float | None = None
        self._convolved_flops: float | None = None
        """Those of convolutions among them; None where they were not counted apart."""
        self._why_no_flops = ""
        self._counted_ns = 0
        """When that was done: the step before it was slow for it."""
        self._counted: dict[tuple[str, bool], Noted] = {}
        """The last note of each of these: its kind, and whether of convolutions."""
        self._energy: deque[tuple[int, float]] = deque()
        self._activity: deque[_Counters] = deque()
        self._utilization: deque[tuple[int, float]] = deque()
        self._device = ""

    def delivered(self, notes: Sequence[Noted], fresh: Sequence[Step], until_ns: int) -> None:
        """The steps and notes of a message that was begun at `until_ns`. What no probe says, as a
        figure that is none, is passed over."""
        self._steps.extend(fresh)
        last_ns = until_ns + LATE_NS
        for note in sorted(notes, key=lambda one: one.t_ns):
            if 0 < note.t_ns <= last_ns and isfinite(note.figure) and len(note.name) <= LONGEST:
                self._take(note)

    def gpus(self, seen: GpusSeen) -> None:
        """Power and what nvidia-smi shows."""
        names = {gpu.name for gpu in seen.gpus}
        self._device = names.pop() if len(seen.gpus) == 1 else ""
        drawn = [gpu.energy_j for gpu in seen.gpus if gpu.energy_j is not None]
        if drawn and len(drawn) == len(seen.gpus):
            _keep(self._energy, (seen.t_ns, sum(drawn)))
        busy = [g.utilization_percent for g in seen.gpus if g.utilization_percent is not None]
        if busy:
            _keep(self._utilization, (seen.t_ns, sum(busy) / len(busy)))

    def activity(self, seen: ActivitySeen) -> None:
        """GPM's counters: both coordinates of the roofline."""
        tensor = _mean([gpu.tensor for gpu in seen.gpus])
        dram = _mean([gpu.dram for gpu in seen.gpus])
        _keep(self._activity, _Counters(seen.t_ns, tensor, dram))

    def numerics(self) -> Numerics | None:
        """None where the run says nothing of its numbers."""
        if not (self._figures or self._not_finite or self._skipped):
            return None
        return Numerics(tuple(self._figures.values()), self._not_finite, self._skipped)

    def before(self, until_ns: int, reached: int) -> Past:
        """What was known at a moment up to two minutes ago, when `reached` steps were done. Of a
        number that is finite the last value stands for that of then."""
        first = self._not_finite
        return Past(
            t_ns=until_ns,
            figures=tuple(
                replace(one, step=min(one.step, reached))
                for one in tuple(self._figures.values())
                if one.value is not None or one.step <= reached
            ),
            not_finite=first if first is not None and first.step <= reached else None,
            notes=tuple(one for one in tuple(self._counted.values()) if one.t_ns < until_ns),
        )

    def remember(self, past: Past) -> None:
        """Of a replay, before anything else of it."""
        for one in past.figures[:MOST_FIGURES]:
            if len(one.name) <= LONGEST:
                self._figures[one.name] = one
        first = past.not_finite
        self._not_finite = first if first is not None and len(first.name) <= LONGEST else None
        self.clips = NORM in self._figures
        self.delivered(past.notes, (), past.t_ns)

    def throughput(self, stats: StepStats | None, settings: Settings | None) -> Throughput | None:
        """What is known of it; None before there are steps."""
        if stats is None or stats.steps_s <= 0:
            return None
        steps_s, samples_s = self._pace(stats)
        each = {name: self._each(name, stats.window_s, steps_s) for name in UNITS}
        given_s = {name: step * steps_s for name, step in each.items() if step is not None}
        tokens_s, flops_s = given_s.get("tokens"), given_s.get("flops")
        inferred = tokens_s is None and bool(self._tokens)
        samples_s = given_s.get("samples", samples_s)
        if inferred and samples_s is not None:
            tokens_s = samples_s * sum(self._tokens) / len(self._tokens)
        flops_step = each["flops"]
        if flops_step is None and self._flops is not None:
            flops_step, flops_s = self._flops, self._flops * steps_s
        peak, peak_of = self._peak(settings)
        tensor = _mean([row.tensor for row in self._activity])
        dram = _mean([row.dram for row in self._activity])
        watts = _slope(self._energy)
        busy = [one for _, one in self._utilization]
        return Throughput(
            samples_s=samples_s,
            tokens_s=tokens_s,
            tokens_inferred=inferred,
            flops_step=flops_step,
            flops_given=each["flops"] is not None,
            why_no_flops=self._why_no_flops,
            flops_s=flops_s,
            peak_flops_s=peak,
            peak_of=peak_of,
            mfu=flops_s / peak if flops_s is not None and peak is not None else None,
            tensor_percent=tensor,
            dram_percent=dram,
            utilization_percent=sum(busy) / len(busy) if busy else None,
            samples_joule=samples_s / watts if samples_s and watts and watts > 0 else None,
        )

    # ------------------------------------------------------------------------------------------

    def _peak(self, settings: Settings | None) -> tuple[float | None, str]:
        """FLOP/s, and of what; None of an unknown device or type."""
        precision = precision_of(settings)
        if settings is None or precision is None or not self._device:
            return None, ""
        of_convolutions, convolved = convolutions_of(settings, precision), 0.0
        if of_convolutions != precision:
            if self._convolved_flops is not None and self._flops:
                convolved = self._convolved_flops / self._flops
            elif settings.filters != 0:
                return None, ""
        peak = mixed_peak_flops_s(self._device, precision, of_convolutions, convolved)
        if peak is None:
            return None, ""
        used = of_convolutions if convolved >= 1.0 else precision
        kinds = f"{precision} and {of_convolutions}" if 0.0 < convolved < 1.0 else used
        return peak, f"{self._device}, {kinds}"

    def _take(self, note: Noted) -> None:
        self.clips |= note.kind == "norm"
        if note.kind in ("norm", "log"):
            self._number(note, NORM if note.kind == "norm" else note.name)
        elif note.kind == "skipped":
            self._skip(note)
        elif note.kind == "total":
            if note.name in UNITS:
                _keep(self._totals.setdefault(note.name, deque()), (note.t_ns, note.figure))
        elif note.kind == "tokens":
            self._tokens.append(note.figure)
        elif note.kind == "flops" or (note.kind == "refused" and note.name == "flops"):
            self._count(note)

    def _count(self, note: Noted) -> None:
        of_convolutions = note.name == "convolutions"
        self._counted[note.kind, of_convolutions] = note
        if note.kind == "refused":
            self._why_no_flops = note.why
        elif of_convolutions:
            self._convolved_flops = note.figure
        else:
            self._flops, self._why_no_flops = note.figure, ""
            self._counted_ns = note.t_ns

    def _number(self, note: Noted, name: str) -> None:
        step = self._step_at(note.t_ns)
        known, before = self._figures.get(name), self._not_finite
        now = None if before is None else self._figures.get(before.name)
        first = before if now is None or now.value is None else None
        if not note.why and (name in self._fine or len(self._fine) < MOST_FIGURES):
            self._fine.setdefault(name, deque(maxlen=LAST_FINE)).append(step)
        if known is not None and step < known.step:
            if first is not None and first.name == name and step < first.step:
                self._earlier(note, step, first)
            return
        begins = note.why.endswith("inf") and name != NORM and not self._fine.get(name)
        breaks = bool(note.why) and first is None and not begins
        if len(self._figures) < MOST_FIGURES or known is not None or breaks:
            self._figures[name] = Figure(name, None if note.why else note.figure, step)
        if not breaks:
            return  # as a best loss begins infinite, too
        what = NAMES.get(note.why, note.why)
        is_before = not self._steps or note.t_ns < self._steps[0].start_ns
        self._not_finite = NotFinite(name, what, step, self._every(name, step), is_before)
        again = before is not None and before.name == name
        if not (again and name == NORM):  # a GradScaler tries a larger scale for ever
            words = _event_words(self._not_finite, again)
            self._events.add("numerics", note.t_ns, step, words)

    def _earlier(self, note: Noted, step: int, first: NotFinite) -> None:
        """A number from before the first that was not finite comes behind it: a norm that was not
        looked at, and is asked for once a later one is seen."""
        if note.why:
            what = NAMES.get(note.why, note.why)
            self._not_finite = replace(
                first, what=what, step=step, every=self._every(first.name, step)
            )
            text = f"{first.name} was {what} at this step already"
            self._events.add("numerics", note.t_ns, step, text)
        else:
            every = self._every(first.name, first.step)
            self._not_finite = replace(first, every=every)

    def _every(self, name: str, step: int) -> int:
        """Steps since the last one before it of which a finite number is known."""
        before = [one for one in self._fine.get(name, ()) if one < step]
        return max(1, step - max(before)) if before else 1

    def _skip(self, note: Noted) -> None:
        if note.t_ns <= self._skipped_ns:
            return  # to a monitor that was away a probe sends all that it holds
        self._skipped, self._skipped_ns = round(note.figure), note.t_ns
        if not self._skipped:
            self._reported_skipped = 0
        elif self._skipped >= max(SKIPPED_IN_A_ROW, 2 * self._reported_skipped):
            self._reported_skipped = self._skipped
            text = f"GradScaler has skipped {self._skipped} steps in a row: gradients not finite"
            self._events.add("numerics", note.t_ns, self._step_at(note.t_ns), text)

    def _step_at(self, t_ns: int) -> int:
        """The step that ran at a moment; beyond the last that is known the next."""
        if not self._steps:
            return 1
        newest = self._steps[-1]
        if t_ns >= newest.end_ns:
            return newest.number + 1
        for step in reversed(self._steps):
            if step.start_ns <= t_ns:
                part = (t_ns - step.start_ns) / max(1, step.end_ns - step.start_ns)
                return step.number - step.count + 1 + int(min(part, 0.999) * step.count)
        return self._steps[0].number

    def _pace(self, stats: StepStats) -> tuple[float, float | None]:
        """Steps and samples per second: the window's; once FLOPs were counted those of the steps
        since, for the counted one took some times as long."""
        since = [step for step in self._steps if step.start_ns >= self._counted_ns]
        wall_ns = sum(step.end_ns - step.start_ns for step in since)
        if not self._counted_ns or len(since) < FEWEST_SINCE or wall_ns <= 0:
            return stats.steps_s, stats.samples_s
        samples = [step.samples for step in since if step.samples is not None]
        samples_s = sum(samples) / wall_ns * 1e9 if len(samples) == len(since) else None
        return sum(step.count for step in since) / wall_ns * 1e9, samples_s

    def _each(self, name: str, window_s: float, steps_s: float) -> float | None:
        """Of a total, what a step adds to it: between two notes in steps that are known, of the
        window where that has such. The time between them is no measure: the pace may have changed.
        None while the total is too young."""
        if not self._steps:
            return None
        first_ns, last_ns = self._steps[0].start_ns, self._steps[-1].end_ns
        held = self._totals.get(name, ())
        known = [(t_ns, total) for t_ns, total in held if first_ns <= t_ns < last_ns]
        newest = [row for row in known if row[0] >= last_ns - window_s * 1e9]
        for rows in filter(None, (newest, known)):
            (from_ns, before), (to_ns, after) = rows[0], rows[-1]
            steps = self._step_at(to_ns) - self._step_at(from_ns)
            if steps >= MANY_STEPS or (steps > 0 and to_ns - from_ns >= YOUNG_NS):
                return (after - before) / steps if after > before else None
        # Logged more seldom than steps are kept.
        rate = _slope(held) if held else None
        return rate / steps_s if rate is not None and rate > 0 else None


def _event_words(found: NotFinite, again: bool) -> str:
    """ "gradient norm is NaN", and which steps were not looked at."""
    if found.before:
        return f"{found.name} was {found.what} before this step"
    text = f"{found.name} is {found.what} {'again' if again else 'for the first time'}"
    if found.every > 1:
        text += f" (step {found.step - found.every} was the last one looked at before)"
    return text


def not_finite_note(numerics: Numerics, steps: int, settings: Settings | None) -> Note | None:
    """Beside every verdict from then on: while it lasts nothing else about the run matters as much.
    `steps`: so many there were. A norm that is not finite may be a GradScaler on its way to the
    largest scale."""
    found = numerics.not_finite
    if found is None:
        return None
    scaled = found.name == NORM and settings is not None and bool(settings.scaler)
    words = not_finite_words(found, numerics.is_over)
    if numerics.is_over:
        return None if scaled else Note(f"{words} and is finite again", None, "hook")
    if scaled and steps < found.step + SCALED_STEPS:
        return None
    return Note(f"{words}: stop the run or go back", None, "hook", urgent=True)


def precision_of(settings: Settings | None) -> Precision | None:
    """The type of products of matrices, by the settings of the run; None where they are not known
    or of another kind (quantised)."""
    if settings is None:
        return None
    kind = settings.autocast or settings.parameter_dtype
    if kind == "bfloat16":
        return "bfloat16"
    if kind == "float16":
        return "float16"
    if kind == "float32" and settings.matmul_precision:
        return "float32" if settings.matmul_precision == "highest" else "tf32"
    return None


def convolutions_of(settings: Settings, precision: Precision) -> Precision:
    """The type of convolutions, where that of matrices is this: cuDNN's run in tf32 unless somebody
    forbids it (`torch.backends.cudnn.allow_tf32`)."""
    if precision not in ("float32", "tf32"):
        return precision
    return "float32" if settings.cudnn_tf32 is False else "tf32"


def _keep(rows: deque[_Row], row: _Row) -> None:
    rows.append(row)
    while rows[0][0] < row[0] - WINDOW_NS:
        rows.popleft()


def _mean(values: Sequence[float | None]) -> float | None:
    """Of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _slope(rows: deque[tuple[int, float]]) -> float | None:
    """Per second, from the first to the last; None of what is too young."""
    if len(rows) < 2 or rows[-1][0] - rows[0][0] < YOUNG_NS:
        return None
    return (rows[-1][1] - rows[0][1]) / (rows[-1][0] - rows[0][0]) * 1e9
