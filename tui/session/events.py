"""Events of the run, each once, and the longer pauses that the verdict weighs."""

from collections import deque
from typing import Final, NamedTuple, TypeVar

from ..messages import Loader
from ..model.snapshot import Event
from ..steps import EvaluationCycle, GpuMemory, Step
from ..verdict.format import ms
from ..verdict.thresholds.hysteresis import COMPILE_HORIZON
from ..verdict.window import OpenStep, RunEvent
from ..verdict.window_selection import PaceChange
from ..wording.numbers import milliseconds

_Known = TypeVar("_Known")

MOST_LOADERS: Final = 256
"""Of which it is known whether they begin anew: more than the epochs that are held."""
HELD: Final = 50
HELD_OF_A_KIND: Final = 20
"""So that a checkpoint at every step does not push out the verdict that changed."""


ALIKE: Final = 0.2
"""Two changes of pace are the same one again where both their levels differ by less."""


class Paced(NamedTuple):
    """A change of pace that is held."""

    change: PaceChange
    times: int
    event: Event


class EventStore:
    """The newest events of each kind."""

    def __init__(self) -> None:
        self._by_kind: dict[str, deque[Event]] = {}
        self._worker_pids: dict[int, tuple[int, ...]] = {}
        self._allocators: dict[int, GpuMemory] = {}
        """The newest reading of each device."""
        self._paces: deque[Paced] = deque(maxlen=HELD_OF_A_KIND)
        """The changes of pace that are held."""

    def add(self, kind: str, t_ns: int, step: int | None, text: str) -> None:
        """Add an event, which competes for room with those of its kind."""
        kept = self._by_kind.setdefault(kind, deque(maxlen=HELD_OF_A_KIND))
        kept.append(Event(t_ns, step, text, kind))

    def step_ended(self, step: Step) -> None:
        """What a step had in it beside training. Compiling is news only once the run is warm."""
        for kind, ns in (("checkpoint", step.checkpoint_ns), ("evaluation", step.evaluation_ns)):
            if ns:
                self.add(kind, step.end_ns, step.number, f"{kind} {milliseconds(ns / 1e6)}")
        if step.compile_ns and step.number > COMPILE_HORIZON:
            text = f"recompile {milliseconds(step.compile_ns / 1e6)}"
            self.add("recompile", step.end_ns, step.number, text)

    def pace_changed(self, first: Step, change: PaceChange) -> None:
        """Steps take another time from `first` on. A change as there was before takes its place."""
        text = f"step time {ms(change.after_ns)}, {change.factor - 1:+.0%} "
        text += f"(was {ms(change.before_ns)})"
        if change.what:
            text += f": {change.what}"
        kept = self._by_kind.setdefault("pace", deque(maxlen=HELD_OF_A_KIND))
        alike = next((one for one in self._paces if _alike(one.change, change)), None)
        if alike is not None:
            self._paces.remove(alike)
            kept.remove(alike.event)
        times = 1 if alike is None else alike.times + 1
        if times > 1:
            text += f" · {times} times so far"
        event = Event(first.start_ns, first.number, text, "pace", better=change.factor < 1)
        kept.append(event)
        self._paces.append(Paced(change, times, event))

    def loader_reported(self, t_ns: int, step: int | None, loader: Loader) -> None:
        """A loader changed: new worker processes are worth a line; the first ones are not, nor
        those of an evaluation, which has a line of its own."""
        before = self._worker_pids.get(loader.key)
        if loader.worker_pids:
            _remember(self._worker_pids, loader.key, loader.worker_pids)
            if before and before != loader.worker_pids and not loader.evaluation:
                count = len(loader.worker_pids)
                text = f"{count} loader worker{'s' * (count != 1)} started again"
                self.add("workers", t_ns, step, f"{text} (iteration {loader.iterations})")

    def allocator_reported(self, reading: GpuMemory) -> None:
        """An allocator was read: that it had to empty its cache to go on, or could not go on, is
        worth a line. What it did before the first reading is not."""
        before = self._allocators.get(reading.device)
        if before is not None and reading.t_ns <= before.t_ns:
            return  # sent again after a reconnection
        self._allocators[reading.device] = reading
        if before is None:
            return
        retries, ooms = reading.retries - before.retries, reading.ooms - before.ooms
        if ooms > 0:
            times = "" if ooms == 1 else f" {ooms} times"
            self.add("allocator", reading.t_ns, reading.step, f"GPU out of memory{times}")
        elif retries > 0:
            tried = "1 allocation" if retries == 1 else f"{retries} allocations"
            text = f"{tried} had to empty the cache first"
            self.add("allocator", reading.t_ns, reading.step, text)

    def newest(self) -> tuple[Event, ...]:
        """The newest events, newest last."""
        kept = [event for events in self._by_kind.values() for event in events]
        return tuple(sorted(kept, key=lambda event: event.t_ns)[-HELD:])


def _remember(some: dict[int, _Known], key: int, one: _Known) -> None:
    """Of loaders those that changed last: a script may make new ones for ever."""
    some.pop(key, None)
    some[key] = one
    if len(some) > MOST_LOADERS:
        del some[next(iter(some))]


def _alike(one: PaceChange, other: PaceChange) -> bool:
    pairs = ((one.before_ns, other.before_ns), (one.after_ns, other.after_ns))
    return all(abs(now / before - 1) < ALIKE for before, now in pairs)


# At which steps a run began an epoch, evaluated, saved, or started its workers anew.

MOMENTS_OF_A_KIND: Final = 200
"""A checkpoint at every step must not push out the epochs."""


class RunEventStore:
    """The newest moments of each kind."""

    def __init__(self) -> None:
        self._by_kind: dict[str, deque[RunEvent]] = {}
        self._epochs: deque[tuple[int, int]] = deque(maxlen=MOMENTS_OF_A_KIND)
        """(step, key of the loader): that a loader serves evaluation shows only later."""
        self._loaders: dict[int, Loader] = {}

    def step_ended(self, step: Step) -> None:
        """A step may have had something in it beside training."""
        if step.evaluation_ns:
            self.keep(RunEvent(step.number, "evaluation"))
        if step.checkpoint_ns:
            self.keep(RunEvent(step.number, "checkpoint"))

    def loader_reported(self, step: int, loader: Loader) -> None:
        """A loader changed: it, or another one in its place, may have begun anew. The first one
        begins the run."""
        before = self._loaders.get(loader.key)
        began = bool(self._loaders) if before is None else loader.iterations > before.iterations
        if began:
            self._epochs.append((step, loader.key))
        if before and before.worker_pids and loader.worker_pids not in ((), before.worker_pids):
            self.keep(RunEvent(step, "workers"))
        _remember(self._loaders, loader.key, loader)

    def all(self) -> tuple[RunEvent, ...]:
        """What is held, oldest first."""
        training = {key for key, loader in self._loaders.items() if not loader.evaluation}
        moments = [RunEvent(step, "epoch") for step, key in self._epochs if key in training]
        for kept in self._by_kind.values():
            moments += kept
        return tuple(sorted(moments, key=lambda moment: moment.step))

    def keep(self, moment: RunEvent) -> None:
        """One that was not kept yet: where a recording begins it may come twice."""
        kept = self._by_kind.setdefault(moment.kind, deque(maxlen=MOMENTS_OF_A_KIND))
        if not kept or kept[-1] != moment:
            kept.append(moment)


CYCLES_KEPT: Final = 8
"""More than a verdict needs, and a minute of epochs of some seconds."""


class EvaluationCycleStore:
    """Training from one evaluation to the next, as rows of steps come in."""

    def __init__(self) -> None:
        self._cycles: deque[EvaluationCycle] = deque(maxlen=CYCLES_KEPT)
        self._whole = False
        """The open cycle was seen from its beginning on."""
        self._first = True
        self._steps = self._fetches = self._wall_ns = self._other_ns = 0
        self._number = 0

    def step_ended(self, step: Step) -> None:
        """Rows come in time order."""
        begins = step.number - step.count
        if begins != self._number or not begins:
            # The run's start; or steps passed unseen, and with them perhaps an evaluation.
            self._open(whole=not begins, first=not begins)
        self._number = step.number
        if step.inference:  # a look at the held-out set before the first step
            self._open(whole=self._whole, first=self._first)
            return
        usual_ns = self._other_ns / self._steps * step.count if self._steps else step.other_ns
        self._steps += step.count
        self._fetches += step.fetches
        self._wall_ns += step.end_ns - step.start_ns
        if not step.evaluation_ns:
            self._other_ns += step.other_ns
            return
        around_ns = max(0, step.other_ns - round(usual_ns))
        self._cycles.append(
            EvaluationCycle(
                steps=self._steps,
                fetches=self._fetches,
                wall_ns=self._wall_ns,
                evaluation_ns=step.evaluation_ns + around_ns,
                shared_ns=step.shared_startup_ns,
                first=self._first,
                whole=self._whole,
                last_step=step.number,
            )
        )
        self._open(whole=True, first=False)

    def all(self) -> tuple[EvaluationCycle, ...]:
        """Oldest first."""
        return tuple(self._cycles)

    def under_way(self, now: OpenStep | None) -> EvaluationCycle | None:
        """The run's first one before its end: the open step may evaluate for longer than all
        training so far. None without such an evaluation, or after one."""
        evaluated_ns = 0 if now is None else round(now.evaluated_s * 1e9)
        if self._cycles or not evaluated_ns or not self._first or not self._steps:
            return None
        return EvaluationCycle(
            steps=self._steps,
            fetches=self._fetches,
            wall_ns=self._wall_ns + evaluated_ns,
            evaluation_ns=evaluated_ns,
            shared_ns=0,
            first=True,
            last_step=self._number,
        )

    def _open(self, whole: bool, first: bool) -> None:
        self._whole, self._first = whole, first
        self._steps = self._fetches = self._wall_ns = self._other_ns = 0
