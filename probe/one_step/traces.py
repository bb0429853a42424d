"""Traces a step of the training now and then while somebody watches, and sums up what it shows.

From the end of an optimizer's step to the beginning of its next. A step that is traced takes its
operations times 30 us longer; the next comes after `PAUSE` times as long, and
`MOST_STEPS` in all. Not where a mode would be seen or do harm: in code that is compiled or
captured, beside a mode or a profiler of the program's own, and in a rank that others would wait
for.
"""

import functools
import sys
from typing import Any, Final

from ..circuit_breaker import is_users
from ..device.events import find_events
from ..dispatch_modes import (
    ANOTHER,
    ModeOn,
    compiles,
    holds_compiled,
    is_captured,
    is_in_backward,
)
from ..peers import are_commands_off
from ..recorder import Recorder
from ..wire.marks import (
    BACKWARD_LEAVE,
    FETCH_END,
    FETCH_ENTER,
    FETCH_FAILED,
    FETCH_LEAVE,
    OPTIMIZER_ENTER,
    OPTIMIZER_LEAVE,
)
from .lasting import Known
from .needless import by_scatter, constant, repeated, steady_of, unread
from .operation import Step
from .summary import Found, Summary, summary_of, summary_of_forward
from .tracer import DeviceTimes, Taken, bears_subclasses, forward_of, step_of, tracer

STEP_OPERATIONS: Final = "step_operations"
"""As `settings.Settings` has it."""
PAUSE: Final = 50
"""Times what a traced step took longer, until the next: a fiftieth of the time at the most."""
MOST_STEPS: Final = 6
MOST_NS: Final = 3_000_000_000
"""Of a step that is traced: a loop may have ended meanwhile."""
AFTER_FAILURE_NS: Final = 20_000_000_000
AGREE: Final = 3
"""Steps that must show the same to be constant: the epochs of a rollout share much, for a while."""
PATIENCE: Final = 64
"""Backwards without an optimizer's step, after which each of them ends a step."""
WARM: Final = 3
"""Steps before the first that is traced: a program's first ones load kernels."""
MOST_FAILED: Final = 3
NEEDED: Final = (
    *("_current_graph_task_id", "_current_autograd_node", "_dynamo"),
    *("_push_on_torch_dispatch_stack", "_pop_torch_dispatch_stack"),
)
"""Of torch's, without which no step is traced."""
OURS: Final = "_gpuwatch_traces"
"""An attribute of the function that stands for `torch.compile` in a traced step."""
BEGINS: Final = frozenset({FETCH_ENTER, OPTIMIZER_ENTER})
ENDS: Final = frozenset({FETCH_LEAVE, FETCH_END, FETCH_FAILED, OPTIMIZER_LEAVE})


class StepTraces:
    """Every method but `ask` belongs to the training thread."""

    def __init__(self, recorder: Recorder) -> None:
        self.reading: dict[str, Any] = {}
        """The field, once a step was traced: for the publisher, replaced as a whole."""
        self._recorder = recorder
        self._known = Known()
        self._around: DeviceTimes | None = None
        self._on: ModeOn | None = None
        """While a step is traced."""
        self._optimizer: int | None = None
        """Identity of the one whose step began last; None before, and of backwards alone."""
        self._first: int | None = None
        """Of the one with whose step the trace began."""
        self._begun_ns = self._wall_ns = 0
        """When the trace began, and how long the step was that was traced last."""
        self._backwards = 0
        self._steps = 0
        """Of optimizers, since somebody watches."""
        self._ended: Any = None
        """A mode that is over, whose events the device has not passed yet."""
        self._forward: Any = None
        """A mode that went off before a backward."""
        self._before: frozenset[int] | None = None
        """Keys of the operations that all steps so far had; None before the first."""
        self._summaries: list[Summary] = []
        """What each step has shown, in the order of what its operations took."""
        self._compile: Any = None
        """`torch.compile`, where ours stands for it."""
        self._bears: bool | None = None
        """Tensors of the program's own types may be made below a mode; None before that was tried.
        """
        self._again_ns = 0
        self._failed = 0
        self.is_over = are_commands_off()

    def ask(self) -> None:
        """Trace a step, where one is due. Called by the publisher, which has time to look for what
        was compiled, and on whose thread no handler of the program's raises while a mode is tried
        out, which it would leave on."""
        if not self._recorder.on or self.is_over or self._recorder.now_ns() < self._again_ns:
            return
        if holds_compiled():
            self._again_ns = self._recorder.now_ns() + AFTER_FAILURE_NS
        else:
            if self._bears is None:
                self._bears = _bears_it()
            if self._bears:
                self._recorder.trace_with(self.at)
            else:
                self.is_over = True

    def at(self, kind: int, what: Any) -> None:
        """Behind each mark of this kind, until a step was traced."""
        try:
            if self._forward is not None:
                self._take_forward(self._forward)
            elif self._ended is not None:
                self._take(self._ended)
            elif self._on is None:
                self._wait(kind, what)
            elif self._on.is_mine:
                self._follow(self._on, kind, what)
        except Exception as error:
            # What this torch has not, a device cannot or no test has met: it ends itself, and not
            # all watching.
            if is_users(error):
                raise
            self._abandon(f"{type(error).__name__}: {str(error)[:200]}")

    def _abandon(self, why: str) -> None:
        """For good. A mode that cannot go off now does at a later mark."""
        self.is_over, self._ended, self._forward = True, None, None
        if self._on is None:
            self._recorder.trace_with(None)
        else:
            self._on.mode.why_not = why
            self._cut()

    def _wait(self, kind: int, what: Any) -> None:
        if kind == OPTIMIZER_ENTER:
            self._optimizer, self._backwards = id(what), 0
        elif kind == OPTIMIZER_LEAVE:
            self._steps += 1
            if self._optimizer is not None and self._steps > WARM:
                self._begin(self._optimizer)
        elif kind == BACKWARD_LEAVE and not is_in_backward():
            self._backwards += 1
            if self._backwards > PATIENCE:
                self._begin(None)

    def _follow(self, tracing: ModeOn, kind: int, what: Any) -> None:
        by_backward = self._first is None and kind == BACKWARD_LEAVE
        if by_backward or (kind == OPTIMIZER_ENTER and id(what) == self._first):
            self._end(tracing)
        elif kind in BEGINS:
            tracing.mode.is_off = True
        elif kind in ENDS:
            tracing.mode.is_off = False
            tracing.mode.leaves.forget_leaves()
        if self._on is not None and (
            tracing.mode.why_not or self._recorder.now_ns() > self._on.until_ns
        ):
            self._cut()

    def _begin(self, optimizer: int | None) -> None:
        if is_in_backward():
            return  # what is put on in there, autograd takes off
        if not _may_trace():
            self._fail()
            return
        events = find_events()
        self._around = None if events is None else DeviceTimes(events)
        self._first = optimizer
        now_ns = self._recorder.now_ns
        self._on = ModeOn(tracer(self._known, now_ns, self._around), self._cut, now_ns() + MOST_NS)
        self._begun_ns = now_ns()
        self._stand_for_compile()

    def _end(self, tracing: ModeOn) -> None:
        if not tracing.can_go:
            return  # a mode of the user's lies on ours: at the end of a later step
        self._take_off(tracing)
        self._wall_ns = self._recorder.now_ns() - self._begun_ns - tracing.mode.own_ns
        if tracing.mode.why_not or not tracing.mode.went_back:
            self._fail()  # a closure's backward lies within the optimizer
        else:
            self._take(tracing.mode)

    def _take_off(self, tracing: ModeOn) -> None:
        tracing.off()
        self._on = None
        torch: Any = sys.modules["torch"]
        if self._compile is not None and getattr(torch.compile, OURS, None) is self:
            torch.compile = self._compile
        self._compile = None

    def _stand_for_compile(self) -> None:
        """What begins to compile would meet our mode: it is taken off first."""
        torch: Any = sys.modules["torch"]
        original = self._compile = torch.compile

        @functools.wraps(original)
        def off_and_on(*args: Any, **kwargs: Any) -> Any:
            if self._on is not None and self._on.is_mine:
                self._cut()
            return original(*args, **kwargs)

        setattr(off_and_on, OURS, self)
        torch.compile = off_and_on

    def _cut(self) -> bool:
        """The loop goes no further. False: it cannot be taken off now."""
        if self._on is None or not self._on.can_go:
            return False
        mode = self._on.mode
        self._take_off(self._on)
        self._fail()
        if mode.why_not == ANOTHER:
            self.is_over = True
            if not self.reading:
                self._forward = mode
                self._recorder.trace_with(self.at)
        return True

    def _fail(self) -> None:
        self._failed += 1
        self.is_over = self.is_over or self._failed >= MOST_FAILED
        self._again_ns = self._recorder.now_ns() + AFTER_FAILURE_NS
        self._recorder.trace_with(None)

    def _take_forward(self, mode: Any) -> None:
        """Not within the program's call of its backward, which has just ended the trace."""
        self._forward = None
        self._recorder.trace_with(None)
        self.reading = {STEP_OPERATIONS: (1, *summary_of_forward(forward_of(mode)))}

    def _take(self, mode: Any) -> None:
        """Sum it up, once the device has passed its events."""
        around = self._around
        if around is not None and (around.is_captured() or not around.has_passed(mode.taken)):
            self._ended = mode
            return
        begun_ns = self._recorder.now_ns()
        self._sum_up(step_of(mode, on_host if around is None else around.times(mode.taken)))
        self._ended = self._around = None
        ended_ns = self._recorder.now_ns()
        self._again_ns = ended_ns + PAUSE * (mode.own_ns + ended_ns - begun_ns)
        if len(self._summaries) >= MOST_STEPS:
            self.is_over, self._known, self._before = True, Known(), None
        self._recorder.trace_with(None)

    def _sum_up(self, step: Step) -> None:
        steady = steady_of(step, self._known.ids)
        keys = frozenset(steady.keys)
        before = self._before if len(self._summaries) + 1 >= AGREE else None
        lasting = None if before is None else constant(step, steady, before)
        self._before = keys if self._before is None else keys & self._before
        found = Found(lasting, repeated(step, steady), unread(step), by_scatter(step))
        newest = summary_of(step, found, self._wall_ns)
        self._summaries.append(newest)
        self._summaries.sort(key=lambda each: (each.us, each.operations))
        traced = len(self._summaries)
        middle = self._summaries[(traced - 1) // 2]
        # What lasts is known of the newest alone.
        self.reading = {STEP_OPERATIONS: (traced, *middle._replace(constant=newest.constant))}


def on_host(one: Taken) -> int:
    """What an operation took without a device."""
    return one.host_ns


def _bears_it() -> bool:
    """This torch has what a mode needs, and makes tensors of the program's own types below one."""
    torch: Any = sys.modules["torch"]
    return all(hasattr(torch._C, name) for name in NEEDED) and bears_subclasses()


def _may_trace() -> bool:
    torch: Any = sys.modules["torch"]
    if torch._C._len_torch_dispatch_stack() or torch.jit.is_tracing():
        return False
    if getattr(torch.autograd, "_profiler_enabled", bool)():
        return False
    return not (is_captured() or _has_ranks() or compiles())


def _has_ranks() -> bool:
    """Others would wait for this one."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return False
    return bool(distributed.is_initialized() and distributed.get_world_size() > 1)
