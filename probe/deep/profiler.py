"""A profiler's window on the training thread, for a monitor that asks: a few steps of kineto.

Two recordings, each from one step's end to another's. First some steps with the operators and
their shapes, and with looks at where the training thread is, a thousand a second: that slows the
host down by half, so their times are not used. Then the steps whose times count, with the device's
activity alone. Each begins with a step that is not used, in which CUPTI and caches settle. Without
a device there is one recording, of operators. Before the operators a sample tells how many run a
second, so that no more of them are recorded than can be kept.

The files lie in the socket's own directory, which nobody else may enter, until the monitor has read
them. CUPTI is torn down after the last one (kineto does that where TEARDOWN_CUPTI is "1" as the
recording stops): left attached, it makes every later step 15 to 20 % slower. Where CUDA is older
than 12.6 that crashes with CUDA graphs, so there it stays.

Everything is refused rather than risked: while a graph is captured, while another profiler records,
without room on the disk. GPUWATCH_CONTROL=0 forbids it.
"""

import os
import sys
from collections import deque
from threading import get_ident
from typing import Any, Final, Literal

from .. import clock
from ..circuit_breaker import is_users
from ..encoding import AskProfile
from ..figures import resident_bytes
from ..peers import OFF, are_commands_off
from ..private_files import remove
from ..recorder import Recorder
from ..switched import Switched, overdue_off
from ..wire import marks
from .looks import Looks
from .recording import LEFT, OVER, Recording, collectives_issued, operators_in
from .step_ends import StepEnds, step_ends, usual_ns
from .torch_now import is_capturing, may_tear_down, used_cuda, why_not_now

MOST_STEPS: Final = 100
MOST_BYTES: Final = 200_000_000
"""Of both files."""
LEAST_FREE_BYTES: Final = 2 * MOST_BYTES
MOST_NS: Final = 60_000_000_000
"""Longest that a recording may last, whatever is asked for."""
LOOKED_NS: Final = 100_000_000
MOST_NAMED: Final = 20
"""Steps with operators: so long, for a hundred looks, and no more of them."""
WAITS_NS: Final = 60_000_000_000
"""For a step's end, to begin at."""
KEPT_NS: Final = 120_000_000_000
"""Files that nobody has taken are removed."""
MOST_MARKS: Final = 10_000
LATE_NS: Final = 2_000_000_000
"""Beyond what a recording may last: then no mark has come at which to end it."""
MOST_GROWN_BYTES: Final = 100_000_000
SILENT_NS: Final = 1_000_000_000
"""By so much a loop that has put no mark for so long may grow."""
SAMPLE_NS: Final = 50_000_000
LONGEST_SAMPLE_NS: Final = 2 * SAMPLE_NS
"""Until the step that is open at its end has ended as well."""
MOST_OPERATORS: Final = 30_000
"""In a recording with shapes. Of an operator kineto keeps 2.4 KB, takes 14 KB as the recording
ends, and writes 2.2 KB (torch 2.13): 430 MB, and a trace of 66 MB."""
MOST_WITHOUT_SHAPES: Final = 90_000
"""1, 5 and 1.3 KB."""
MOST_KERNELS: Final = MOST_BYTES // 2_100
"""No step has more of them than operators."""
DENSE_BYTES: Final = 40_000_000
"""A recording with too many has grown by this at least. The rate of the sample alone would blame a
step for a dense beginning."""
TOO_MANY: Final = "a step has more operators than can be recorded"
TEARDOWN: Final = "TEARDOWN_CUPTI"
Pass = Literal["sample", "operators", "times"]
"""Of a window: how many operators a step has, in `SAMPLE_NS` or some more; steps with operators,
shapes and lines; steps whose kernels are timed with as little beside them as can be."""


class Profiler:
    """`at` is the training thread's, everything else the publisher's. One window at a time."""

    def __init__(self, recorder: Recorder, stem: str) -> None:
        """`stem`: of the socket's path, and so of the files' paths."""
        self._recorder = recorder
        self._stem = stem
        self._folder = os.path.dirname(stem)
        self._off = are_commands_off()
        self._who: bytes | None = None
        self._asked_ns = 0
        self._steps = self._most_ns = 0
        self._behind = "", 0
        """A process group, and how many collectives it has issued before anything is recorded."""
        self._dense_ns = 0
        """So long it takes until `MOST_OPERATORS` have run, by the sample."""
        self._ran_away = False
        self._shapes = True
        self._named, self._no_operators = MOST_NAMED, ""
        """Steps with operators, at the most; why there are none."""
        self._ends = StepEnds(set())
        self._recording: Recording | None = None
        self._plan: list[Pass] = []
        """What is to be recorded yet, in this order."""
        self._done: list[Recording] = []
        self._made: deque[dict[str, Any]] = deque(maxlen=1)
        self._files: dict[str, int] = {}
        """When each is to be removed, by its path."""
        self._before: str | None = None
        self._restores: Switched | None = None
        """Until the environment is as it was."""
        self._rss_bytes = 0
        self._number = 0

    @property
    def is_open(self) -> bool:
        """A window is asked for, or not yet over."""
        return self._who is not None or self._restores is not None

    def ask(self, who: bytes, asked: AskProfile, now_ns: int) -> dict[str, Any] | None:
        """Begin at the next step's end, or at the first behind the collective that is named.
        Returns the refusal, or the collectives that were issued where no step is asked for."""
        why_not = self._why_not(now_ns)
        if why_not:
            return {"why_not": why_not}
        if asked.steps < 1:
            return {"why_not": "", "issued": collectives_issued()}
        self._ends = step_ends(self._recorder)
        self._who, self._asked_ns = who, now_ns
        self._steps = min(asked.steps, MOST_STEPS)
        self._most_ns = max(1_000_000, min(asked.most_ns, MOST_NS))
        self._behind = asked.group, asked.number
        on_device = used_cuda() is not None
        self._plan = ["operators", "times"] if asked.operators and on_device else ["times"]
        if (asked.operators or not on_device) and not asked.group:
            self._plan.insert(0, "sample")
        self._dense_ns, self._ran_away, self._no_operators = self._most_ns, False, ""
        self._shapes, self._named = True, MOST_NAMED
        self._done = []
        self._recorder.window_with(self.at)
        return None

    def turn(self, now_ns: int) -> "tuple[bytes, dict[str, Any]] | None":
        """What is to be answered, and to whom."""
        for path, until_ns in list(self._files.items()):
            if now_ns >= until_ns:
                self._remove(path)
        if self._who is None:
            return None
        if self._made:
            who, self._who = self._who, None
            return who, self._made.popleft()
        recording = self._recording
        if recording is not None and self._runs_away(recording, now_ns):
            self._ran_away = True
            recording.switched.until_ns = now_ns - 1
            overdue_off(now_ns)
        waited = recording is None and not self._done
        if waited and now_ns - self._asked_ns > WAITS_NS:
            self._recorder.window_with(None)
            who, self._who = self._who, None
            return who, {"why_not": f"no step has ended within {WAITS_NS // 1_000_000_000} s"}
        return None

    def _runs_away(self, recording: Recording, now_ns: int) -> bool:
        """Before the loop puts a mark, by what the process has grown."""
        grown = (resident_bytes()[0] or 0) - self._rss_bytes
        is_late = recording.has_operators and now_ns - recording.began_ns > self._dense_ns
        if is_late and grown > DENSE_BYTES:
            return True
        return now_ns - self._recorder.newest()[0] >= SILENT_NS and grown > MOST_GROWN_BYTES

    def remove(self) -> None:
        """Remove what nobody has taken."""
        for path in list(self._files):
            self._remove(path)

    def at(self, kind: int) -> None:
        """Behind a mark of this kind. What fails in here is the answer, not the probe's end."""
        try:
            self._at(kind)
        except Exception as error:
            if is_users(error):
                raise
            self._end(f"{type(error).__name__}: {str(error)[:300]}")

    # -- on the training thread --------------------------------------------------------------

    def _at(self, kind: int) -> None:
        if kind in marks.ASIDES:
            return
        recording = self._recording
        if recording is not None and not recording.switched.is_mine:
            return
        ends = self._ends.at(kind)
        if recording is None:
            if self._restores is not None:
                if ends:  # a step lies behind the teardown, which kineto does at its first call
                    self._restore()
                    self._recorder.window_with(None)
            elif ends and not is_capturing() and self._is_behind():
                self._begin()
            return
        now_ns = clock.now_ns()
        if len(recording.marks) < MOST_MARKS:
            recording.marks.append((now_ns, kind))
        if ends:
            recording.end_step(now_ns)
        steps, passed_ns = len(recording.ends_ns) - 1, now_ns - recording.began_ns
        if self._plan[0] == "sample":
            # Whole steps have as many operators on a busy machine: a wait for a core in a part of
            # one would halve them.
            enough = passed_ns > SAMPLE_NS and ends
        elif self._plan[0] == "operators":
            enough = steps > self._named or (
                steps > 1 and now_ns - recording.ends_ns[1] > LOOKED_NS
            )
        else:
            enough = steps > self._steps
        over = enough or passed_ns > self._longest_ns()
        if over and not is_capturing():
            self._next()

    def _is_behind(self) -> bool:
        group, number = self._behind
        return not group or collectives_issued().get(group, number) >= number

    def _begin(self) -> None:
        why_not = why_not_now()
        if why_not:
            self._end(why_not)
            return
        self._number += 1
        self._ran_away = False
        self._rss_bytes = resident_bytes()[0] or 0
        what = self._plan[0]
        path = f"{self._stem}.{self._number}.trace"
        remove(path)
        on_device = used_cuda() is not None
        looks = Looks(get_ident()) if what == "operators" else None
        longest_ns = self._longest_ns()
        late_ns = 0 if what == "sample" else min(LATE_NS, longest_ns)
        self._recording = Recording(
            path,
            on_device and what != "sample",
            what != "times" or not on_device,
            looks,
            longest_ns + late_ns,
            self._cut,
            self._shapes and what != "sample",
            what == "sample",
        )

    def _longest_ns(self) -> int:
        """Of the recording that is next, or on."""
        return LONGEST_SAMPLE_NS if self._plan[0] == "sample" else self._most_ns

    def _cut(self, reason: str) -> None:
        """A recording was ended before its time."""
        recording = self._recording
        if reason == OVER and recording is not None:
            self._recording = None
            self._sampled(recording)
        elif reason == LEFT and self._ran_away and self._plan[0] == "operators":
            self._recording = None
            self._without_operators()
        else:
            self._end(TOO_MANY if reason == LEFT and self._ran_away else reason)

    def _sampled(self, recording: Recording) -> None:
        """How long it takes at least until there are too many operators; and where a step's length
        is known, what can be recorded of such."""
        self._plan.pop(0)
        try:
            operators = operators_in(recording.path)
        finally:
            remove(recording.path)
        took_ns = recording.switched_off_ns - recording.began_ns
        self._dense_ns = MOST_OPERATORS * took_ns // max(1, operators)
        step_ns = usual_ns(recording.ends_ns, self._recorder)
        if not step_ns:
            return
        a_step = max(1, operators * step_ns // took_ns)
        self._shapes = 2 * a_step <= MOST_OPERATORS
        affordable = (MOST_OPERATORS if self._shapes else MOST_WITHOUT_SHAPES) // a_step - 1
        self._named = min(MOST_NAMED, affordable)
        most = affordable if used_cuda() is None else MOST_KERNELS // a_step
        self._steps = max(1, min(self._steps, most))
        if affordable < 1:
            self._without_operators()

    def _without_operators(self) -> None:
        """On a device the kernels are recorded all the same."""
        if self._plan[0] == "operators":
            self._plan.pop(0)
            self._no_operators = TOO_MANY
        else:
            self._end(TOO_MANY)

    def _next(self) -> None:
        """A recording is over: the next, or the answer."""
        recording, self._recording = self._recording, None
        if recording is None:
            return  # cut between two of this thread's bytecodes
        if self._plan[0] == "sample":
            recording.stop()
            self._sampled(recording)
            return
        what = self._plan.pop(0)
        if not self._plan and may_tear_down():
            self._before = os.environ.get(TEARDOWN)
            self._restores = Switched(self._restore, clock.now_ns() + LATE_NS, anywhere=True)
            os.environ[TEARDOWN] = "1"
        self._files[recording.path] = clock.now_ns() + KEPT_NS
        recording.stop()
        self._done.append(recording)
        if what == "operators":
            a_step = recording.bytes // max(1, len(recording.ends_ns) - 1)
            affordable = (MOST_BYTES - recording.bytes) // max(1, a_step) - 1
            if affordable < 1:
                self._remove(recording.path)
                self._end(f"a step has {a_step // 1_000_000} MB of trace: more than is kept")
                return
            self._steps = min(self._steps, affordable)
        if self._plan:
            self._begin()
        else:
            self._end("")

    def _end(self, why_not: str) -> None:
        """The answer; without a reason of what was recorded."""
        recording, self._recording = self._recording, None
        if recording is not None:
            try:
                recording.abandon()
            except Exception as error:
                if is_users(error):
                    raise
        if not why_not and sum(one.bytes for one in self._done) > MOST_BYTES:
            why_not = f"the trace has more than {MOST_BYTES // 1_000_000} MB"
        if why_not:
            self.remove()
        answer = {"why_not": why_not} if why_not else self._answer()
        self._done = []
        if self._restores is None:
            self._recorder.window_with(None)
        self._made.append(answer)

    def _answer(self) -> dict[str, Any]:
        times = self._done[-1]
        operators = self._done[0] if len(self._done) > 1 else None
        looks = None if operators is None else operators.looks
        return {
            "why_not": "",
            "times": times.described(),
            "operators": None if operators is None else operators.described(),
            "looks": [] if looks is None else looks.taken,
            "places": [] if looks is None else looks.places(),
            "no_operators": self._no_operators,
            "torn_down": self._restores is not None,
            "on_device": used_cuda() is not None,
        }

    def _restore(self) -> None:
        restores, self._restores = self._restores, None
        if restores is None:
            return
        restores.done()
        if self._before is None:
            os.environ.pop(TEARDOWN, None)
        else:
            os.environ[TEARDOWN] = self._before

    # -- refusals and files ------------------------------------------------------------------

    def _why_not(self, now_ns: int) -> str:
        if self._off:
            return OFF
        if "torch.autograd.profiler" not in sys.modules:
            return "torch is not imported yet"
        if not self._recorder.owner:
            return "no thread trains"
        try:
            found = os.statvfs(self._folder)
        except OSError as error:
            return f"{self._folder}: {error.strerror}"
        if found.f_bavail * found.f_frsize < LEAST_FREE_BYTES:
            return f"{self._folder} has less than {LEAST_FREE_BYTES // 1_000_000} MB free"
        return ""

    def _remove(self, path: str) -> None:
        self._files.pop(path, None)
        remove(path)
