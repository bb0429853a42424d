"""The hot path: a hook records that a boundary was passed, as two integers behind all others.

Steps and phases are worked out in the monitor. The three hooks of every step write a mark
themselves::

    if get_ident() != recorder.owner and not recorder.claim(KIND): return original(...)
    put(now_ns())
    put(WORD)
    if (extra := recorder.extra) is not None: extra(KIND, what)

`put` appends to a bounded deque: the integer that falls out at the other end is freed by the thread
that made it, and the publisher only copies. In a loop of real steps, whose
caches are cold, that costs 0.2 us beside the clock. Measured beside it, per mark: a row of three
preallocated columns 0.7 us, one `struct.pack_into` of three integers 1.4 us.
"""

import sys
from array import array
from collections import deque
from collections.abc import Callable
from itertools import groupby, islice
from threading import get_ident
from typing import Any, Final

from . import clock
from .notes import Notes
from .wire import marks

ENTRIES: Final = 2 * 16_384
"""Times and words: a quarter of a second of a loop of 10,000 steps a second, 0.8 MB."""
TRIES: Final = 50
"""To read the newest entries while others are put: each try takes a few microseconds."""

MOST_RARE: Final = 512
MOST_PARALLEL: Final = 8
MOST_NAMES: Final = 256
"""Names of user phases; later ones share the first, which is nobody's."""
OTHER_NAMES: Final = "other phases"

OWNER_SILENT_NS: Final = 5_000_000_000
"""A backward on another thread takes the timeline over after this much silence of the old owner."""

SETTINGS_AT: Final = frozenset({marks.BACKWARD_ENTER, marks.BACKWARD_LEAVE, marks.OPTIMIZER_ENTER})
_OPTIMIZER_INSIDE: Final = marks.word_of(marks.OPTIMIZER_INSIDE)


class Recorder:
    """Takes marks from the hooks of one process. Holds no lock: a fork may copy it at any moment.

    `arm` is asked when an unarmed recorder is to take a mark: it decides whether this process is
    one to watch.
    """

    __slots__ = ("_arm", "_arming", "_collect", "_count", "_look", "_settings", "_stamp", "_time",
                 "_trace", "_window", "armed", "entries", "extra", "is_traced", "names", "notes",
                 "now_ns", "on", "owner", "parallel", "put", "rare", "rare_count", "trained",
                 "trip", "watched")  # fmt: skip

    def __init__(
        self,
        arm: Callable[[int], bool],
        trip: Callable[[Exception], None],
        now_ns: Callable[[], int] = clock.now_ns,
    ) -> None:
        self._arm = arm
        self._arming: dict[str, object] = {}
        """Who arms, of threads whose first backward comes at once: whoever is first in here."""
        self.trip = trip
        """Ends the watching, never the training: for whatever fails in a hook."""
        self.now_ns = now_ns
        self.on = True
        """False: no thread may mark, ever again."""
        self.armed = False
        self.watched = False
        """Somebody looks: hooks may afford the signals that cost a little more."""
        self.is_traced: Callable[[], bool] = bool
        """Whether dynamo reads the code that asks, for a graph, and nothing is run."""
        self.trained = False
        """The owner became so by a backward, and other threads cannot take the timeline from it."""
        self.owner = 0
        """Identity of the one thread that marks without asking; 0 while nobody does."""
        self.entries: deque[int] = deque(maxlen=ENTRIES)
        """perf_counter_ns and word (`marks.word_of`) of each mark, one after the other."""
        self.put = self.entries.append
        self.rare: deque[tuple[int, int, int, Any]] = deque(maxlen=MOST_RARE)
        """(number, kind, iterator, what integers cannot hold) of the marks that have such."""
        self.rare_count = 0
        self.names: dict[str, int] = {OTHER_NAMES: 0}
        self.notes = Notes()
        self._stamp: Callable[[int], None] | None = None
        self._settings: Callable[[int, Any], None] | None = None
        self._look: Callable[[Any], Any] | None = None
        self._collect: Callable[[int], None] | None = None
        self._window: Callable[[int], None] | None = None
        self._count: Callable[[int], None] | None = None
        self._time: Callable[[int], None] | None = None
        self._trace: Callable[[int, Any], None] | None = None
        self.parallel: deque[Callable[[], Any]] = deque(maxlen=MOST_PARALLEL)
        """Weak references to what DistributedDataParallel has wrapped, the newest last."""
        self.extra: Callable[[int, Any], None] | None = None
        """Called behind each mark with its kind and the object concerned; None while only marks are
        wanted. Another thread may change it at any time: read it once into a local."""

    def mark(
        self,
        kind: int,
        what: Any = None,
        detail: int = marks.NO_DETAIL,
        sight: Callable[[Any], Any] | None = None,
    ) -> None:
        """Record a boundary, now, with an integer. `sight(what)` computes it: an int goes into the
        word, None means no detail, and anything else is kept in `rare`, whose number the word has.

        Nothing that fails in here reaches the user's loop.
        """
        try:
            if get_ident() != self.owner and not self.claim(kind):
                return
            if sight is not None:
                seen = sight(what)
                if isinstance(seen, int):
                    detail = seen
                elif seen is None:
                    detail = marks.NO_DETAIL
                else:
                    detail = self._keep(kind, detail, seen)
            self.put(self.now_ns())
            self.put(marks.word_of(kind, detail))
            if (extra := self.extra) is not None and kind not in marks.ASIDES:
                extra(kind, what)
        except Exception as error:
            self.trip(error)

    def _keep(self, kind: int, iterator: int, seen: Any) -> int:
        """Lay something beside the marks; returns the detail that leads to it."""
        self.rare_count += 1
        self.rare.append((self.rare_count, kind, iterator, seen))
        return self.rare_count

    def name(self, name: str) -> int:
        """The index of a user phase's name."""
        index = self.names.get(name)
        if index is None:
            full = len(self.names) >= MOST_NAMES
            index = 0 if full else self.names.setdefault(name, len(self.names))
        return index

    # -- what more than a mark is wanted -----------------------------------------------------

    def stamp_with(self, stamp: Callable[[int], None] | None) -> None:
        """Put a device's event behind each mark, by its kind; None: no more."""
        self._stamp = stamp
        self._want()

    def sample_settings_with(self, sampler: Callable[[int, Any], None] | None) -> None:
        """Sample the settings at the next optimizer and backward; None: no more."""
        self._settings = sampler
        self._want()

    def look_with(self, look: Callable[[Any], Any]) -> None:
        """Look at the next batch."""
        self._look = look
        self._want()

    def collect_with(self, collect: Callable[[int], None] | None) -> None:
        """Call this behind each mark, by its kind, until it takes itself away; None: no more."""
        self._collect = collect
        self._want()

    def window_with(self, window: Callable[[int], None] | None) -> None:
        """The same for a window that somebody has asked for; None: it is over."""
        self._window = window
        self._want()

    def count_with(self, count: Callable[[int], None] | None) -> None:
        """The same for whoever counts the FLOPs of a step."""
        self._count = count
        self._want()

    def time_with(self, time: Callable[[int], None] | None) -> None:
        """The same for whoever times what hooks take."""
        self._time = time
        self._want()

    def trace_with(self, trace: Callable[[int, Any], None] | None) -> None:
        """The same for whoever traces a step, with what each mark is about."""
        self._trace = trace
        self._want()

    @property
    def stamps(self) -> bool:
        """Device's events are put behind the marks."""
        return self._stamp is not None

    @property
    def samples_settings(self) -> bool:
        """The settings are being sampled."""
        return self._settings is not None

    def _want(self) -> None:
        """Asked by two threads: whoever comes last has seen what the other has set."""
        self.extra = None
        wanted = (self._stamp, self._settings, self._look, self._collect, self._window, self._count)
        if self._time is not None or self._trace is not None or any(wanted):
            self.extra = self._more

    def _more(self, kind: int, what: Any) -> None:
        """Behind a mark of this kind. Nothing that fails in here reaches the user's loop."""
        try:
            if (time := self._time) is not None:
                time(kind)  # before the others have warmed the caches up
            if kind == marks.FETCH_LEAVE and (look := self._look) is not None:
                self._look = None
                self._want()
                if (seen := look(what)) is not None:
                    self.put_behind(marks.BATCH, self._keep(marks.BATCH, 0, seen))
            if (stamp := self._stamp) is not None:
                stamp(kind)
            if (sampler := self._settings) is not None and kind in SETTINGS_AT and what is not None:
                sampler(kind, what)
            for asked in (self._collect, self._window, self._count):
                if asked is not None:
                    asked(kind)
            if (trace := self._trace) is not None:
                trace(kind, what)
        except Exception as error:
            self.trip(error)

    def put_behind(self, kind: int, detail: int) -> None:
        """Put a mark that bounds nothing, at the time of the one before."""
        self.put(self.entries[-2])
        self.put(marks.word_of(kind, detail))

    # -- whose marks these are ---------------------------------------------------------------

    def claim(self, kind: int) -> bool:
        """Whether a thread that does not own the timeline may mark, taking it over if need be.

        Nothing that fails in here reaches the user's loop.
        """
        try:
            if not self.on:
                self._switch_off("mine_off")
                return False
            return self._may_mark(kind)
        except Exception as error:
            self.trip(error)
            return False

    def _may_mark(self, kind: int) -> bool:
        if not self.armed and not self._arms(kind):
            return False
        if self.owner == 0 or (kind == marks.BACKWARD_ENTER and self._may_be_taken_over()):
            self.owner = get_ident()
            self.trained = kind == marks.BACKWARD_ENTER
            return True
        if kind == marks.OPTIMIZER_LEAVE and self.newest()[1] == marks.BACKWARD_ENTER:
            # On CUDA an optimizer-in-backward steps on the autograd thread: counted, no phase.
            self._put(_OPTIMIZER_INSIDE)
        return False

    def _arms(self, kind: int) -> bool:
        """Whether this very mark arms the process."""
        mine = object()
        if self._arming.setdefault("mark", mine) is not mine:
            return False
        try:
            self.armed = self._arm(kind)
        finally:  # also of an interrupt: the next mark arms
            if not self.armed:
                self._arming.clear()
        return self.armed

    def _may_be_taken_over(self) -> bool:
        """Whether a backward on another thread makes that one the training thread.

        A thread that only fetched was a prefetcher. One that has trained is left alone unless it
        fell silent; a backward inside an open backward is reentrant checkpointing.
        """
        t_ns, kind = self.newest()
        if kind == marks.BACKWARD_ENTER:
            return False
        return not self.trained or self.now_ns() - t_ns > OWNER_SILENT_NS

    def _put(self, word: int) -> None:
        self.entries.extend((self.now_ns(), word))  # at once: the training thread may put as well

    # -- for the publisher -------------------------------------------------------------------

    def tail(self, entries: int) -> "array[int]":
        """The newest marks, so many times and words at most, oldest first and whole ones only."""
        newest: list[int] = []
        for _ in range(TRIES):
            try:
                newest = list(islice(reversed(self.entries), entries))
                break
            except RuntimeError:  # another thread has put one meanwhile
                continue
        found = array("q", newest)
        found.reverse()
        if found and found[-1] >= 0:
            found.pop()  # a time whose word is yet to come
        if found and found[0] < 0:
            del found[0]
        return found if _alternates(found) else array("q", _paired(found.tolist()))

    def has_put(self, count: int, since_ns: int) -> bool:
        """Whether so many marks or more were put after `since_ns`. Looks at one of them."""
        try:
            pair = self.entries[-2 * count], self.entries[1 - 2 * count]
        except IndexError:
            return False
        return max(pair) > since_ns  # one of the two is a time, the other a word, below 0

    def newest(self) -> tuple[int, int]:
        """(perf_counter_ns, kind) of the last mark, zeros before the first. Where a device's event
        stands behind it, of what it marks: the first backward of a run may last for ten seconds."""
        tail = self.tail(6)
        kinds = [marks.kind_and_detail(word)[0] for word in tail[1::2]]
        if not kinds:
            return 0, 0
        behind = len(kinds) > 1 and kinds[-1] == marks.STAMPED
        return tail[-2], kinds[-2 if behind else -1]

    def lose_owner(self) -> None:
        """The training thread has ended: the next to mark is another. Called by the publisher."""
        self.owner = 0
        self._put(marks.word_of(marks.TRAINING_OVER))

    def end(self) -> None:
        """The probe leaves: the last step has no fetch behind it. Called by the publisher."""
        self._put(marks.word_of(marks.ENDED))

    def stop(self) -> None:
        """Take no marks any more."""
        self.on = False
        self.owner = 0
        self._rest()
        self._switch_off("all_off")

    def forget(self) -> tuple[object, ...]:
        """Start over, as a forked child must: what was recorded is the parent's. Returns what may
        hold the parent's pinned memory and events, which must not be freed here."""
        parents = (
            self._stamp, self._settings, self._look, self._collect,
            self._window, self._count, self._time, self._trace, self.extra,
            self.notes.numerics,
        )  # fmt: skip
        self.armed = self.watched = self.trained = False
        self.owner = 0
        self._rest()
        self._arming.clear()
        self.entries.clear()
        self.rare.clear()
        self.notes.clear()
        self._switch_off("after_fork")
        return parents

    def _switch_off(self, how: str) -> None:
        """What a request has switched on, in `probe.switched`, which is loaded where one has."""
        switched: Any = sys.modules.get(f"{__package__}.switched")
        if getattr(switched, "LOADED", False):
            getattr(switched, how)()

    def _rest(self) -> None:
        """Nobody asks for anything beside the marks any more."""
        self._stamp = self._settings = self._look = self._collect = None
        self._window = self._count = self._time = self._trace = self.extra = None


def _alternates(entries: "array[int]") -> bool:
    """Times and words by turns, by their signs."""
    highest = entries.tobytes()[_HIGH_BYTE::8]
    times, words = highest[0::2], highest[1::2]
    return len(times) == len(words) and not (
        times.translate(None, _NOT_NEGATIVE) or words.translate(None, _NEGATIVE)
    )


_HIGH_BYTE: Final = 7 if sys.byteorder == "little" else 0
_NOT_NEGATIVE: Final = bytes(range(0x80))
_NEGATIVE: Final = bytes(range(0x80, 0x100))


def _paired(entries: list[int]) -> list[int]:
    """Where they do not alternate: two threads have put theirs between each other's, or a signal's
    handler has cut one off before its word. Of some times in a row and the words behind them, as
    many from the end."""
    out: list[int] = []
    times: list[int] = []
    for is_word, group in groupby(entries, (0).__gt__):
        if not is_word:
            times = list(group)
            continue
        words = list(group)
        count = min(len(times), len(words))
        out += [one for pair in zip(times[-count:], words[:count], strict=True) for one in pair]
    return out
