"""What monitors ask for beyond watching. What answers is loaded by the training thread when it is
first asked for, or where ranks are: the publisher imports nothing.
"""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from .encoding import (
    AskCollectives,
    AskMemory,
    AskProfile,
    encode_collectives,
    encode_memory,
    encode_profile,
)
from .peers import OFF, are_commands_off
from .recorder import Recorder

if TYPE_CHECKING:
    from .collectives import Collectives, Taken
    from .deep.memory_history import MemoryHistory
    from .deep.profiler import Profiler

MOST_ASKED: Final = 64
RECORDING_TURN_S: Final = 0.05
"""A loop of tiny operators makes 10 MB a turn then."""

Question = AskCollectives | AskProfile | AskMemory
QUESTIONS: Final = (AskCollectives, AskProfile, AskMemory)


class OnRequest:
    """All of them, on the publisher's thread."""

    def __init__(self, recorder: Recorder, endpoint: str | None) -> None:
        """Files lie beside the socket; None: there is no such place."""
        stem = None if endpoint is None else endpoint[len("ipc://") : -len(".sock")]
        self._recorder = recorder
        self._flops_asked = False
        self._exchange = Exchange(recorder)
        self._deep = DeepLook(recorder, stem)

    def ask(self, who: bytes, question: Question) -> None:
        """Keep a question for the next turn."""
        if isinstance(question, AskCollectives):
            self._exchange.ask(who, question.at_ns, question.entries)
        else:
            self._deep.ask(who, question)

    def count_flops(self) -> None:
        """Count the FLOPs of one step, once in the life of the process."""
        if self._flops_asked:
            return
        self._flops_asked = True
        recorder = self._recorder
        if are_commands_off():
            recorder.notes.add(recorder.now_ns(), "refused", "flops", 0.0, OFF)
        else:
            recorder.count_with(self._first_count)

    def _first_count(self, _: int) -> None:
        """On the training thread, which cannot fork while it imports."""
        from .flop_count import FlopCount

        self._recorder.count_with(FlopCount(self._recorder).at)

    def drop_left(self, pid_of: Callable[[bytes], int | None]) -> None:
        """End what monitors asked for whose connection is closed: `pid_of` has no process for
        them."""
        self._deep.drop_left(pid_of)

    def turn(self, now_ns: int) -> Iterator[tuple[bytes, bytes]]:
        """Whom to answer now, and the messages."""
        switched: Any = sys.modules.get(f"{__package__}.switched")
        if getattr(switched, "LOADED", False):
            switched.overdue_off(now_ns)
        for who, taken in self._exchange.turn(now_ns):
            yield who, encode_collectives(taken)
        yield from self._deep.turn(now_ns)

    def turn_s(self, usual_s: float) -> float:
        """Until the next turn: a profiler that records is looked after."""
        return min(usual_s, RECORDING_TURN_S) if self._deep.is_recording else usual_s

    def close(self) -> None:
        """The probe leaves."""
        self._deep.close()


class Exchange:
    """Who has asked for the flight recorder: what reads it is loaded where ranks are, or by the
    training thread when it is first asked for. The publisher imports nothing."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._collectives: Collectives | None = None
        """None until they are first asked for."""
        self._asked: list[tuple[bytes, int, bool]] = []

    def ask(self, who: bytes, at_ns: int, entries: bool) -> None:
        """Keep a question for the next turn. Beyond `MOST_ASKED` it is passed over."""
        if len(self._asked) < MOST_ASKED:
            self._asked.append((who, at_ns, entries))

    def turn(self, now_ns: int) -> "Iterator[tuple[bytes, Taken]]":
        """What there is to answer now, and whom."""
        if self._collectives is None and self._asked:
            early: Any = sys.modules.get(f"{__package__}.collectives")
            if getattr(early, "LOADED", False):
                self._collectives = early.Collectives(self._recorder)
            else:
                self._recorder.collect_with(self._first_collect)
        if self._collectives is None:
            return
        asked, self._asked = self._asked, []
        for who, at_ns, entries in asked:
            taken = self._collectives.ask(who, at_ns, entries, now_ns)
            if taken is not None:
                yield who, taken
        yield from self._collectives.answers(now_ns)

    def _first_collect(self, _: int) -> None:
        """On the training thread, which cannot fork while it imports."""
        from .collectives import Collectives

        self._recorder.collect_with(None)
        if self._collectives is None:  # the publisher may have asked twice
            self._collectives = Collectives(self._recorder)


class DeepLook:
    """The profiler's window and the memory's: of each one at a time."""

    def __init__(self, recorder: Recorder, stem: str | None) -> None:
        self._recorder = recorder
        self._stem = stem
        self._profiler: Profiler | None = None
        """None until it is first asked for."""
        self._memory: MemoryHistory | None = None
        self._asked: list[tuple[bytes, AskProfile | AskMemory]] = []

    def ask(self, who: bytes, question: "AskProfile | AskMemory") -> None:
        """Keep a question for the next turn. Beyond `MOST_ASKED` it is passed over."""
        if len(self._asked) < MOST_ASKED:
            self._asked.append((who, question))

    def drop_left(self, pid_of: Callable[[bytes], int | None]) -> None:
        """A window of memory ends, which may be of ten minutes. A profiler's is of a few steps."""
        memory = self._memory
        if memory is not None and memory.who is not None and pid_of(memory.who) is None:
            memory.give_up()

    def turn(self, now_ns: int) -> Iterator[tuple[bytes, bytes]]:
        """What there is to answer now, and whom."""
        if self._asked and self._load():
            asked, self._asked = self._asked, []
            for who, question in asked:
                yield from self._begin(who, question, now_ns)
        profiler, memory = self._profiler, self._memory
        if profiler is not None and (made := profiler.turn(now_ns)) is not None:
            yield made[0], encode_profile(made[1])
        if memory is not None and (found := memory.turn(now_ns)) is not None:
            yield found[0], encode_memory(found[1])

    @property
    def is_recording(self) -> bool:
        """A profiler's window is open."""
        return self._profiler is not None and self._profiler.is_open

    def close(self) -> None:
        """Remove what nobody has taken."""
        for part in (self._profiler, self._memory):
            if part is not None:
                part.remove()

    def _begin(
        self, who: bytes, question: "AskProfile | AskMemory", now_ns: int
    ) -> Iterator[tuple[bytes, bytes]]:
        assert self._profiler is not None
        assert self._memory is not None
        if self._profiler.is_open or self._memory.is_open:
            encode = encode_profile if isinstance(question, AskProfile) else encode_memory
            yield who, encode({"why_not": "a window is open already"})
            return
        if isinstance(question, AskProfile):
            refused = self._profiler.ask(who, question, now_ns)
            if refused is not None:
                yield who, encode_profile(refused)
            return
        refused = self._memory.ask(who, question.for_ns, question.host, now_ns)
        if refused is not None:
            yield who, encode_memory(refused)

    def _load(self) -> bool:
        """Whether both are there; else the training thread is asked to load them."""
        if self._stem is None:
            self._asked.clear()
            return False
        if self._profiler is None:
            self._recorder.window_with(self._first)
            return False
        return True

    def _first(self, _: int) -> None:
        """On the training thread, which cannot fork while it imports."""
        from .deep.memory_history import MemoryHistory
        from .deep.profiler import Profiler

        self._recorder.window_with(None)
        if self._profiler is None and self._stem is not None:
            self._memory = MemoryHistory(self._recorder, self._stem)
            self._profiler = Profiler(self._recorder, self._stem)
