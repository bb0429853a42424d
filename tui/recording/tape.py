"""The tape of a run, and what is kept of an observation: times to 1 us, shares to 0.1 %.

A live session takes the rounded observations too, so a replay comes to the same verdicts, bit for
bit. Order and equality survive, and phases still add up to their step.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from itertools import accumulate
from math import isfinite
from operator import attrgetter, sub
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_origin

from msgspec import Struct
from msgspec.structs import astuple, fields, replace

from ..discovery.secrets import masked
from ..messages import Loader
from ..model.observations import AnyObservation, Delivered, DumpSeen, Greeted, Missing, StacksSeen
from ..settings import Settings
from ..steps import GpuStep, Step
from .format import Entry, Looked

EXACT: Final = frozenset(
    {
        "mark_cost_ns",
        "update_wrapper_ns",
        "gpu_clocks",
        "hello",
        "cores",
        "fraction",
        "power_limit_w",
    }
    | {"waiting_ns", "late_ns", "ahead_ns", "node_late_ns", "figure"}
)
"""Fields that are not rounded: too small for it, hardly ever different, or a row of times."""
PHASES: Final = (
    *("data_ns", "startup_ns", "forward_ns", "backward_ns", "optimizer_ns"),
    *("other_ns", "evaluation_ns", "checkpoint_ns", "compile_ns"),
)
"""They follow each other from the start of a step."""

_phases_of: Final = attrgetter(*PHASES)
_Record = TypeVar("_Record", bound=Struct)


class _Plan(NamedTuple):
    """Fields to round, by place and name, and those that hold records with their container."""

    times: list[tuple[int, str]]
    tenths: list[tuple[int, str]]
    rates: list[tuple[int, str]]
    records: list[tuple[int, str, Any]]


def kept(record: _Record) -> _Record:
    """The observation as a recording has it. Keeping it twice changes nothing more."""
    times, tenths, rates, records = _plan(type(record))
    values = astuple(record)
    changes: dict[str, Any] = {name: ns - ns % 1_000 for at, name in times if (ns := values[at])}
    for at, name in tenths:
        if value := values[at]:
            changes[name] = round(value, 1)
    for at, name in rates:
        if (rate := values[at]) and isfinite(rate):
            changes[name] = float(round(rate / 1_024) * 1_024)
    for at, name, container in records:
        if rows := values[at]:
            changes[name] = container(map(kept, rows)) if container else kept(rows)
    if isinstance(record, Step):
        changes |= _phases(record, record.start_ns)
        longest_ns, data_ns = changes.get("data_max_ns", 0), changes["data_ns"]
        equal = record.data_max_ns == record.data_ns
        changes["data_max_ns"] = data_ns if equal else min(longest_ns, data_ns)
    elif isinstance(record, GpuStep):
        changes |= _phases(record, record.gpu_start_ns)
    return replace(record, **changes) if changes else record


def _phases(row: Step | GpuStep, start_ns: int) -> dict[str, Any]:
    """The phases, with every boundary between them rounded down."""
    ends_ns = accumulate((*_phases_of(row), *row.phases.values()), initial=start_ns)
    bounds_ns = [ns - ns % 1_000 for ns in ends_ns]
    rounded = list(map(sub, bounds_ns[1:], bounds_ns))
    changes: dict[str, Any] = dict(zip(PHASES, rounded, strict=False))
    if row.phases:
        changes["phases"] = dict(zip(row.phases, rounded[len(PHASES) :], strict=True))
    return changes


@cache
def _plan(kind: type[Struct]) -> _Plan:
    plan = _Plan([], [], [], [])
    elsewhere = {*EXACT, *PHASES} if kind in (Step, GpuStep) else EXACT
    for at, field in enumerate(fields(kind)):
        name, hints = field.name, (field.type, *get_args(field.type))
        inner = [one for one in hints if isinstance(one, type) and issubclass(one, Struct)]
        if name in elsewhere:
            continue
        if inner:
            if any(_plan(inner[0])):
                container = get_origin(field.type)
                is_row = isinstance(container, type) and issubclass(container, Sequence)
                plan.records.append((at, name, container if is_row else None))
        elif name.endswith("_ns"):
            plan.times.append((at, name))
        elif float in hints:
            (plan.rates if name.endswith("_bytes_s") else plan.tenths).append((at, name))
    return plan


SPAN_NS: Final = 120_000_000_000
"""A person who sees something odd wants to keep what led to it."""
MOST_ROWS: Final = 20_000
"""Some 20 MB. At the 500 rows a second of the fastest loop, with device times, 20 s."""


MOST_LOADERS: Final = 32
"""As many as a session keeps in mind: a script may make new ones for ever."""


def rows_of(entry: Entry) -> int:
    """How much an entry weighs: the rows in it, at least 1."""
    if isinstance(entry, Delivered):
        return 1 + len(entry.batch.steps) + len(entry.batch.gpu_steps)
    return 1 + len(entry.stacks) if isinstance(entry, StacksSeen | DumpSeen) else 1


class Tape:
    """Keeps what reaches a session and hands it on, from any thread; a sink must not wait.

    What is older than the span is forgotten, except for what everything later builds on: who the
    process is, its loaders and settings, and the last entry of every source.
    """

    def __init__(self, whole_argv: bool = False) -> None:
        """`whole_argv`: the target's command line with its secrets."""
        self.whole_argv = whole_argv
        self._lock = Lock()
        self._held: deque[Entry] = deque()
        self._rows = 0
        self._standing: dict[Hashable, Entry] = {}
        """The last forgotten of each kind, as are the loaders and the settings."""
        self._loaders: dict[int, Loader] = {}
        """The newest `MOST_LOADERS`."""
        self._settings: Settings | None = None
        self._sink: Callable[[Entry], None] | None = None

    def keep(self, observation: AnyObservation) -> AnyObservation:
        """Take what a source saw; returns it as a recording has it."""
        entry = kept(observation)
        if isinstance(entry, Greeted) and not self.whole_argv:
            hello = replace(entry.hello, argv=masked(entry.hello.argv))
            entry = replace(entry, hello=hello)
        self._add(entry)
        return entry

    def looked(self, now_ns: int) -> None:
        """The session judges at this moment."""
        self._add(Looked(t_ns=now_ns))

    def hand_over(self, sink: Callable[[Entry], None]) -> int | None:
        """From now on everything goes to `sink` too, beginning with what is held.

        Returns the time at which what is held begins, ns; None where nothing is.
        """
        with self._lock:
            self._sink = sink
            for entry in (*self._standing.values(), *self._held):
                sink(entry)
            return self._held[0].t_ns if self._held else None

    def let_go(self) -> None:
        """Nothing goes to the sink any more."""
        with self._lock:
            self._sink = None

    def _add(self, entry: Entry) -> None:
        with self._lock:
            self._held.append(entry)
            self._rows += rows_of(entry)
            oldest_ns, held = entry.t_ns - SPAN_NS, self._held
            while len(held) > 1 and (self._rows > MOST_ROWS or held[0].t_ns < oldest_ns):
                self._forget(held.popleft())
            if self._sink is not None:
                self._sink(entry)

    def _forget(self, entry: Entry) -> None:
        self._rows -= rows_of(entry)
        if isinstance(entry, Looked):
            return
        if isinstance(entry, Delivered):
            entry = self._with_all_loaders(entry)
        key = (type(entry), entry.source if isinstance(entry, Missing) else "")
        self._standing.pop(key, None)  # so that they stand in the order in which they came
        self._standing[key] = entry

    def _with_all_loaders(self, delivered: Delivered) -> Delivered:
        """The message with every loader that was forgotten, last changed last, and the settings."""
        for loader in delivered.batch.loaders:
            self._loaders.pop(loader.key, None)
            self._loaders[loader.key] = loader
            if len(self._loaders) > MOST_LOADERS:
                del self._loaders[next(iter(self._loaders))]
        self._settings = delivered.batch.settings or self._settings
        known = {"loaders": [*self._loaders.values()], "settings": self._settings}
        return replace(delivered, batch=replace(delivered.batch, **known))
