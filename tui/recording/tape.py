"""The last minutes of a session, so that a recording can begin before somebody asked for it."""

from collections import deque
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final

from msgspec.structs import replace

from ...probe.wire.messages import Loader, Settings
from ..model.observations import AnyObservation, Delivered, DumpSeen, Missing, StacksSeen
from ..model.rounding import kept
from .format import Entry, Looked

SPAN_NS: Final = 120_000_000_000
"""A person who sees something odd wants to keep what led to it."""
MOST_ROWS: Final = 20_000
"""Some 20 MB. At the 500 rows a second of the fastest loop, with device times, 20 s."""


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

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: deque[Entry] = deque()
        self._rows = 0
        self._standing: dict[Hashable, Entry] = {}
        """The last forgotten of each kind, as are the loaders and the settings."""
        self._loaders: dict[int, Loader] = {}
        self._settings: Settings | None = None
        self._sink: Callable[[Entry], None] | None = None

    def keep(self, observation: AnyObservation) -> AnyObservation:
        """Take what a source saw; returns it as a recording has it."""
        entry = kept(observation)
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
        self._settings = delivered.batch.settings or self._settings
        known = {"loaders": [*self._loaders.values()], "settings": self._settings}
        return replace(delivered, batch=replace(delivered.batch, **known))
