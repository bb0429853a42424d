"""What hooks and PyTorch's wrapper around an update take, timed behind real backwards."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gpuwatch.probe.call_costs import HELD, IN_A_ROW, NAME, CallCosts
from gpuwatch.probe.figures import PATIENCE
from gpuwatch.probe.recorder import Recorder
from gpuwatch.probe.wire import marks
from gpuwatch.tui.messages import Marks, decode_reply
from tests.unit.probe.served import served

TICK_NS = 1_000


class Ticking:
    """A clock that each look at it moves on: what is timed is how often it was looked at."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += TICK_NS
        return self.now_ns


@pytest.fixture
def faults() -> Iterator[list[Exception]]:
    found: list[Exception] = []
    yield found
    assert not found


@pytest.fixture
def recorder(faults: list[Exception]) -> Recorder:
    recorder = Recorder(arm=lambda _: True, trip=faults.append, now_ns=Ticking())
    recorder.mark(marks.BACKWARD_ENTER)  # this thread trains
    return recorder


def timed(recorder: Recorder, steps: int = IN_A_ROW) -> CallCosts:
    costs = CallCosts(recorder)
    recorder.time_with(costs.at)
    for _ in range(steps):
        recorder.mark(marks.BACKWARD_ENTER)
        recorder.mark(marks.BACKWARD_LEAVE)
    return costs


def is_timing(recorder: Recorder) -> bool:
    return recorder.extra is not None


def test_some_steps_in_a_row_are_timed_and_no_more(recorder: Recorder) -> None:
    costs = timed(recorder, IN_A_ROW - 1)
    assert is_timing(recorder)
    recorder.mark(marks.BACKWARD_LEAVE)
    assert not is_timing(recorder)
    # Two marks look at the clock, and so does the one behind them.
    assert costs.reading() == (3 * TICK_NS // 2, (TICK_NS, TICK_NS))


def test_the_first_of_a_row_is_left_out(recorder: Recorder) -> None:
    assert timed(recorder, 1).reading() == (None, None)
    assert timed(recorder, 2).reading() != (None, None)


def test_it_is_timed_anew_when_asked(recorder: Recorder) -> None:
    costs = timed(recorder)
    for _ in range(2 * HELD):
        costs.ask()
        assert is_timing(recorder)
        for _ in range(IN_A_ROW):
            recorder.mark(marks.BACKWARD_LEAVE)
        assert not is_timing(recorder)
    assert len(costs._hooks) == len(costs._wrappers) == HELD


def test_where_nothing_is_trained_fetches_stand_for_backwards(recorder: Recorder) -> None:
    costs = CallCosts(recorder)
    recorder.time_with(costs.at)
    for _ in range(PATIENCE + IN_A_ROW):
        assert is_timing(recorder)
        recorder.mark(marks.FETCH_LEAVE)
    assert not is_timing(recorder)
    mark_ns, wrapper_ns = costs.reading()
    assert mark_ns
    assert wrapper_ns is None


def test_a_profiler_of_the_users_shows_nothing_of_it(recorder: Recorder) -> None:
    with torch.profiler.profile() as profile:
        costs = timed(recorder)
        torch.ones(3).sum()
    assert NAME not in {event.key for event in profile.key_averages()}
    mark_ns, wrapper_ns = costs.reading()
    assert mark_ns
    assert wrapper_ns is None


class SeesCalls(TorchFunctionMode):
    calls: ClassVar[list[Any]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


class SeesOperators(TorchDispatchMode):
    calls: ClassVar[list[Any]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [SeesCalls, SeesOperators])
def test_a_mode_of_the_users_is_not_called(
    recorder: Recorder, mode: Callable[[], SeesCalls | SeesOperators]
) -> None:
    with mode() as its:
        its.calls.clear()
        timed(recorder)
        assert its.calls == []
        torch.ones(3).sum()
        assert its.calls


def test_what_a_program_has_put_in_its_place_is_not_called(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(torch.autograd.profiler, "record_function", calls.append)
    assert timed(recorder).reading()[1] is None
    assert calls == []


def test_a_probe_that_has_left_times_nothing(recorder: Recorder) -> None:
    costs = timed(recorder)
    recorder.stop()
    costs.ask()
    assert not is_timing(recorder)


def test_who_watches_is_told_what_was_timed() -> None:
    server, recorder, reported = served()
    reported.subscribe()
    server.turn()
    assert recorder.watched
    server.turn()
    for _ in range(2 * IN_A_ROW):
        recorder.mark(marks.BACKWARD_ENTER)
        recorder.mark(marks.BACKWARD_LEAVE)
    server.turn()
    told = decode_reply(reported.sent[-1])
    assert isinstance(told, Marks)
    assert told.mark_cost_ns
    assert told.update_wrapper_ns
